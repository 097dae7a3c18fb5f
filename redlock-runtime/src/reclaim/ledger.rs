//! What became of the releases sent to one node, and what the node owes.

use crate::changes;
use crate::clock::{Clock, Instant};
use crate::error::NodeError;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// A node that leaves a release unanswered for this long is asked nothing more until it answers.
const STALLED_AFTER: Duration = Duration::from_secs(1);
/// More unanswered releases than this, and the node is asked nothing more until it answers: bounds the memory that a
/// frozen node can cost before `STALLED_AFTER` is over.
const MOST_UNANSWERED: usize = 50_000;

/// What became of the releases sent to one node.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// The node, as it is called.
    pub(super) label: Box<str>,
    clock: Clock,
    pub(super) unanswered: AtomicUsize,
    /// How many of them nobody but their connection looks after.
    owed: AtomicUsize,
    /// Since when none of those was answered, in milliseconds of the clock; 0 when there are none.
    owed_since: AtomicU64,
    /// Since when the collector has been waiting for an answer, likewise.
    pub(super) waiting_since: AtomicU64,
    /// The time, in milliseconds of the clock, after which no unanswered release can matter any more.
    pub(super) matters_until: AtomicU64,
    pub(super) answered: Notify,
    pub(crate) not_owner: AtomicU64,
    pub(crate) sent_again: AtomicU64,
    pub(crate) abandoned: AtomicU64,
}

impl Ledger {
    pub(super) fn new(label: &str, clock: Clock) -> Self {
        let [unanswered, owed] = [const { AtomicUsize::new(0) }; 2];
        let [owed_since, waiting_since, matters_until, not_owner, sent_again, abandoned] =
            [const { AtomicU64::new(0) }; 6];
        let (label, answered) = (label.into(), Notify::new());
        Self {
            label,
            clock,
            unanswered,
            owed,
            owed_since,
            waiting_since,
            matters_until,
            answered,
            not_owner,
            sent_again,
            abandoned,
        }
    }

    /// A release was sent that nobody but its connection looks after.
    pub(super) fn owes(&self) {
        self.owed.fetch_add(1, Ordering::Relaxed);
        if self.owed_since.load(Ordering::Relaxed) == 0 {
            self.owed_since.store(self.now(), Ordering::Relaxed);
        }
    }

    /// One of those was answered.
    pub(super) fn heard(&self) {
        let is_last = self.owed.fetch_sub(1, Ordering::Relaxed) == 1;
        self.owed_since.store(if is_last { 0 } else { self.now() }, Ordering::Relaxed);
    }

    /// Never 0, which stands for no time at all.
    fn now(&self) -> u64 {
        self.clock.now().millis().max(1)
    }

    /// Why nothing more is asked of the node, if so.
    pub(super) fn refusal(&self, now: Instant) -> Option<NodeError> {
        let waited = |since: &AtomicU64| match since.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            since => now.since(Instant::from_origin(Duration::from_millis(since))),
        };
        // Two that count at the same time may leave a time behind when nothing is owed any more.
        let is_owed = self.owed.load(Ordering::Relaxed) > 0;
        let owed_for = if is_owed { waited(&self.owed_since) } else { Duration::ZERO };
        let waited = waited(&self.waiting_since).max(owed_for);
        // The number is looked at for itself: on a runtime that is not driven, nobody measures the time.
        let is_overdue = waited >= STALLED_AFTER || self.unanswered.load(Ordering::Relaxed) > MOST_UNANSWERED;
        is_overdue.then_some(NodeError::Stalled(waited))
    }

    /// Waits until every release is answered. `false` when some were not before they ceased to matter.
    pub(crate) async fn drained(&self) -> bool {
        let abandoned = self.abandoned.load(Ordering::Relaxed);
        let limit = Instant::from_origin(Duration::from_millis(self.matters_until.load(Ordering::Relaxed)));
        let all = changes::until(&self.answered, || self.unanswered.load(Ordering::Acquire) == 0);
        let is_in_time = tokio::time::timeout(limit.since(self.clock.now()), all).await.is_ok();
        is_in_time && self.abandoned.load(Ordering::Relaxed) == abandoned
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn a_node_that_answers_nothing_is_refused_until_it_answers() {
        let (clock, half) = (Clock::tokio(), STALLED_AFTER / 2);
        let ledger = Ledger::new("node", clock);
        let is_refused = || ledger.refusal(clock.now()).is_some();
        advance(STALLED_AFTER).await;
        assert!(!is_refused(), "nothing is owed");
        ledger.owes();
        advance(half).await;
        ledger.owes();
        assert!(!is_refused());
        advance(half).await;
        assert!(is_refused(), "the first one is late");
        ledger.heard();
        assert!(!is_refused(), "it answers, and the other one has time from now on");
        advance(STALLED_AFTER).await;
        assert!(is_refused());
        ledger.heard();
        assert!(!is_refused());
        advance(STALLED_AFTER).await;
        assert!(!is_refused(), "nothing is owed any more");
    }
}
