//! Those who have one name together.

use crate::lock::OwnerToken;
use crate::lock::class::Class;
use crate::time::clock::Instant;
use std::collections::BTreeMap;

/// The tokens that have a name together, each for a time of its own. Those whose time is over may still be there.
#[derive(Debug)]
pub(super) struct Readers {
    members: BTreeMap<OwnerToken, Member>,
    /// When the key of the lock expires: with the last of them.
    expires: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    /// As what the token has the name; `None` when it has only reserved it.
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

    /// Whether the key is gone.
    pub(super) fn is_gone(&self, now: Instant) -> bool {
        self.expires <= now || self.members.is_empty()
    }

    /// `token` has the name until `end`, and those whose time is over are forgotten. The key expires with the last of them.
    pub(super) fn put(&mut self, token: OwnerToken, class: Class, end: Instant, now: Instant) {
        self.put_member(token, Member { class: Some(class), end }, now);
    }

    /// The same for a token that reserves the name.
    pub(super) fn reserve(&mut self, token: OwnerToken, end: Instant, now: Instant) {
        self.put_member(token, Member { class: None, end }, now);
    }

    fn put_member(&mut self, token: OwnerToken, member: Member, now: Instant) {
        self.members.retain(|_, member| now < member.end);
        self.members.insert(token, member);
        self.expires = self.members.values().map(|member| member.end).fold(member.end, Instant::max);
    }

    /// As what `token` has the name, and until when, if it has.
    pub(super) fn held_by(&self, token: OwnerToken, now: Instant) -> Option<(Class, Instant)> {
        let member = self.members.get(&token).filter(|member| now < member.end)?;
        Some((member.class?, member.end))
    }

    /// Until when `token` has the name, if it has.
    pub(super) fn end_of(&self, token: OwnerToken, now: Instant) -> Option<Instant> {
        self.held_by(token, now).map(|(_, end)| end)
    }

    /// `token` has what `from` had, which ends then. The key expires when it would have.
    pub(super) fn replace(&mut self, from: OwnerToken, token: OwnerToken, class: Class, end: Instant) {
        self.members.remove(&from);
        self.members.insert(token, Member { class: Some(class), end });
    }

    /// `token` does not have the name any more, and has not reserved it. The key expires with the last of the others.
    pub(super) fn remove(&mut self, token: OwnerToken, now: Instant) {
        if self.members.remove(&token).is_some() {
            let last = self.members.values().map(|member| member.end).max();
            self.expires = last.map_or(now, |last| self.expires.min(last));
        }
    }

    /// Those who have the name, in the order of their scores in Redis.
    pub(super) fn live(&self, now: Instant) -> Vec<OwnerToken> {
        self.live_if(now, |_| true)
    }

    /// Those of them that have it in this class.
    pub(super) fn live_as(&self, class: Class, now: Instant) -> Vec<OwnerToken> {
        self.live_if(now, |other| class == other)
    }

    /// Those of them that do not go with somebody of this class.
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

    /// Those who have reserved the name.
    #[cfg(any(test, fuzzing))]
    pub(super) fn reserved(&self, now: Instant) -> Vec<OwnerToken> {
        let has = |member: &Member| member.class.is_none() && now < member.end;
        self.members.iter().filter(|(_, member)| has(member)).map(|(token, _)| *token).collect()
    }
}

/// In which order those of a class stand in Redis.
const fn score(class: Class) -> u8 {
    match class {
        Class::Exclusive => 0,
        Class::Shared => 1,
        Class::IntentExclusive => 2,
        Class::IntentShared => 3,
    }
}
