//! Joining and leaving of calls that share a lock under one token: its [members](super::members).

use super::members::{Member, TokenEnd};
use super::noting::Holding;
use super::present::Present;
use super::{Acquisition, Calls};
use crate::protocol::candidate::Wanted;
use crate::protocol::hold_options::HoldOptions;
use crate::protocol::rules::Rule;
use crate::stats::SiteId;
use crate::time::clock::Instant;
use std::time::Duration;

impl Acquisition {
    /// Makes the call that has acquired the lock the first member; others may join. Returns its number.
    pub(crate) fn open(&self, site: SiteId, now: Instant) -> u32 {
        let mut state = self.state();
        state.candidate.begin(HoldOptions { renew: true, ..HoldOptions::UNTIL_BEGUN }, now);
        state.present = Some(Present::of_members(site));
        let must_end = now.after(state.candidate.terms().ttl);
        let number = state.rare().members.get_or_insert_default().admit(must_end);
        self.answer(&mut state);
        number
    }

    /// Admits one more call, which has `wanted` the lock, if it may join the members and a waiting writer would be
    /// noticed. The returned calls must be woken after every mutex is free.
    pub(crate) fn join(&self, wanted: Wanted, now: Instant) -> (Option<u32>, Calls) {
        let mut state = self.lock();
        if state.candidate.claimed_until().is_some() || !state.candidate.is_passable(now) {
            // An answer that extends the lease may have arrived.
            state.take_in(self.shared.clock);
        }
        let are_any = state.members().is_some_and(|members| !members.is_empty());
        let joins =
            are_any && self.hears_others() && state.candidate.join(wanted, self.shared.policy.local_budget, now);
        let number = if joins { state.members().map(|members| members.admit(now.after(wanted.ttl))) } else { None };
        (number, state.watchers.called())
    }

    /// Processes the arrived answers, for a caller that examines the nodes while another call waits for them.
    pub(crate) fn process_arrived_replies(&self) {
        self.state().take_in(self.shared.clock);
    }

    /// Admits a call that has waited for the lock together with the first. Returns `None` if all have left.
    pub(crate) fn admit(&self, now: Instant) -> Option<u32> {
        let mut state = self.lock();
        let must_end = now.after(state.candidate.terms().ttl);
        state.members().filter(|members| !members.is_empty()).map(|members| members.admit(must_end))
    }

    /// Begins the use of the lock by the member with that number at `now`, until `must_end` at the latest. If the lock
    /// needs an earlier check than before, returns the time for which it needs none.
    pub(crate) fn begin_member(
        &self,
        number: u32,
        site: SiteId,
        must_end: Option<Instant>,
        now: Instant,
    ) -> Option<Duration> {
        let mut state = self.state();
        let members = state.members()?;
        members.change(number, Member { begun: Some((site, now)), must_end });
        let TokenEnd(end) = members.new_end()?;
        state.candidate.set_must_end(end);
        Some(state.candidate.check_within(now))
    }

    /// Removes the member with that number. Returns `true` if it was the last, so that the token must be released.
    pub(crate) fn part(&self, number: u32) -> bool {
        let mut state = self.state();
        let Some(members) = state.members() else { return false };
        if !members.remove(number) {
            return false;
        }
        let is_last = members.is_empty();
        if let Some(TokenEnd(end)) = members.new_end().filter(|_| !is_last) {
            state.candidate.set_must_end(end);
        }
        is_last || !self.shared.rules.apply(Rule::TheLastOneReleases)
    }

    /// Returns the hold of each member; `None` for a lock that is not shared.
    pub(crate) fn holdings(&self) -> Option<Vec<Holding>> {
        let (mut state, now) = (self.state(), self.now());
        // If the nodes have taken the lock away, nothing is proven any longer.
        let proven = state.candidate.held_until().map_or(Duration::ZERO, |end| end.since(now));
        let holding = |member: &Member| {
            let (site, since) = member.begun?;
            let remaining = member.must_end.map_or(proven, |end| proven.min(end.since(now)));
            Some(Holding { site, held_for: now.since(since), remaining })
        };
        Some(state.members()?.iter().filter_map(holding).collect())
    }
}
