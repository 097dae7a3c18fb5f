//! Tokens that wait for one name.

use crate::lock::OwnerToken;
use crate::lock::class::Class;
use crate::protocol::timing::{QUEUE_EXPIRY, SILENT_AFTER};
use crate::time::clock::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// Class in which a token waits for a name, and whether it waits for other names as well. This is the score of its
/// entry in Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) class: Class,
    pub(crate) has_several: bool,
}

impl Line {
    pub(crate) const ALONE: Self = Self { class: Class::Exclusive, has_several: false };
    pub(crate) const SHARING: Self = Self { class: Class::Shared, has_several: false };

    /// All lines in the order of their scores. A token with an intent for a name also waits for a name below it.
    pub(crate) const ALL: [Self; 6] = [
        Self::ALONE,
        Self::SHARING,
        Self { class: Class::IntentExclusive, has_several: true },
        Self { class: Class::IntentShared, has_several: true },
        Self { class: Class::Exclusive, has_several: true },
        Self { class: Class::Shared, has_several: true },
    ];

    pub(crate) const fn new(class: Class, has_several: bool) -> Self {
        Self { class, has_several: has_several || class.is_intent() }
    }

    /// Returns the score in Redis, which is also the index in [`ALL`](Self::ALL).
    pub(crate) const fn score(self) -> usize {
        match (self.class, self.has_several) {
            (Class::Exclusive, false) => 0,
            (Class::Shared, false) => 1,
            (Class::IntentExclusive, _) => 2,
            (Class::IntentShared, _) => 3,
            (Class::Exclusive, true) => 4,
            (Class::Shared, true) => 5,
        }
    }
}

#[derive(Debug)]
pub(super) struct Queue {
    /// Waiters of each line, by the score of the line.
    lines: [BTreeSet<OwnerToken>; Line::ALL.len()],
    /// Last sign of life of each token that has asked for a shared lock or for several names.
    heard: BTreeMap<OwnerToken, Instant>,
    untold: Option<Untold>,
    expires: Instant,
}

/// Waiters that were not notified that the name is free, because there were too many for one command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Untold {
    /// First of these waiters.
    pub(super) from: OwnerToken,
    /// For each line, by its score: `true` if its waiters are meant.
    pub(super) lines: [bool; Line::ALL.len()],
}

impl Queue {
    pub(super) const fn new(now: Instant) -> Self {
        Self { lines: [const { BTreeSet::new() }; Line::ALL.len()], heard: BTreeMap::new(), untold: None, expires: now }
    }

    pub(super) fn is_gone(&self, now: Instant) -> bool {
        self.expires <= now || self.lines.iter().all(BTreeSet::is_empty)
    }

    fn line(&self, line: Line) -> Option<&BTreeSet<OwnerToken>> {
        self.lines.get(line.score())
    }

    pub(super) fn has_waiters(&self, line: Line) -> bool {
        self.line(line).is_some_and(|tokens| !tokens.is_empty())
    }

    /// Adds `token`. Returns `true` if it was not in the queue before.
    pub(super) fn add(&mut self, token: OwnerToken, now: Instant) -> bool {
        self.expires = now.after(QUEUE_EXPIRY);
        self.insert(token, Line::ALONE)
    }

    fn insert(&mut self, token: OwnerToken, line: Line) -> bool {
        self.lines.get_mut(line.score()).is_some_and(|tokens| tokens.insert(token))
    }

    /// Adds `token` with a sign of life at `now`. Returns `true` if it was not in the queue before.
    pub(super) fn join(&mut self, token: OwnerToken, line: Line, now: Instant) -> bool {
        self.expires = now.after(QUEUE_EXPIRY);
        let was_there = self.lines.iter_mut().any(|tokens| tokens.remove(&token));
        self.heard.insert(token, now);
        self.insert(token, line);
        !was_there
    }

    /// Adds `token` as a reader, without a sign of life.
    #[cfg(any(test, fuzzing))]
    pub(super) fn join_unheard(&mut self, token: OwnerToken, now: Instant) {
        self.expires = now.after(QUEUE_EXPIRY);
        self.insert(token, Line::SHARING);
    }

    /// Returns `true` if a waiter wants to share the lock or several names, or has asked for a shared lock.
    pub(super) fn concerns_readers(&self) -> bool {
        self.lines.iter().skip(1).any(|tokens| !tokens.is_empty()) || !self.heard.is_empty() || self.untold.is_some()
    }

    /// Returns `true` if the waiting `token` has been silent for long. Without a sign of life, its silence is counted
    /// from `now` on: it came before the lock was shared. A sign of life in the future, by a clock that was set back
    /// since, counts as now.
    pub(super) fn check_silence(&mut self, token: OwnerToken, now: Instant) -> bool {
        let heard = self.heard.entry(token).or_insert(now);
        *heard = (*heard).min(now);
        now.since(*heard) > SILENT_AFTER
    }

    pub(super) const fn notify_later(&mut self, untold: Untold) {
        self.untold = Some(untold);
    }

    pub(super) const fn has_untold(&self) -> bool {
        self.untold.is_some()
    }

    /// Removes and returns the waiters that must still be notified. The caller notifies them.
    pub(super) const fn take_untold(&mut self) -> Option<Untold> {
        self.untold.take()
    }

    /// Returns all waiters, by the lines.
    #[cfg(any(test, fuzzing))]
    pub(super) fn tokens(&self) -> impl Iterator<Item = OwnerToken> {
        self.lines.iter().flatten().copied()
    }

    /// Returns all tokens, the next one first, each with its class.
    pub(super) fn in_order(&self) -> Vec<(OwnerToken, Class)> {
        let of_line = |(line, tokens): (&Line, &BTreeSet<OwnerToken>)| {
            tokens.iter().map(|token| (*token, line.class)).collect::<Vec<_>>()
        };
        let mut all: Vec<_> = Line::ALL.iter().zip(&self.lines).flat_map(of_line).collect();
        all.sort_unstable_by_key(|(token, _)| *token);
        all
    }

    /// Returns the line in which `token` waits, if it does.
    pub(super) fn line_of(&self, token: OwnerToken) -> Option<Line> {
        Line::ALL.iter().zip(&self.lines).find(|(_, tokens)| tokens.contains(&token)).map(|(line, _)| *line)
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn written(&self) -> Vec<(String, &'static str)> {
        let words = ["alone", "shared", "for one below", "to share below", "alone, with others", "shared, with others"];
        let lines = self.lines.iter().zip(words);
        let waiting = lines.flat_map(|(tokens, word)| tokens.iter().map(move |token| (token.to_string(), word)));
        let untold = self.untold.map(|Untold { from, lines }| {
            let meant = lines.iter().zip("012345".chars()).filter(|(is_meant, _)| **is_meant);
            (format!("{from}>{}", meant.map(|(_, line)| line).collect::<String>()), "not told")
        });
        let heard = self.heard.keys().map(|token| (format!("{token}#"), "heard"));
        waiting.chain(heard).chain(untold).collect()
    }

    /// Removes `token`. Returns `true` if it was in the queue.
    pub(super) fn remove(&mut self, token: OwnerToken) -> bool {
        self.heard.remove(&token);
        self.lines.iter_mut().any(|tokens| tokens.remove(&token))
    }

    /// Returns the first waiter of the line behind `passed`.
    pub(super) fn first_behind(&self, line: Line, passed: Bound<OwnerToken>) -> Option<OwnerToken> {
        self.line(line)?.range((passed, Bound::Unbounded)).next().copied()
    }

    /// Returns the first waiter that conflicts with this class.
    pub(super) fn first_against(&self, class: Class) -> Option<OwnerToken> {
        self.lines_against(class).filter_map(|tokens| tokens.first().copied()).min()
    }

    fn lines_against(&self, class: Class) -> impl Iterator<Item = &BTreeSet<OwnerToken>> {
        Line::ALL
            .iter()
            .zip(&self.lines)
            .filter(move |(line, _)| class.conflicts_with(line.class))
            .map(|(_, line)| line)
    }

    pub(super) fn last(&self) -> Option<OwnerToken> {
        self.lines.iter().filter_map(|tokens| tokens.last().copied()).max()
    }

    pub(super) fn len(&self) -> u32 {
        count(self.lines.iter().map(BTreeSet::len).sum())
    }

    /// Returns the number of waiters that conflict with this class.
    pub(super) fn len_against(&self, class: Class) -> u32 {
        count(self.lines_against(class).map(BTreeSet::len).sum())
    }

    /// Returns the number of tokens before `token`, in the order of the scores.
    pub(super) fn rank(&self, token: OwnerToken) -> u32 {
        let Some(line) = self.line_of(token) else { return 0 };
        let before = self.lines.iter().take(line.score()).map(BTreeSet::len).sum::<usize>();
        count(before + self.line(line).map_or(0, |tokens| tokens.range(..token).count()))
    }
}

fn count(tokens: usize) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}
