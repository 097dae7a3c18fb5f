//! Period for which a token holds the lock: its present call, its limits, and its renewals.

use crate::protocol::hold_options::HoldOptions;
use crate::protocol::local_budget::LocalBudget;
use crate::protocol::timing::{
    CLOSEST_RENEWALS, FIRST_RENEWAL_SPREAD, HELD_UP_PER_TTL, MOST_RENEWALS_PER_TTL, RENEWAL_SPREAD, RENEWALS_PER_LEASE,
};
use crate::time::clock::Instant;
use std::time::Duration;

/// Length of the pause before the next renewal. One randomly shortened pause separates locks that were acquired or
/// delayed together; after it, a whole third is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    First,
    Spreading,
    Even,
}

#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct HoldPeriod {
    /// Lease in milliseconds, the unit of Redis; a small type, because there are many locks.
    ttl: u32,
    /// Time for which the lock may stay idle after the present call, in milliseconds.
    linger: u32,
    /// Set if the present call has used the lock, not only obtained it.
    is_used: bool,
    /// Set if the lock was downgraded to a shared one. No other call uses it after that.
    is_lowered: bool,
    /// Set if the leases are renewed.
    renews: bool,
    /// Set if other calls rely on whole leases, because the token owns an admission lock.
    is_admission: bool,
    /// Time at which the call must be done, however often the lease is renewed.
    must_end: Option<Instant>,
    /// Time until which the key must stay taken, even if the call ends before.
    kept_until: Option<Instant>,
    /// Set if `kept_until` is the end of a window, which may be withdrawn.
    is_window: bool,
    /// Time at which the present owner got the lock.
    since: Instant,
    /// Time at which the token first got the lock.
    first_held: Option<Instant>,
    /// Number of passes within the process while other processes wanted the lock.
    contended_passes: u32,
    /// Time at which the leases were last requested.
    renewed_at: Instant,
    pace: Pace,
    /// Random number between 0 and 1 that spreads the renewals of locks.
    chance: f32,
}

impl HoldPeriod {
    pub(crate) fn new(ttl: Duration, now: Instant) -> Self {
        Self {
            ttl: millis(ttl),
            linger: 0,
            is_used: false,
            is_lowered: false,
            renews: HoldOptions::UNTIL_BEGUN.renew,
            is_admission: false,
            must_end: None,
            kept_until: None,
            is_window: false,
            since: now,
            first_held: None,
            contended_passes: 0,
            renewed_at: now,
            pace: Pace::First,
            chance: fastrand::f32(),
        }
    }

    fn ttl(&self) -> Duration {
        Duration::from_millis(self.ttl.into())
    }

    /// Records that the nodes have given us the lock.
    pub(crate) fn hold(&mut self, now: Instant) {
        self.first_held.get_or_insert(now);
        (self.since, self.renewed_at, self.pace) = (now, now, Pace::First);
    }

    /// Gives the lock to a call, with its own options.
    pub(crate) fn begin(&mut self, options: HoldOptions, now: Instant) {
        self.set(options, now);
        self.is_used = true;
    }

    fn set(&mut self, options: HoldOptions, now: Instant) {
        let HoldOptions { renew, max_hold, min_hold, window_rest } = options;
        (self.renews, self.since) = (renew, now);
        self.must_end = max_hold.map(|longest| now.after(longest));
        self.kept_until = min_hold.or(window_rest).map(|least| now.after(least));
        self.is_window = min_hold.is_none();
    }

    /// Leaves the lock without a call until the next one begins.
    pub(crate) fn leave(&mut self, now: Instant) {
        self.set(HoldOptions::UNTIL_BEGUN, now);
        self.is_used = false;
    }

    /// Sets the time for which the present call wants the lock to stay idle after it.
    pub(crate) fn linger(&mut self, linger: Duration) {
        self.linger = millis(linger);
    }

    pub(crate) const fn lingers(&self) -> bool {
        self.linger != 0
    }

    /// Requests only whole leases from now on.
    pub(crate) const fn mark_as_admission(&mut self) {
        self.is_admission = true;
    }

    pub(crate) const fn is_admission(&self) -> bool {
        self.is_admission
    }

    /// Returns `true` if only whole leases are requested, however long the call needs the lock.
    pub(crate) const fn asks_for_whole_leases(&self) -> bool {
        self.renews || self.is_admission
    }

    /// Records that the lock was downgraded to a shared one.
    pub(crate) const fn lower(&mut self) {
        self.is_lowered = true;
    }

    pub(crate) const fn is_lowered(&self) -> bool {
        self.is_lowered
    }

    pub(crate) const fn is_used(&self) -> bool {
        self.is_used
    }

    /// Returns the time until which the lock may stay idle if its call ends now; `None` if the key has to stay taken
    /// for another reason.
    pub(crate) fn idle_until(&self, now: Instant) -> Option<Instant> {
        let is_free = self.rest(now).is_none();
        let linger = Duration::from_millis(self.linger.into());
        Some(now.after(linger).min(self.first_held?.after(self.ttl()))).filter(|_| is_free)
    }

    /// Returns `true` if the token has had the lock for less than one `ttl` in total.
    pub(crate) fn is_fresh(&self, now: Instant) -> bool {
        self.first_held.is_some_and(|held| now.since(held) < self.ttl())
    }

    /// Returns the time at which the present owner got the lock.
    pub(crate) const fn since(&self) -> Instant {
        self.since
    }

    /// Returns the duration for which the lock has been held, if it was proven until `proven`.
    pub(crate) fn held_for(&self, proven: Instant, now: Instant) -> Duration {
        proven.min(now).since(self.since)
    }

    /// Returns the end that the call can rely on, if the nodes hold the lock for it until `valid_until`.
    pub(crate) fn capped(&self, valid_until: Instant) -> Instant {
        self.must_end.map_or(valid_until, |end| end.min(valid_until))
    }

    /// Returns `true` if the call has used up its time.
    pub(crate) fn is_used_up(&self, now: Instant) -> bool {
        self.must_end.is_some_and(|end| end <= now)
    }

    pub(crate) const fn renews(&self) -> bool {
        self.renews
    }

    /// Returns the time of the next renewal: after a third of the lease time that was left at the last one.
    pub(crate) fn renewal_due(&self, valid_until: Instant) -> Option<Instant> {
        self.is_needed(valid_until).then(|| self.third_of(valid_until))
    }

    /// Returns the time of the renewal after one at `now`, if the leases last until `valid_until`, and all granted
    /// leases will last until `expected`.
    pub(crate) fn next_renewal(&self, now: Instant, valid_until: Instant, expected: Instant) -> Option<Instant> {
        self.is_needed(expected).then(|| self.third_after(now, expected, self.pace_after(now, valid_until)))
    }

    /// Returns `true` if leases that last until `valid_until` must be renewed.
    fn is_needed(&self, valid_until: Instant) -> bool {
        self.renews && self.must_end.is_none_or(|end| valid_until < end)
    }

    /// Returns the time at which a third is over of the lease time that was left when all nodes were last asked.
    pub(crate) fn third_of(&self, valid_until: Instant) -> Instant {
        self.third_after(self.renewed_at, valid_until, self.pace)
    }

    fn third_after(&self, asked: Instant, valid_until: Instant, pace: Pace) -> Instant {
        let spread = match pace {
            Pace::First => FIRST_RENEWAL_SPREAD,
            Pace::Spreading => RENEWAL_SPREAD,
            Pace::Even => 0.0,
        };
        let part = 1.0 - spread * self.chance;
        let pause = valid_until.since(asked).mul_f64(f64::from(part) / RENEWALS_PER_LEASE);
        asked.after(pause.max(self.ttl() / MOST_RENEWALS_PER_TTL).max(CLOSEST_RENEWALS))
    }

    /// Returns the pace after a renewal at `now` of leases that last until `valid_until`.
    fn pace_after(&self, now: Instant, valid_until: Instant) -> Pace {
        let is_held_up = now >= self.third_of(valid_until).after(self.ttl() / HELD_UP_PER_TTL);
        match self.pace {
            Pace::First => Pace::Spreading,
            Pace::Even if is_held_up => Pace::Spreading,
            // Not twice in a row: a process that is always late must not ask more often because of that.
            Pace::Even | Pace::Spreading => Pace::Even,
        }
    }

    /// Records a renewal at `now` of leases that last until `valid_until`.
    pub(crate) fn renewed(&mut self, now: Instant, valid_until: Instant) {
        (self.pace, self.renewed_at) = (self.pace_after(now, valid_until), now);
    }

    /// Returns the rest of the time for which the key must stay taken if the call ends now.
    pub(crate) fn rest(&self, now: Instant) -> Option<Duration> {
        self.kept_until.map(|end| end.since(now)).filter(|rest| !rest.is_zero())
    }

    /// Keeps the key taken until `end` at least.
    pub(crate) fn keep_until(&mut self, end: Instant) {
        if self.kept_until.is_none_or(|kept| kept < end) {
            (self.kept_until, self.is_window) = (Some(end), false);
        }
    }

    /// Frees the key of a window when the call ends.
    pub(crate) const fn reopen_window(&mut self) {
        if self.is_window {
            self.kept_until = None;
        }
    }

    /// Returns `true` if the next call in this process may take over the token, and counts that pass.
    ///
    /// A lock is passed on for one `ttl` in total, and only for a while once other processes are known to wait. If
    /// notifications were lost, these processes would otherwise wait forever.
    pub(crate) fn pass(&mut self, now: Instant, contended_since: Option<Instant>, budget: LocalBudget) -> bool {
        let passes = self.try_local_pass(now, contended_since, budget);
        if passes {
            self.leave(now);
        }
        passes
    }

    /// Returns `true` if one more call of this process may precede waiters elsewhere, and counts it.
    pub(crate) fn try_local_pass(
        &mut self,
        now: Instant,
        contended_since: Option<Instant>,
        budget: LocalBudget,
    ) -> bool {
        let is_within_budget =
            contended_since.is_none_or(|since| budget.allows(self.contended_passes, now.since(since)));
        let is_allowed = self.is_fresh(now) && is_within_budget;
        self.contended_passes += u32::from(is_allowed && contended_since.is_some());
        is_allowed
    }

    /// Sets the time by which the present users of the lock must be done, if there is one.
    pub(crate) const fn set_must_end(&mut self, end: Option<Instant>) {
        self.must_end = end;
    }
}

/// Rounds up to whole milliseconds. No `ttl` and no wait is too long for the result.
fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros().div_ceil(1000)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(30);
    const RENEWED: HoldOptions = HoldOptions { renew: true, ..HoldOptions::UNTIL_BEGUN };

    fn at(millis: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(millis))
    }

    fn period(ttl: Duration, terms: HoldOptions) -> HoldPeriod {
        let mut period = HoldPeriod { chance: 0.0, ..HoldPeriod::new(ttl, at(0)) };
        period.hold(at(0));
        period.begin(terms, at(0));
        period
    }

    #[test]
    fn renewal_is_due_after_a_third_of_the_remaining_lease() {
        let mut period = period(TTL, RENEWED);
        assert_eq!(period.renewal_due(at(30_000)), Some(at(10_000)));
        period.renewed(at(10_000), at(30_000));
        assert_eq!(period.renewal_due(at(40_000)), Some(at(20_000)), "it was answered");
        assert_eq!(period.renewal_due(at(25_000)), Some(at(15_000)), "it was not");
    }

    #[test]
    fn renewals_are_spread_once_and_again_after_a_delay() {
        let mut period = HoldPeriod { chance: 0.5, ..period(TTL, RENEWED) };
        let mut renewed_at = at(0);
        // Delay of the renewal in milliseconds, and pause before the next one.
        for (late, pause) in [(0, 9500), (0, 6667), (937, 10_000), (938, 10_000), (938, 6667), (0, 10_000)] {
            let end = renewed_at.after(TTL);
            let due = period.renewal_due(end).expect("it is needed");
            assert_eq!((due.since(renewed_at).as_micros() + 500) / 1000, pause, "{renewed_at:?}");
            let now = due.after(Duration::from_millis(late));
            let next = period.next_renewal(now, end, now.after(TTL));
            period.renewed(now, end);
            assert_eq!(period.renewal_due(now.after(TTL)), next);
            renewed_at = now;
        }
    }

    #[test]
    fn renewals_near_the_lease_end_keep_a_minimum_distance() {
        // Defect 12: 800 renewals per second.
        for (millis, closest) in [(200, 10), (500, 17), (30_000, 1000)] {
            let mut period = period(Duration::from_millis(millis), RENEWED);
            let (end, mut now, mut renewals) = (at(millis), at(0), 0);
            while let Some(due) = period.renewal_due(end).filter(|due| *due < end) {
                assert!(due.since(now) >= Duration::from_millis(closest - 1), "{due:?} after {now:?}");
                now = due;
                period.renewed(now, end);
                renewals += 1;
            }
            assert!((3..20).contains(&renewals), "{renewals} of {millis} ms");
        }
    }

    #[test]
    fn max_hold_ends_renewals_and_validity() {
        let terms = HoldOptions { max_hold: Some(Duration::from_secs(40)), ..RENEWED };
        let period = period(TTL, terms);
        assert_eq!(period.capped(at(30_000)), at(30_000));
        assert!(period.renewal_due(at(30_000)).is_some());
        assert_eq!(period.capped(at(45_000)), at(40_000));
        assert_eq!(period.renewal_due(at(45_000)), None, "it lasts long enough");
        assert!(!period.is_used_up(at(39_999)) && period.is_used_up(at(40_000)));
    }

    #[test]
    fn remaining_min_hold_is_kept() {
        let period = period(TTL, HoldOptions { min_hold: Some(Duration::from_secs(5)), ..RENEWED });
        assert_eq!(period.rest(at(2000)), Some(Duration::from_secs(3)));
        assert_eq!(period.rest(at(5000)), None);
    }

    #[test]
    fn hand_offs_are_limited_by_the_ttl_and_the_budget() {
        let budget = LocalBudget { passes: 2, time: Duration::from_millis(20) };
        let mut alone = period(TTL, RENEWED);
        assert!((0..1000).all(|_| alone.pass(at(29_999), None, budget)));
        assert!(!alone.pass(at(30_000), None, budget), "one ttl in all");
        let mut contended = period(TTL, RENEWED);
        let passes = [(); 3].map(|()| contended.pass(at(110), Some(at(100)), budget));
        assert_eq!(passes, [true, true, false]);
        assert!(!period(TTL, RENEWED).pass(at(120), Some(at(100)), budget));
    }
}
