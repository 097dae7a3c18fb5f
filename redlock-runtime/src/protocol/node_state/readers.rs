//! Tokens that share one name.

use crate::lock::OwnerToken;
use crate::lock::class::Class;
use crate::time::clock::Instant;
use std::collections::BTreeMap;

/// Tokens that share a name, each with its own end. Expired ones may still be included.
#[derive(Debug)]
pub(super) struct Readers {
    members: BTreeMap<OwnerToken, Member>,
    /// Expiry of the lock's key, which equals the last end of the tokens.
    expires: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    /// Class in which the token has the name; `None` if the token has only reserved it.
    class: Option<Class>,
    end: Instant,
}

impl Readers {
    pub(super) const fn new(now: Instant) -> Self {
        Self { members: BTreeMap::new(), expires: now }
    }

    pub(super) const fn expires(&self) -> Instant {
        self.expires
    }

    /// Returns `true` if the key is gone.
    pub(super) fn is_gone(&self, now: Instant) -> bool {
        self.expires <= now || self.members.is_empty()
    }

    /// Gives `token` the name until `end`, and removes expired tokens. The key expires with the last token.
    pub(super) fn put(&mut self, token: OwnerToken, class: Class, end: Instant, now: Instant) {
        self.put_member(token, Member { class: Some(class), end }, now);
    }

    /// Reserves the name for `token` in the same way.
    pub(super) fn reserve(&mut self, token: OwnerToken, end: Instant, now: Instant) {
        self.put_member(token, Member { class: None, end }, now);
    }

    fn put_member(&mut self, token: OwnerToken, member: Member, now: Instant) {
        self.members.retain(|_, member| now < member.end);
        self.members.insert(token, member);
        self.expires = self.members.values().map(|member| member.end).fold(member.end, Instant::max);
    }

    /// Returns the class in which `token` has the name, and its end, if it has the name.
    pub(super) fn held_by(&self, token: OwnerToken, now: Instant) -> Option<(Class, Instant)> {
        let member = self.members.get(&token).filter(|member| now < member.end)?;
        Some((member.class?, member.end))
    }

    /// Returns the time until which `token` has the name, if it does.
    pub(super) fn end_of(&self, token: OwnerToken, now: Instant) -> Option<Instant> {
        self.held_by(token, now).map(|(_, end)| end)
    }

    /// Replaces `from` by `token`, with the given end. The expiry of the key is unchanged.
    pub(super) fn replace(&mut self, from: OwnerToken, token: OwnerToken, class: Class, end: Instant) {
        self.members.remove(&from);
        self.members.insert(token, Member { class: Some(class), end });
    }

    /// Removes the share or the reservation of `token`. The key expires with the last of the others.
    pub(super) fn remove(&mut self, token: OwnerToken, now: Instant) {
        if self.members.remove(&token).is_some() {
            let last = self.members.values().map(|member| member.end).max();
            self.expires = last.map_or(now, |last| self.expires.min(last));
        }
    }

    /// Returns the tokens that have the name, in the order of their scores in Redis.
    pub(super) fn live(&self, now: Instant) -> Vec<OwnerToken> {
        self.live_if(now, |_| true)
    }

    /// Returns the tokens that have the name in this class.
    pub(super) fn live_as(&self, class: Class, now: Instant) -> Vec<OwnerToken> {
        self.live_if(now, |other| class == other)
    }

    /// Returns the tokens whose share conflicts with this class.
    pub(super) fn live_against(&self, class: Class, now: Instant) -> Vec<OwnerToken> {
        self.live_if(now, |other| class.conflicts_with(other))
    }

    fn live_if(&self, now: Instant, counts: impl Fn(Class) -> bool) -> Vec<OwnerToken> {
        let is_live = |(token, member): (&OwnerToken, &Member)| {
            let class = member.class.filter(|class| counts(*class) && now < member.end)?;
            Some((score(class), member.end, *token))
        };
        let mut live: Vec<_> = self.members.iter().filter_map(is_live).collect();
        live.sort_unstable();
        live.into_iter().map(|(_, _, token)| token).collect()
    }

    /// Returns the tokens that have reserved the name.
    #[cfg(any(test, fuzzing))]
    pub(super) fn reserved(&self, now: Instant) -> Vec<OwnerToken> {
        let has = |member: &Member| member.class.is_none() && now < member.end;
        self.members.iter().filter(|(_, member)| has(member)).map(|(token, _)| *token).collect()
    }
}

/// Returns the position of a class in the order of Redis.
const fn score(class: Class) -> u8 {
    match class {
        Class::Exclusive => 0,
        Class::Shared => 1,
        Class::IntentExclusive => 2,
        Class::IntentShared => 3,
    }
}
