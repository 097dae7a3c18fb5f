//! Those who share one lock.

use crate::lock::OwnerToken;
use crate::time::clock::Instant;
use std::collections::BTreeMap;

/// The tokens that have a lock together, each for a time of its own. Those whose time is over may still be there.
#[derive(Debug)]
pub(super) struct Readers {
    members: BTreeMap<OwnerToken, Instant>,
    /// When the key of the lock expires: with the last of them.
    expires: Instant,
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

    /// `token` has its share until `end`, and those whose time is over are forgotten. The key expires with the last of them.
    pub(super) fn put(&mut self, token: OwnerToken, end: Instant, now: Instant) {
        self.members.retain(|_, end| now < *end);
        self.members.insert(token, end);
        self.expires = self.members.values().copied().fold(end, Instant::max);
    }

    /// Until when `token` has its share, if it has.
    pub(super) fn end_of(&self, token: OwnerToken, now: Instant) -> Option<Instant> {
        self.members.get(&token).copied().filter(|end| now < *end)
    }

    /// `token` has the share of `from`, which ends then. The key expires when it would have.
    pub(super) fn replace(&mut self, from: OwnerToken, token: OwnerToken, end: Instant) {
        self.members.remove(&from);
        self.members.insert(token, end);
    }

    /// `token` has no share any more. Whether it had one; and the key expires with the last of the others.
    pub(super) fn remove(&mut self, token: OwnerToken, now: Instant) -> bool {
        let Some(end) = self.members.remove(&token) else { return false };
        self.expires = self.members.values().max().map_or(now, |last| self.expires.min(*last));
        now < end
    }

    /// Those who have a share, in the order in which they lose it.
    pub(super) fn live(&self, now: Instant) -> Vec<OwnerToken> {
        let mut live: Vec<_> =
            self.members.iter().filter(|(_, end)| now < **end).map(|(token, end)| (*end, *token)).collect();
        live.sort_unstable();
        live.into_iter().map(|(_, token)| token).collect()
    }

    /// Whether anybody but `token` has a share.
    pub(super) fn has_others(&self, token: OwnerToken, now: Instant) -> bool {
        self.members.iter().any(|(other, end)| *other != token && now < *end)
    }
}
