//! Outcomes of the releases to one node, and its unanswered commands.

use super::leaving_tokens::LeavingTokens;
use super::owed::Owed;
use crate::client::timers::timeout;
use crate::error::NodeError;
use crate::observe::Redaction;
use crate::protocol::last_command::{LastCommand, MOST_STRAYS};
use crate::time::clock::{Clock, Instant};
use crate::time::wait_until::wait_until;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Notify;

/// Time without an answer to a release or a renewal after which a node is asked nothing further until it answers.
/// Smaller: a short pause of a server costs its vote. Larger: calls keep waiting for a node that is gone, and
/// unanswered renewals of many locks take memory.
const STALLED_AFTER: Duration = Duration::from_secs(1);
/// Further time for an overdue node, in case this process was paused. Smaller: a process that was suspended refuses
/// healthy nodes. Larger: a frozen node costs its node timeout for longer.
const SECOND_CHANCE: Duration = Duration::from_millis(50);
/// Number of unanswered releases above which the node is asked nothing further until it answers. Smaller: a burst of
/// releases refuses a healthy node. Larger: a frozen node costs more memory before `STALLED_AFTER` is over.
const MOST_UNANSWERED: usize = 50_000;

/// Ledger of the releases to one node.
#[derive(Debug)]
pub(crate) struct ReleaseLedger {
    /// Name of the node.
    pub(super) label: Box<str>,
    clock: Clock,
    /// Set if the node is a cluster whose parts answer independently, or if this is one part.
    pub(super) has_parts: bool,
    unanswered: AtomicUsize,
    /// Number of unanswered releases that answer messages about unknown tokens.
    strays: AtomicUsize,
    /// Unanswered releases that only their connection tracks.
    owed: Owed,
    /// Time since which the collector has been waiting for an answer, in milliseconds of the clock; 0 while it does
    /// not.
    waiting_since: AtomicU64,
    /// Time since which the watched renewal has been unanswered, in the same unit. It represents all later renewals.
    renewing_since: AtomicU64,
    /// Time since which an answer has been known to be overdue, in the same unit.
    overdue_since: AtomicU64,
    /// Time, in milliseconds of the clock, after which no unanswered release can matter.
    matters_until: AtomicU64,
    answered: Notify,
    pub(crate) leaving: LeavingTokens,
    /// Form of keys in events. If it is not set, keys are shown unchanged.
    pub(crate) redaction: OnceLock<Redaction>,
    pub(crate) not_owner: AtomicU64,
    pub(crate) sent_again: AtomicU64,
    pub(crate) abandoned: AtomicU64,
}

impl ReleaseLedger {
    pub(crate) fn new(label: &str, clock: Clock) -> Self {
        let [waiting_since, renewing_since, overdue_since, matters_until, not_owner, sent_again, abandoned] =
            [const { AtomicU64::new(0) }; 7];
        let (label, answered, leaving) = (label.into(), Notify::new(), LeavingTokens::default());
        Self {
            label,
            clock,
            has_parts: false,
            unanswered: AtomicUsize::new(0),
            strays: AtomicUsize::new(0),
            owed: Owed::nothing(),
            waiting_since,
            renewing_since,
            overdue_since,
            matters_until,
            answered,
            leaving,
            redaction: OnceLock::new(),
            not_owner,
            sent_again,
            abandoned,
        }
    }

    /// Creates the ledger of a cluster, whose parts answer independently.
    pub(crate) fn of_parts(label: &str, clock: Clock) -> Self {
        Self { has_parts: true, ..Self::new(label, clock) }
    }

    /// Creates the ledger of one part of the node.
    pub(crate) fn of_part(&self) -> Self {
        let redaction = self.redaction.clone();
        Self { redaction, ..Self::of_parts(&self.label, self.clock) }
    }

    /// Returns `true` if a release of an unknown token may be sent.
    pub(crate) fn has_room_for_stray(&self) -> bool {
        self.strays.load(Ordering::Relaxed) < MOST_STRAYS
    }

    /// Records that a release is sent.
    pub(super) fn begin(&self, last: &LastCommand) {
        self.strays.fetch_add(usize::from(last.is_stray), Ordering::Relaxed);
        self.unanswered.fetch_add(1, Ordering::Relaxed);
        self.matters_until.fetch_max(last.matters_until.millis(), Ordering::Relaxed);
    }

    /// Records that a release is settled, or given up.
    pub(super) fn end(&self, last: &LastCommand) {
        self.strays.fetch_sub(usize::from(last.is_stray), Ordering::Relaxed);
        if self.unanswered.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.answered.notify_waiters();
        }
    }

    /// Records that a release was sent that only its connection tracks.
    pub(super) fn owes(&self) {
        self.owed.owes(self.now());
    }

    /// Records that such a release was answered.
    pub(super) fn heard(&self) {
        self.owed.heard(self.now());
        self.overdue_since.store(0, Ordering::Relaxed);
        // The watched renewal may have moved to another member of a cluster.
        self.renewing_since.store(0, Ordering::Relaxed);
    }

    /// Records that the collector waits for an answer, or for another one.
    pub(super) fn waits(&self) {
        let _before = self.waiting_since.compare_exchange(0, self.now(), Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Records that the collector has got the answer.
    pub(super) fn record_collector_answer(&self) {
        self.waiting_since.store(0, Ordering::Relaxed);
        self.overdue_since.store(0, Ordering::Relaxed);
    }

    /// Watches a renewal that is about to be sent. The returned value must be dropped when it is answered, or never
    /// will be. Returns `None` if another renewal is watched.
    pub(crate) fn watch_renewal(self: &Arc<Self>) -> Option<WatchedRenewal> {
        if self.renewing_since.load(Ordering::Relaxed) != 0 {
            return None;
        }
        let since = self.now();
        let is_first = self.renewing_since.compare_exchange(0, since, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        is_first.then(|| WatchedRenewal { ledger: Arc::clone(self), since })
    }

    /// Returns the present time, which is never 0, because 0 means that there is no time.
    fn now(&self) -> u64 {
        self.clock.now().millis().max(1)
    }

    /// Returns the reason that no further command is sent to the node, if there is one.
    pub(crate) fn refusal(&self, now: Instant) -> Option<NodeError> {
        let for_how_long = |since: u64| match since {
            0 => Duration::ZERO,
            since => now.since(Instant::from_origin(Duration::from_millis(since))),
        };
        let waiting = for_how_long(self.waiting_since.load(Ordering::Relaxed));
        let renewing = for_how_long(self.renewing_since.load(Ordering::Relaxed));
        let waited = waiting.max(renewing).max(for_how_long(self.owed.since()));
        let overdue = for_how_long(self.overdue_since.load(Ordering::Relaxed));
        let is_stalled = waited >= STALLED_AFTER && self.mark_and_check_overdue(overdue);
        let is_refused = is_stalled || self.unanswered.load(Ordering::Relaxed) > MOST_UNANSWERED;
        is_refused.then_some(NodeError::Stalled(waited))
    }

    /// Returns `true` if an answer was already overdue some time ago, and later commands have not changed that.
    ///
    /// If this process was paused, every command in flight is overdue: the answers have arrived, and were not processed
    /// yet.
    fn mark_and_check_overdue(&self, overdue_for: Duration) -> bool {
        let _first = self.overdue_since.compare_exchange(0, self.now(), Ordering::Relaxed, Ordering::Relaxed);
        overdue_for >= SECOND_CHANCE
    }

    /// Waits until every release is answered. Returns `false` if some were not answered before they ceased to matter.
    pub(crate) async fn drained(&self) -> bool {
        let abandoned = self.abandoned.load(Ordering::Relaxed);
        let limit = Instant::from_origin(Duration::from_millis(self.matters_until.load(Ordering::Relaxed)));
        let all = wait_until(&self.answered, || self.unanswered.load(Ordering::Acquire) == 0);
        let is_in_time = timeout(limit.since(self.clock.now()), all).await.is_ok();
        is_in_time && self.abandoned.load(Ordering::Relaxed) == abandoned
    }
}

/// Watched renewal, whose answer shows that the node is healthy; dropped with the answer.
pub(crate) struct WatchedRenewal {
    ledger: Arc<ReleaseLedger>,
    since: u64,
}

impl Drop for WatchedRenewal {
    fn drop(&mut self) {
        let ledger = &self.ledger;
        // Another one may be watched by now.
        let _other = ledger.renewing_since.compare_exchange(self.since, 0, Ordering::Relaxed, Ordering::Relaxed);
        ledger.overdue_since.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn unresponsive_node_is_refused_until_it_answers() {
        let (clock, half) = (Clock::tokio(), STALLED_AFTER / 2);
        let ledger = ReleaseLedger::new("node", clock);
        let is_refused = || ledger.refusal(clock.now()).is_some();
        advance(STALLED_AFTER).await;
        assert!(!is_refused(), "nothing is owed");
        ledger.owes();
        advance(half).await;
        ledger.owes();
        assert!(!is_refused());
        advance(half).await;
        assert!(!is_refused(), "the first one is late, which may be our own fault");
        advance(SECOND_CHANCE).await;
        assert!(is_refused(), "and still is");
        ledger.heard();
        assert!(!is_refused(), "it answers, and the other one has time from now on");
        advance(STALLED_AFTER).await;
        assert!(!is_refused());
        advance(SECOND_CHANCE).await;
        assert!(is_refused());
        ledger.heard();
        advance(STALLED_AFTER).await;
        assert!(!is_refused(), "nothing is owed any more");
    }

    #[tokio::test(start_paused = true)]
    async fn one_pending_renewal_at_a_time_probes_the_node() {
        let clock = Clock::tokio();
        let ledger = Arc::new(ReleaseLedger::new("node", clock));
        let is_refused = || ledger.refusal(clock.now()).is_some();
        advance(STALLED_AFTER).await;
        assert!(!is_refused(), "nothing is owed");
        let watched = ledger.watch_renewal().unwrap();
        assert!(ledger.watch_renewal().is_none(), "one stands for all");
        advance(STALLED_AFTER).await;
        assert!(!is_refused(), "it is late, which may be our own fault");
        advance(SECOND_CHANCE).await;
        assert!(is_refused());
        drop(watched);
        assert!(!is_refused(), "it has answered");
        let before = ledger.watch_renewal().unwrap();
        ledger.owes();
        ledger.heard();
        advance(SECOND_CHANCE).await;
        let after = ledger.watch_renewal().expect("a release was answered, so that the node is well");
        drop(before);
        assert!(ledger.watch_renewal().is_none(), "the one after it is watched");
        drop(after);
        advance(2 * STALLED_AFTER).await;
        assert!(!is_refused(), "nothing is owed");
    }

    #[tokio::test(start_paused = true)]
    async fn paused_process_does_not_refuse_the_node() {
        let clock = Clock::tokio();
        let ledger = ReleaseLedger::new("node", clock);
        ledger.owes();
        advance(10 * STALLED_AFTER).await;
        for _ in 0..100 {
            assert!(ledger.refusal(clock.now()).is_none());
        }
        ledger.heard();
        ledger.waits();
        advance(10 * STALLED_AFTER).await;
        assert!(ledger.refusal(clock.now()).is_none());
        ledger.record_collector_answer();
        advance(10 * STALLED_AFTER).await;
        assert!(ledger.refusal(clock.now()).is_none());
    }
}
