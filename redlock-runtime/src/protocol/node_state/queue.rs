//! The tokens that wait for one lock.

use crate::lock::OwnerToken;
use crate::protocol::timing::QUEUE_EXPIRY;
use crate::time::clock::Instant;
use std::collections::BTreeSet;

#[derive(Debug)]
pub(super) struct Queue {
    tokens: BTreeSet<OwnerToken>,
    expires: Instant,
}

impl Queue {
    pub(super) const fn new(now: Instant) -> Self {
        Self { tokens: BTreeSet::new(), expires: now }
    }

    pub(super) fn is_gone(&self, now: Instant) -> bool {
        self.expires <= now || self.tokens.is_empty()
    }

    /// Whether `token` was not in it before.
    pub(super) fn add(&mut self, token: OwnerToken, now: Instant) -> bool {
        self.expires = now.after(QUEUE_EXPIRY);
        self.tokens.insert(token)
    }

    pub(super) fn tokens(&self) -> impl Iterator<Item = OwnerToken> {
        self.tokens.iter().copied()
    }

    /// Whether `token` was in it.
    pub(super) fn remove(&mut self, token: OwnerToken) -> bool {
        self.tokens.remove(&token)
    }

    pub(super) fn pop_first(&mut self) -> Option<OwnerToken> {
        self.tokens.pop_first()
    }

    pub(super) fn first(&self) -> Option<OwnerToken> {
        self.tokens.first().copied()
    }

    pub(super) fn last(&self) -> Option<OwnerToken> {
        self.tokens.last().copied()
    }

    pub(super) fn len(&self) -> u32 {
        count(self.tokens.len())
    }

    /// How many tokens come before `token`.
    pub(super) fn rank(&self, token: OwnerToken) -> u32 {
        count(self.tokens.range(..token).count())
    }
}

fn count(tokens: usize) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}
