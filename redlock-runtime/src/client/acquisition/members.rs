//! The calls of one process that share a lock by one token: its *members*.
//!
//! None of them owns the token. It is renewed for as long as any of them needs it, and given back by the last to leave. What
//! each has asked for beside that is its own, and seen to where its share is ([`Tenure`](crate::client::enclosing::Tenure)):
//! since when it has the lock, until when at the longest, its site and its span.
//!
//! 1. A call that has obtained the lock *opens* the token: it is the first member.
//! 2. Another one *joins* by what `protocol/candidate/joining` says; or it has waited for what the first one gets, and is
//!    admitted together with it.
//! 3. Under the mutex of the state, whoever leaves is told whether it was the last. From then on nobody joins.

use crate::stats::SiteId;
use crate::time::clock::Instant;
use std::collections::BTreeMap;

/// Those who have the lock by one token, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Members {
    all: BTreeMap<u32, Member>,
    next: u32,
    /// Until when the token is kept for them; `None` for as long as they run.
    end: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// By which site it counts and since when it has the lock, from when its call goes on.
    pub(super) begun: Option<(SiteId, Instant)>,
    /// When it is done with the lock, if by any time.
    pub(super) must_end: Option<Instant>,
}

impl Members {
    /// Whether all have left, or none has come.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Member> {
        self.all.values()
    }

    /// Admits a call that goes on by `must_end`: nothing is renewed for one that nobody polls.
    pub(super) fn admit(&mut self, must_end: Instant) -> u32 {
        // The first one is 1: see `NO_MEMBER`.
        self.next = self.next.wrapping_add(1);
        let number = self.next;
        self.all.insert(number, Member { begun: None, must_end: Some(must_end) });
        number
    }

    /// The member with that number is `member` from now on, if it is still there.
    pub(super) fn change(&mut self, number: u32, member: Member) {
        if let Some(before) = self.all.get_mut(&number) {
            *before = member;
        }
    }

    /// The member with that number leaves. `false` when it has left before.
    pub(super) fn remove(&mut self, number: u32) -> bool {
        self.all.remove(&number).is_some()
    }

    /// Until when the token is to be kept for them, if that is another time than the last time this was asked.
    pub(super) fn new_end(&mut self) -> Option<TokenEnd> {
        let mut all = self.all.values().map(|member| member.must_end);
        let end = all.try_fold(None, |latest, end| Some(latest.max(Some(end?)))).flatten();
        (std::mem::replace(&mut self.end, end) != end).then_some(TokenEnd(end))
    }
}

/// Until when the token of several calls is needed; `None` for as long as they run.
pub(super) struct TokenEnd(pub(super) Option<Instant>);
