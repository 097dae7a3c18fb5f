//! The tokens that wait for one lock.

use crate::lock::{Mode, OwnerToken};
use crate::protocol::timing::{QUEUE_EXPIRY, SILENT_AFTER};
use crate::time::clock::Instant;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug)]
pub(super) struct Queue {
    /// Those who want the lock alone.
    tokens: BTreeSet<OwnerToken>,
    /// Those who share it.
    sharing: BTreeSet<OwnerToken>,
    /// When those were heard of who have asked for a lock that somebody shares.
    heard: BTreeMap<OwnerToken, Instant>,
    expires: Instant,
}

impl Queue {
    pub(super) const fn new(now: Instant) -> Self {
        Self { tokens: BTreeSet::new(), sharing: BTreeSet::new(), heard: BTreeMap::new(), expires: now }
    }

    pub(super) fn is_gone(&self, now: Instant) -> bool {
        self.expires <= now || self.tokens.is_empty() && self.sharing.is_empty()
    }

    /// Whether `token` was not in it before.
    pub(super) fn add(&mut self, token: OwnerToken, now: Instant) -> bool {
        self.expires = now.after(QUEUE_EXPIRY);
        self.tokens.insert(token)
    }

    /// Puts `token` there, which is heard of now. Whether it was not in it before.
    pub(super) fn join(&mut self, token: OwnerToken, mode: Mode, now: Instant) -> bool {
        self.expires = now.after(QUEUE_EXPIRY);
        self.heard.insert(token, now);
        let (wanted, other) = match mode {
            Mode::Exclusive => (&mut self.tokens, &mut self.sharing),
            Mode::Shared | Mode::Permit => (&mut self.sharing, &mut self.tokens),
        };
        !other.remove(&token) & wanted.insert(token)
    }

    /// Puts `token` there, which shares the lock, and of which nobody knows when it was heard of.
    #[cfg(test)]
    pub(super) fn join_unheard(&mut self, token: OwnerToken, now: Instant) {
        self.expires = now.after(QUEUE_EXPIRY);
        self.sharing.insert(token);
    }

    /// Whether anybody in it shares the lock, or has asked for one that somebody shares.
    pub(super) fn concerns_readers(&self) -> bool {
        !self.sharing.is_empty() || !self.heard.is_empty()
    }

    /// Whether `token`, which waits, was not heard of for long. Of one that has come before anybody wanted to share the lock,
    /// that is found out from `now` on.
    pub(super) fn is_silent(&mut self, token: OwnerToken, now: Instant) -> bool {
        now.since(*self.heard.entry(token).or_insert(now)) > SILENT_AFTER
    }

    /// Those who want the lock alone, and behind them those who share it.
    #[cfg(test)]
    pub(super) fn tokens(&self) -> impl Iterator<Item = OwnerToken> {
        self.tokens.iter().chain(&self.sharing).copied()
    }

    /// All tokens, the next one first, each with what it waits for.
    pub(super) fn in_order(&self) -> Vec<(OwnerToken, Mode)> {
        let alone = self.tokens.iter().map(|token| (*token, Mode::Exclusive));
        let mut all: Vec<_> = alone.chain(self.sharing.iter().map(|token| (*token, Mode::Shared))).collect();
        all.sort_unstable_by_key(|(token, _)| *token);
        all
    }

    /// As what `token` waits, if it does.
    pub(super) fn mode_of(&self, token: OwnerToken) -> Option<Mode> {
        let shares = self.sharing.contains(&token).then_some(Mode::Shared);
        shares.or_else(|| self.tokens.contains(&token).then_some(Mode::Exclusive))
    }

    #[cfg(test)]
    pub(super) fn written(&self) -> Vec<(String, &'static str)> {
        let alone = self.tokens.iter().map(|token| (token.to_string(), "alone"));
        let sharing = self.sharing.iter().map(|token| (token.to_string(), "shared"));
        let heard = self.heard.keys().map(|token| (format!("{token}#"), "heard"));
        alone.chain(sharing).chain(heard).collect()
    }

    /// Whether `token` was in it.
    pub(super) fn remove(&mut self, token: OwnerToken) -> bool {
        self.heard.remove(&token);
        self.tokens.remove(&token) | self.sharing.remove(&token)
    }

    pub(super) fn pop_first(&mut self) -> Option<OwnerToken> {
        self.tokens.pop_first()
    }

    /// The first of those who want the lock alone.
    pub(super) fn first(&self) -> Option<OwnerToken> {
        self.tokens.first().copied()
    }

    /// The first of those who share it.
    pub(super) fn first_sharing(&self) -> Option<OwnerToken> {
        self.sharing.first().copied()
    }

    pub(super) fn last(&self) -> Option<OwnerToken> {
        self.tokens.last().max(self.sharing.last()).copied()
    }

    pub(super) fn len(&self) -> u32 {
        count(self.tokens.len() + self.sharing.len())
    }

    /// How many want the lock alone.
    pub(super) fn len_alone(&self) -> u32 {
        count(self.tokens.len())
    }

    /// How many tokens come before `token`; of those who share the lock, after all who want it alone.
    pub(super) fn rank(&self, token: OwnerToken) -> u32 {
        let before = |tokens: &BTreeSet<OwnerToken>| tokens.range(..token).count();
        count(if self.sharing.contains(&token) {
            self.tokens.len() + before(&self.sharing)
        } else {
            before(&self.tokens)
        })
    }
}

fn count(tokens: usize) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}
