//! Metrics and events of the present call: when it ends, loses the lock or is about to lose it.
//!
//! A token passes from call to call, and each of them ends once: it releases the lock, passes it on, detaches it, or is
//! superseded. A loss is logged once, by the first that notices it: the body, the guard, the watchdog, or the end.

use super::Acquisition;
use super::present::{Incident, News, Present};
use super::state::State;
use crate::error::LossCause;
#[cfg(feature = "testing")]
use crate::lock::parts::Parts;
use crate::stats::SiteId;
use crate::time::clock::Instant;
use std::sync::Arc;
use std::time::Duration;
use tracing::Span;

/// Divisor of the `ttl`: a renewed lock with less than this part of its lease left is at risk.
const AT_RISK: u32 = 5;

/// Time for which further locks at risk are counted and not logged. Smaller: an outage of the servers is logged for
/// each lock of a process. Larger: it is logged later.
const QUIET: Duration = Duration::from_secs(1);

/// Present hold of a lock by this process.
pub(crate) struct Holding {
    pub(crate) site: SiteId,
    pub(crate) held_for: Duration,
    pub(crate) remaining: Duration,
}

impl Acquisition {
    /// Records that the present call does not have the lock any longer. Called before the token ends, because that
    /// hides a loss.
    pub(super) fn end_present(&self, state: &mut State, outcome: &'static str, now: Instant) -> Option<Box<News>> {
        let present = state.present.as_ref()?;
        let (site, is_slow) = (present.site, !present.is_lost && !present.is_of_members);
        // A body that has used up its time may not have noticed.
        if state.candidate.is_over(now) {
            // An arrived answer may have extended the lease.
            state.take_in(self.shared.clock);
        }
        let lost = self.note_loss(state, now);
        let (held, ttl) = (now.since(state.candidate.held_since()), state.candidate.terms().ttl);
        let is_slow = is_slow && held > ttl && lost.is_none();
        let news = if is_slow { Some(self.news(site, Some(Incident::Slow { held, ttl }))) } else { lost };
        self.count_present(state, (nanos(held), outcome), news)
    }

    /// Records the end of a call that has had the lock `since` then, when the lease is proven and another call already
    /// has the turn. If its time `is_used_up`, it should have been done before. Such a call is never slow: a token is
    /// passed on for one `ttl` in total.
    pub(super) fn pass_present(
        &self,
        state: &mut State,
        (since, is_used_up): (Instant, bool),
        now: Instant,
    ) -> Option<Box<News>> {
        let lost = if is_used_up { self.lose_present(state, LossCause::MaxHold, now.since(since)) } else { None };
        self.count_present(state, (now.nanos_since(since), "released"), lost)
    }

    /// Counts the end of the present call after `nanos`. `lost` is the event of a loss, if there was one. The outcome
    /// is recorded in the span of the call, if there is a span.
    fn count_present(
        &self,
        state: &mut State,
        (nanos, outcome): (u64, &'static str),
        lost: Option<Box<News>>,
    ) -> Option<Box<News>> {
        let Some(present) = state.present.take() else { return lost };
        if let Some(known) = self.shared.sites.get(present.site).filter(|_| !present.is_of_members) {
            known.counters.ended(nanos);
        }
        let Some(span) = state.take_span() else { return lost };
        let mut news = lost.unwrap_or_else(|| self.news(present.site, None));
        news.span = Some((span, if present.is_lost { "lost" } else { outcome }));
        Some(news)
    }

    /// Records a loss of the lock, if it is lost and that was not recorded before.
    pub(super) fn note_loss(&self, state: &mut State, now: Instant) -> Option<Box<News>> {
        let is_news = state.present.as_ref().is_some_and(Present::is_loss_unlogged) && state.candidate.is_over(now);
        if !is_news {
            return None;
        }
        let (cause, held) = (self.cause(state, now), state.candidate.held_for(now));
        self.lose_present(state, cause, held)
    }

    /// Records that the present call has lost the lock, after it had `held` it for that time.
    fn lose_present(&self, state: &mut State, cause: LossCause, held: Duration) -> Option<Box<News>> {
        let present = state.present.as_mut().filter(|present| present.is_loss_unlogged())?;
        present.is_lost = true;
        let site = present.site;
        if let Some(known) = self.shared.sites.get(site) {
            known.counters.lost();
            #[cfg(feature = "testing")]
            if let Some(notebook) = &self.shared.notebook {
                let event = crate::stats::LogEvent::Lost { cause: cause.clone() };
                let parts = self.subject.parts.as_deref().cloned();
                let single = || Parts::single(self.key().clone(), self.subject.mode);
                notebook.note((parts.unwrap_or_else(single), self.subject.mode), known.template(), event);
            }
        }
        Some(self.news(site, Some(Incident::Lost { cause, held })))
    }

    /// Records that a renewed lease is about to end, if that was not recorded before.
    pub(super) fn note_risk(&self, state: &mut State, now: Instant) -> Option<Box<News>> {
        let left = state.candidate.renewed_until()?.since(now);
        let ttl = state.candidate.terms().ttl;
        // Claims are short until they are confirmed.
        let whole =
            if state.candidate.depends_on_claims_until(now).is_some() { state.candidate.terms().claim() } else { ttl };
        let present = state.present.as_mut()?;
        let was_at_risk = present.is_at_risk;
        // A lease that was just renewed is not at risk, however short it is: the answers will restore it.
        present.is_at_risk = left < whole / AT_RISK || was_at_risk && left < whole / 2;
        let is_news = present.is_at_risk && !was_at_risk;
        let site = present.site;
        let times = is_news.then(|| self.shared.near_expiry.times(now, QUIET)).flatten()?;
        Some(self.news(site, Some(Incident::AtRisk { remaining: left, ttl, times })))
    }

    fn news(&self, site: SiteId, what: Option<Incident>) -> Box<News> {
        let known = self.shared.sites.get(site);
        let (template, line) = known.map_or((None, ("", 0)), |known| (known.template(), known.line()));
        Box::new(News {
            key: self.key().clone(),
            mode: self.subject.mode,
            redaction: self.shared.policy.redaction,
            template,
            line,
            what,
            span: None,
        })
    }

    /// Returns the span of the call that has that turn, if spans are enabled.
    pub(crate) fn span(&self, turn: u32) -> Option<Arc<Span>> {
        let state = self.state();
        if self.turn() == turn { state.span() } else { None }
    }

    /// Returns the present hold of the lock, if a call has it. For shared tokens, use [`holdings`](Self::holdings).
    pub(crate) fn holding(&self) -> Option<Holding> {
        let (state, now) = (self.state(), self.now());
        let present = state.present.as_ref()?;
        // If the nodes have taken the lock away, nothing is proven any longer.
        let remaining = state.candidate.held_until().map_or(Duration::ZERO, |end| end.since(now));
        Some(Holding { site: present.site, held_for: now.since(state.candidate.held_since()), remaining })
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
