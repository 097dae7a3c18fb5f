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

use super::noting::Holding;
use super::present::Present;
use super::{Acquisition, Calls};
use crate::protocol::candidate::Wanted;
use crate::protocol::hold_options::HoldOptions;
use crate::protocol::rules::Rule;
use crate::stats::SiteId;
use crate::time::clock::Instant;
use std::collections::BTreeMap;
use std::time::Duration;

/// Those who have the lock by one token, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Members {
    all: BTreeMap<u32, Member>,
    next: u32,
    /// Until when the token is kept for them.
    end: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    /// By which site it counts and since when it has the lock, from when its call goes on.
    begun: Option<(SiteId, Instant)>,
    must_end: Option<Instant>,
}

impl Members {
    /// Admits a call that goes on by `must_end`: nothing is renewed for one that nobody polls.
    fn admit(&mut self, must_end: Instant) -> u32 {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.all.insert(number, Member { begun: None, must_end: Some(must_end) });
        number
    }

    /// Notes until when the token is to be kept for them. Whether that has changed.
    fn has_changed_end(&mut self) -> bool {
        let end = self.end();
        std::mem::replace(&mut self.end, end) != end
    }

    /// Until when any of them needs the lock; `None` for as long as they run.
    fn end(&self) -> Option<Instant> {
        self.all
            .values()
            .map(|member| member.must_end)
            .try_fold(None, |latest, end| Some(latest.max(Some(end?))))
            .flatten()
    }
}

impl Acquisition {
    /// The call that has obtained the lock is the first of those that have it by this token, and others may join. Returns its
    /// number.
    pub(crate) fn open(&self, site: SiteId, now: Instant) -> u32 {
        let mut state = self.state();
        state.candidate.begin(HoldOptions { renew: true, ..HoldOptions::UNTIL_BEGUN }, now);
        state.present = Some(Present::of_members(site));
        let must_end = now.after(state.candidate.terms().ttl);
        let number = state.rare().members.get_or_insert_default().admit(must_end);
        self.answer(&mut state);
        number
    }

    /// Admits one more call, which has `wanted` the lock, if it may join those that have it. Others may have to be woken when no
    /// mutex is held any more.
    pub(crate) fn join(&self, wanted: Wanted, now: Instant) -> (Option<u32>, Calls) {
        let mut state = self.lock();
        if state.candidate.claimed_until().is_some() || !state.candidate.is_passable(now) {
            // The answer that makes the lease longer may be here.
            state.take_in(self.shared.clock);
        }
        let are_any = state.members().is_some_and(|members| !members.all.is_empty());
        let joins = are_any && state.candidate.join(wanted, self.shared.policy.local_budget, now);
        let number = if joins { state.members().map(|members| members.admit(now.after(wanted.ttl))) } else { None };
        (number, state.watchers.called())
    }

    /// Admits a call that has waited for the lock together with the first. `None` when all have left.
    pub(crate) fn admit(&self, now: Instant) -> Option<u32> {
        let mut state = self.lock();
        let must_end = now.after(state.candidate.terms().ttl);
        state.members().filter(|members| !members.all.is_empty()).map(|members| members.admit(must_end))
    }

    /// The member with that number goes on from `now`, and is done by `must_end`, if by any time. Returns for how long the lock
    /// is counted on, if it is to be looked at sooner than before.
    pub(crate) fn begin_member(
        &self,
        number: u32,
        site: SiteId,
        must_end: Option<Instant>,
        now: Instant,
    ) -> Option<Duration> {
        let mut state = self.state();
        let members = state.members()?;
        *members.all.get_mut(&number)? = Member { begun: Some((site, now)), must_end };
        let (has_changed, end) = (members.has_changed_end(), members.end);
        state.candidate.end_by(end);
        has_changed.then(|| state.candidate.counted_for(now))
    }

    /// The member with that number leaves. Whether it was the last, so that the token is to be given back.
    pub(crate) fn part(&self, number: u32) -> bool {
        let mut state = self.state();
        let Some(members) = state.members() else { return false };
        if members.all.remove(&number).is_none() {
            return false;
        }
        let is_last = members.all.is_empty();
        if members.has_changed_end() && !is_last {
            let end = members.end;
            state.candidate.end_by(end);
        }
        is_last || !self.shared.rules.apply(Rule::TheLastOneReleases)
    }

    /// What each member has of the lock; `None` for a lock that is one call's.
    pub(crate) fn holdings(&self) -> Option<Vec<Holding>> {
        let (mut state, now) = (self.state(), self.now());
        // Of a lock that the nodes have taken away, nothing is proven any more.
        let proven = state.candidate.held_until().map_or(Duration::ZERO, |end| end.since(now));
        let holding = |member: &Member| {
            let (site, since) = member.begun?;
            let remaining = member.must_end.map_or(proven, |end| proven.min(end.since(now)));
            Some(Holding { site, held_for: now.since(since), remaining })
        };
        Some(state.members()?.all.values().filter_map(holding).collect())
    }
}
