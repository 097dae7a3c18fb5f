//! Counters of one call site.
//!
//! A call that receives its lock from another call of the process takes about a microsecond, and increments these counters three
//! times. So a number that follows from other numbers has no counter. The number of holding calls is the difference of acquired and
//! ended calls. The number of waiting calls is the difference of started calls and outcomes.

use super::histogram::{Histogram, Recorder};
use super::{LockSite, SiteStats};
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one call site.
#[derive(Debug, Default)]
pub(crate) struct SiteCounters {
    asked: AtomicU64,
    /// Counters by [`Failure`].
    failed: [AtomicU64; FAILURES],
    lost: AtomicU64,
    wait: Recorder,
    hold: Recorder,
}

/// Outcome of a call without a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Contended,
    TimedOut,
    NoQuorum,
    /// The error is permanent, or the manager was shut down.
    Refused,
    /// The future was dropped.
    Cancelled,
}

const FAILURES: usize = 5;

/// Number of reads of counters that change meanwhile: 3. Too small: a few calls of a busy site are missing. Too large: reading takes longer
/// without use.
const TRIES: usize = 3;

impl Failure {
    /// Returns the name in events and metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Contended => "contended",
            Self::TimedOut => "timed_out",
            Self::NoQuorum => "no_quorum",
            Self::Refused => "refused",
            Self::Cancelled => "cancelled",
        }
    }
}

impl SiteCounters {
    /// Counts a call that starts.
    pub(crate) fn asked(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a call that acquired its lock after `nanos` nanoseconds.
    pub(crate) fn acquired(&self, nanos: u64) {
        self.wait.record(nanos);
    }

    /// Counts a call that failed.
    pub(crate) fn failed(&self, why: Failure) {
        if let Some(failed) = self.failed.get(why as usize) {
            failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a call that held its lock for `nanos` nanoseconds and ended.
    pub(crate) fn ended(&self, nanos: u64) {
        self.hold.record(nanos);
    }

    /// Counts a call that lost its lock. Its end is counted, too.
    pub(crate) fn lost(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn read(&self, site: LockSite) -> SiteStats {
        let mut read = self.read_once();
        for _ in 0..TRIES {
            let again = self.read_once();
            let has_moved = again != read;
            read = again;
            if !has_moved {
                break;
            }
        }
        let Read { hold, wait, failed: [contended, timed_out, no_quorum, refused, cancelled], lost, asked } = read;
        let (acquired, ended) = (wait.count(), hold.count());
        let answered = acquired + contended + timed_out + no_quorum + refused + cancelled;
        SiteStats {
            site,
            acquired,
            contended,
            timed_out,
            no_quorum,
            refused,
            cancelled,
            lost,
            held_now: acquired.saturating_sub(ended),
            waiting_now: asked.saturating_sub(answered),
            wait,
            hold,
        }
    }

    /// Reads all counters, in the order in which a call increments them. A call that passes meanwhile is then missing from the numbers of
    /// waiting and holding calls. In the opposite order, all such calls would seem to wait or hold.
    fn read_once(&self) -> Read {
        let asked = self.asked.load(Ordering::Relaxed);
        let failed = self.failed.each_ref().map(|counter| counter.load(Ordering::Relaxed));
        let (wait, hold) = (self.wait.read(), self.hold.read());
        Read { asked, failed, lost: self.lost.load(Ordering::Relaxed), wait, hold }
    }
}

/// Values of the counters at about the same moment.
#[derive(PartialEq)]
struct Read {
    asked: u64,
    failed: [u64; FAILURES],
    lost: u64,
    wait: Histogram,
    hold: Histogram,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn concurrent_calls_are_not_counted_twice_while_reading_counters() {
        let (counters, is_over) = (SiteCounters::default(), AtomicBool::new(false));
        let site = || LockSite { template: None, module: None, line: None };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    counters.asked();
                    counters.acquired(1000);
                    counters.ended(1000);
                }
            });
            let most =
                (0..20_000).map(|_| counters.read(site())).map(|stats| stats.held_now.max(stats.waiting_now)).max();
            is_over.store(true, Ordering::Relaxed);
            assert!(most <= Some(1), "{most:?}");
        });
        let stats = counters.read(site());
        assert_eq!((stats.held_now, stats.waiting_now), (0, 0));
    }
}
