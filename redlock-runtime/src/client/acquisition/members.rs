//! Calls of one process that share a lock under one token: its *members*.
//!
//! The token belongs to none of them. It is renewed for as long as any of them needs it, and the last to leave releases
//! it. All other requirements are those of the single call, and its share handles them
//! ([`BodyHold`](crate::client::enclosing::BodyHold)): the start of the hold, its latest end, its site and its span.
//!
//! 1. A call that has acquired the lock *opens* the token: it is the first member.
//! 2. Another call *joins* according to `protocol/candidate/joining`. Or it has waited for the result of the first one,
//!    and is admitted together with it.
//! 3. Under the mutex of the state, a leaving call learns if it was the last. After the last one, no call joins.

use crate::stats::SiteId;
use crate::time::clock::Instant;
use std::collections::BTreeMap;

/// Members by their numbers.
#[derive(Debug, Default)]
pub(super) struct Members {
    all: BTreeMap<u32, Member>,
    next: u32,
    /// Time until which the token is kept for them; `None` for as long as they run.
    end: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// Site and start of the hold, once the call has continued.
    pub(super) begun: Option<(SiteId, Instant)>,
    /// Time at which the member is done with the lock, if there is one.
    pub(super) must_end: Option<Instant>,
}

impl Members {
    /// Returns `true` if all members have left, or none has come.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Member> {
        self.all.values()
    }

    /// Admits a call that must continue by `must_end`, because nothing is renewed for a call that is not polled.
    pub(super) fn admit(&mut self, must_end: Instant) -> u32 {
        // The first number is 1: see `NO_MEMBER`.
        self.next = self.next.wrapping_add(1);
        let number = self.next;
        self.all.insert(number, Member { begun: None, must_end: Some(must_end) });
        number
    }

    /// Replaces the member with that number, if it is still there.
    pub(super) fn change(&mut self, number: u32, member: Member) {
        if let Some(before) = self.all.get_mut(&number) {
            *before = member;
        }
    }

    /// Removes the member with that number. Returns `false` if it has left before.
    pub(super) fn remove(&mut self, number: u32) -> bool {
        self.all.remove(&number).is_some()
    }

    /// Returns the time until which the token must be kept, if that has changed since the last call.
    pub(super) fn new_end(&mut self) -> Option<TokenEnd> {
        let mut all = self.all.values().map(|member| member.must_end);
        let end = all.try_fold(None, |latest, end| Some(latest.max(Some(end?)))).flatten();
        (std::mem::replace(&mut self.end, end) != end).then_some(TokenEnd(end))
    }
}

/// Time until which the token of several calls is needed; `None` for as long as they run.
pub(super) struct TokenEnd(pub(super) Option<Instant>);
