//! Statistics about the calls of one site.

use super::Histogram;
use crate::error::SourceLine;
use std::fmt;

/// Place in the source where a lock is requested: an attribute, or a call.
///
/// `Display` writes the template, or the source line if there is no template. It never contains a key. Two functions may have the same
/// template, so a metric needs the `line` as a second label. Templates of several keys contain quotation marks, which need escaping in a
/// label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct LockSite {
    /// Key of the attribute with its placeholders, or the [`label`](crate::LockRequest::label) of a call.
    pub template: Option<&'static str>,
    /// Module of the annotated function. `None` for a call without the attribute.
    pub module: Option<&'static str>,
    /// Line in the source. `None` for the sum of all sites after the first 4096.
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

/// Outcomes and durations of the calls of one site, since the manager was built.
///
/// Every finished call is counted once, in `acquired`, `contended`, `timed_out`, `no_quorum`, `refused` or `cancelled`. A call without
/// an outcome is counted in `waiting_now`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SiteStats {
    /// Site of the calls.
    pub site: LockSite,
    /// Number of calls that acquired the lock.
    pub acquired: u64,
    /// Number of calls without a wait that found the lock held, of calls that found the `once_per` window taken, and of calls
    /// beyond [`max_waiting`](crate::LockManagerBuilder::max_waiting).
    pub contended: u64,
    /// Number of calls whose wait ended without the lock.
    pub timed_out: u64,
    /// Number of calls for which too few nodes answered.
    pub no_quorum: u64,
    /// Number of calls that failed with a permanent error: an invalid request, wrong settings of a server, a nested call that would
    /// wait for its caller, or a manager that was shut down.
    pub refused: u64,
    /// Number of calls that were dropped before they acquired the lock.
    pub cancelled: u64,
    /// Number of acquired locks that were lost.
    pub lost: u64,
    /// Number of calls that hold the lock now.
    pub held_now: u64,
    /// Number of calls that wait for the lock now. While many calls end, the number may be too small by a few; it is never too large.
    pub waiting_now: u64,
    /// Time from the request to the lock. For a `once_per` window, the time starts when the time of the servers is known.
    pub wait: Histogram,
    /// Time from the lock to its release or loss.
    pub hold: Histogram,
}

impl SiteStats {
    /// Returns the counts after `earlier`. The present values, such as `held_now`, stay.
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

    /// Returns `true` if there was a call.
    pub(super) fn is_any(&self) -> bool {
        let failed = self.contended + self.timed_out + self.no_quorum + self.refused + self.cancelled;
        self.acquired + self.waiting_now + failed > 0
    }

    /// Adds the numbers of the same site, if the compiler has emitted its location twice.
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
