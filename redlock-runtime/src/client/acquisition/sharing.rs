//! How calls of one process get and leave the lock that they have by one token: its [members](super::members).

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

    /// Admits one more call, which has `wanted` the lock, if it may join those that have it and whoever wants to have it alone will be
    /// heard. Others may have to be woken when no mutex is held any more.
    pub(crate) fn join(&self, wanted: Wanted, now: Instant) -> (Option<u32>, Calls) {
        let mut state = self.lock();
        if state.candidate.claimed_until().is_some() || !state.candidate.is_passable(now) {
            // The answer that makes the lease longer may be here.
            state.take_in(self.shared.clock);
        }
        let are_any = state.members().is_some_and(|members| !members.is_empty());
        let joins =
            are_any && self.hears_others() && state.candidate.join(wanted, self.shared.policy.local_budget, now);
        let number = if joins { state.members().map(|members| members.admit(now.after(wanted.ttl))) } else { None };
        (number, state.watchers.called())
    }

    /// Takes in the answers that are here, for whoever asks what is known of the nodes while another call waits for them.
    pub(crate) fn look_for_answers(&self) {
        self.state().take_in(self.shared.clock);
    }

    /// Admits a call that has waited for the lock together with the first. `None` when all have left.
    pub(crate) fn admit(&self, now: Instant) -> Option<u32> {
        let mut state = self.lock();
        let must_end = now.after(state.candidate.terms().ttl);
        state.members().filter(|members| !members.is_empty()).map(|members| members.admit(must_end))
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
        members.change(number, Member { begun: Some((site, now)), must_end });
        let TokenEnd(end) = members.new_end()?;
        state.candidate.end_by(end);
        Some(state.candidate.counted_for(now))
    }

    /// The member with that number leaves. Whether it was the last, so that the token is to be given back.
    pub(crate) fn part(&self, number: u32) -> bool {
        let mut state = self.state();
        let Some(members) = state.members() else { return false };
        if !members.remove(number) {
            return false;
        }
        let is_last = members.is_empty();
        if let Some(TokenEnd(end)) = members.new_end().filter(|_| !is_last) {
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
        Some(state.members()?.iter().filter_map(holding).collect())
    }
}
