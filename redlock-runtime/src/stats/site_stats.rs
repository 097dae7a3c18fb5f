//! What became of the calls of one site.

use super::Histogram;
use crate::error::SourceLine;
use std::fmt;

/// Where calls ask for a lock: an attribute, or a line that was written by hand. `Display` writes the template where there is
/// one, and the line otherwise, and has no key in it. Two functions may have the same template: a metric takes the `line` as a
/// second label. Templates of several keys have quotation marks in them, to be escaped there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct LockSite {
    /// The key as the attribute says it, with its placeholders, or the [`label`](crate::LockRequest::label) of a call by hand.
    pub template: Option<&'static str>,
    /// The module of the function; `None` for a call by hand.
    pub module: Option<&'static str>,
    /// The line in the source. `None` for all sites together that come after the first 4096.
    pub line: Option<SourceLine>,
}

impl fmt::Display for LockSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.template, self.line) {
            (Some(template), _) => f.write_str(template),
            (None, Some(line)) => line.fmt(f),
            (None, None) => f.write_str("other"),
        }
    }
}

/// What became of the calls of one site, since the manager was made.
///
/// Every call is counted once: in one of `acquired`, `contended`, `timed_out`, `no_quorum`, `refused` and `cancelled`, or in
/// `waiting_now` as long as nothing has become of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SiteStats {
    /// Whose calls.
    pub site: LockSite,
    /// Got the lock.
    pub acquired: u64,
    /// Did not wait, and another owner had it; also a window of `once_per` that was another call's.
    pub contended: u64,
    /// Waited in vain for as long as they may.
    pub timed_out: u64,
    /// Too few nodes agreed.
    pub no_quorum: u64,
    /// Ended by an error that somebody has to mend, also of the request itself, or by the shutdown of the manager.
    pub refused: u64,
    /// Were dropped before they had the lock.
    pub cancelled: u64,
    /// Of those that got it, the ones that have lost it.
    pub lost: u64,
    /// Have the lock now, as [`waiting_now`](Self::waiting_now).
    pub held_now: u64,
    /// Have asked for the lock, and neither have it nor an error. Of a site with many calls, those are left out that pass by while
    /// the numbers are read: some too few, and never too many.
    pub waiting_now: u64,
    /// From when a call asked to when it had the lock; of a window of `once_per`, from when its time was known.
    pub wait: Histogram,
    /// From when a call had the lock to when it had it no more.
    pub hold: Histogram,
}

impl SiteStats {
    /// What was counted after `earlier`. What is said of now stays.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self {
            acquired: self.acquired.saturating_sub(earlier.acquired),
            contended: self.contended.saturating_sub(earlier.contended),
            timed_out: self.timed_out.saturating_sub(earlier.timed_out),
            no_quorum: self.no_quorum.saturating_sub(earlier.no_quorum),
            refused: self.refused.saturating_sub(earlier.refused),
            cancelled: self.cancelled.saturating_sub(earlier.cancelled),
            lost: self.lost.saturating_sub(earlier.lost),
            wait: self.wait.since(&earlier.wait),
            hold: self.hold.since(&earlier.hold),
            ..self.clone()
        }
    }

    /// Whether there was any call.
    pub(super) fn is_any(&self) -> bool {
        let failed = self.contended + self.timed_out + self.no_quorum + self.refused + self.cancelled;
        self.acquired + self.waiting_now + failed > 0
    }

    /// Adds those of the same site whose place the compiler has written twice.
    pub(super) fn add(&mut self, other: &Self) {
        self.acquired += other.acquired;
        self.contended += other.contended;
        self.timed_out += other.timed_out;
        self.no_quorum += other.no_quorum;
        self.refused += other.refused;
        self.cancelled += other.cancelled;
        self.lost += other.lost;
        self.held_now += other.held_now;
        self.waiting_now += other.waiting_now;
        self.wait.add(&other.wait);
        self.hold.add(&other.hold);
    }
}
