//! What is counted of the calls of one site.
//!
//! A call that gets its lock from another one in line passes here three times, on a way of a microsecond. So each number that
//! follows from others is not counted: how many calls have the lock is how many have got it and not ended, and how many wait
//! is how many have asked and not been answered.

use super::histogram::Recorder;
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
        // What comes later on the way of a call is read first: so nothing seems to have ended before it began.
        let hold = self.hold.read();
        let wait = self.wait.read();
        let [contended, timed_out, no_quorum, refused, cancelled] =
            self.failed.each_ref().map(|counter| counter.load(Ordering::Relaxed));
        let lost = self.lost.load(Ordering::Relaxed);
        let asked = self.asked.load(Ordering::Relaxed);
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
}
