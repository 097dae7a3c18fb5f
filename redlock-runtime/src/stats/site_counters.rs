//! What is counted of the calls of one site.
//!
//! A call that gets its lock from another one in line passes here three times, on a way of a microsecond. So each number that
//! follows from others is not counted: how many calls have the lock is how many have got it and not ended, and how many wait
//! is how many have asked and not been answered.

use super::histogram::{Histogram, Recorder};
use super::{LockSite, SiteStats};
use std::sync::atomic::{AtomicU64, Ordering};

/// What is counted of the calls of one site.
#[derive(Debug, Default)]
pub(crate) struct SiteCounters {
    asked: AtomicU64,
    /// By [`Failure`].
    failed: [AtomicU64; FAILURES],
    lost: AtomicU64,
    wait: Recorder,
    hold: Recorder,
}

/// Why a call has no lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Contended,
    TimedOut,
    NoQuorum,
    /// It can never have one like this, or the manager was shut down.
    Refused,
    /// Its future was dropped.
    Cancelled,
}

const FAILURES: usize = 5;

/// How often numbers are read that move while they are. Fewer, and of a busy site fewer calls seem to be there than are; more, and
/// whoever reads takes longer for nothing.
const TRIES: usize = 3;

impl Failure {
    /// What it is called where it is told.
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
    /// A call asks for its lock.
    pub(crate) fn asked(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    /// It has the lock after so many nanoseconds.
    pub(crate) fn acquired(&self, nanos: u64) {
        self.wait.record(nanos);
    }

    /// It has no lock.
    pub(crate) fn failed(&self, why: Failure) {
        if let Some(failed) = self.failed.get(why as usize) {
            failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A call that had its lock for so many nanoseconds has it no more.
    pub(crate) fn ended(&self, nanos: u64) {
        self.hold.record(nanos);
    }

    /// A call has lost its lock; it ends as well.
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

    /// All numbers, one after the other. What comes first on the way of a call is read first: calls that pass by meanwhile are left
    /// out of those that wait and of those that have the lock. The other way round, all of them would seem to.
    fn read_once(&self) -> Read {
        let asked = self.asked.load(Ordering::Relaxed);
        let failed = self.failed.each_ref().map(|counter| counter.load(Ordering::Relaxed));
        let (wait, hold) = (self.wait.read(), self.hold.read());
        Read { asked, failed, lost: self.lost.load(Ordering::Relaxed), wait, hold }
    }
}

/// What was read at about one moment.
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
    fn calls_that_pass_by_while_one_looks_do_not_add_up() {
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
