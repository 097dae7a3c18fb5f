//! The time for which a token has the lock: whose it is, how long it may last, when it is renewed.

use crate::protocol::hold_options::HoldOptions;
use crate::protocol::local_budget::LocalBudget;
use crate::protocol::timing::{
    CLOSEST_RENEWALS, FIRST_RENEWAL_SPREAD, HELD_UP_PER_TTL, MOST_RENEWALS_PER_TTL, RENEWAL_SPREAD, RENEWALS_PER_LEASE,
};
use crate::time::clock::Instant;
use std::time::Duration;

/// How long the pause before the next renewal is. Locks that were taken together, or held up together, come apart by one that
/// is shorter than a third for each by chance; from then on, a whole third is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    First,
    Spreading,
    Even,
}

#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct HoldPeriod {
    /// In milliseconds, as Redis counts it: there are many locks.
    ttl: u32,
    /// For how long the lock may be idle after the present call, likewise.
    linger: u32,
    /// Whether the present call has had the lock, and not only obtained it.
    is_used: bool,
    /// Whether the lock is shared, which the token had alone. Then no other call has it.
    is_lowered: bool,
    /// Whether the leases are started anew.
    renews: bool,
    /// Whether others count on whole leases, because the token stands in a turnstile.
    is_turnstile: bool,
    /// When the call must be done, however often the lease is renewed.
    must_end: Option<Instant>,
    /// Until when the key must stay taken, even when the call ends before.
    kept_until: Option<Instant>,
    /// Whether that is the end of a window, which may be given back.
    is_window: bool,
    /// Since when whoever has the lock now has had it.
    since: Instant,
    /// Since when the token has had the lock.
    first_held: Option<Instant>,
    /// How often it was passed on within the process while others wanted it.
    contended_passes: u32,
    /// When the leases were last asked for.
    renewed_at: Instant,
    pace: Pace,
    /// A number between 0 and 1 by which the renewals of locks are spread.
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
            is_turnstile: false,
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

    /// The nodes have given us the lock.
    pub(crate) fn hold(&mut self, now: Instant) {
        self.first_held.get_or_insert(now);
        (self.since, self.renewed_at, self.pace) = (now, now, Pace::First);
    }

    /// A call has the lock from now on, with options of its own.
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

    /// No call has the lock from now on, until the next one begins.
    pub(crate) fn leave(&mut self, now: Instant) {
        self.set(HoldOptions::UNTIL_BEGUN, now);
        self.is_used = false;
    }

    /// The present call wants the lock to be idle for so long after it.
    pub(crate) fn linger(&mut self, linger: Duration) {
        self.linger = millis(linger);
    }

    pub(crate) const fn lingers(&self) -> bool {
        self.linger != 0
    }

    /// Each lease is asked for as a whole from now on.
    pub(crate) const fn stand_in_turnstile(&mut self) {
        self.is_turnstile = true;
    }

    /// Whether no less than a whole lease is asked for, however long the present one is needed.
    pub(crate) const fn asks_for_whole_leases(&self) -> bool {
        self.renews || self.is_turnstile
    }

    /// The lock is shared from now on.
    pub(crate) const fn lower(&mut self) {
        self.is_lowered = true;
    }

    pub(crate) const fn is_lowered(&self) -> bool {
        self.is_lowered
    }

    pub(crate) const fn is_used(&self) -> bool {
        self.is_used
    }

    /// Until when the lock may be idle if its call ends now; `None` when the key has to stay taken for a reason of its own.
    pub(crate) fn idle_until(&self, now: Instant) -> Option<Instant> {
        let is_free = self.rest(now).is_none();
        let linger = Duration::from_millis(self.linger.into());
        Some(now.after(linger).min(self.first_held?.after(self.ttl()))).filter(|_| is_free)
    }

    /// Whether the token has had the lock for less than one ttl in all.
    pub(crate) fn is_fresh(&self, now: Instant) -> bool {
        self.first_held.is_some_and(|held| now.since(held) < self.ttl())
    }

    /// Since when whoever has the lock now has had it.
    pub(crate) const fn since(&self) -> Instant {
        self.since
    }

    /// For how long the lock has been held, when it was proven until `proven`.
    pub(crate) fn held_for(&self, proven: Instant, now: Instant) -> Duration {
        proven.min(now).since(self.since)
    }

    /// What the call may count on, when the nodes hold the lock for it until `valid_until`.
    pub(crate) fn capped(&self, valid_until: Instant) -> Instant {
        self.must_end.map_or(valid_until, |end| end.min(valid_until))
    }

    /// Whether the call has used up the time that it may have.
    pub(crate) fn is_used_up(&self, now: Instant) -> bool {
        self.must_end.is_some_and(|end| end <= now)
    }

    pub(crate) const fn renews(&self) -> bool {
        self.renews
    }

    /// When the leases should be asked for again: after a third of what was left of them the last time.
    pub(crate) fn renewal_due(&self, valid_until: Instant) -> Option<Instant> {
        self.is_needed(valid_until).then(|| self.third_of(valid_until))
    }

    /// When they should be, if they last until `valid_until`, are asked for at `now`, and all that are granted last until
    /// `expected`.
    pub(crate) fn next_renewal(&self, now: Instant, valid_until: Instant, expected: Instant) -> Option<Instant> {
        self.is_needed(expected).then(|| self.third_after(now, expected, self.pace_after(now, valid_until)))
    }

    /// Whether leases that last until `valid_until` are to be started anew.
    fn is_needed(&self, valid_until: Instant) -> bool {
        self.renews && self.must_end.is_none_or(|end| valid_until < end)
    }

    /// When a third is over of what was left of the leases the last time that all nodes were asked.
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

    /// What comes after a renewal at `now` of leases that last until `valid_until`.
    fn pace_after(&self, now: Instant, valid_until: Instant) -> Pace {
        let is_held_up = now >= self.third_of(valid_until).after(self.ttl() / HELD_UP_PER_TTL);
        match self.pace {
            Pace::First => Pace::Spreading,
            Pace::Even if is_held_up => Pace::Spreading,
            // Not twice in a row: who is always late must not ask more often for that.
            Pace::Even | Pace::Spreading => Pace::Even,
        }
    }

    /// The leases, which last until `valid_until`, are asked for anew at `now`.
    pub(crate) fn renewed(&mut self, now: Instant, valid_until: Instant) {
        (self.pace, self.renewed_at) = (self.pace_after(now, valid_until), now);
    }

    /// How much longer the key must stay taken when the call ends now.
    pub(crate) fn rest(&self, now: Instant) -> Option<Duration> {
        self.kept_until.map(|end| end.since(now)).filter(|rest| !rest.is_zero())
    }

    /// The key must stay taken until `end` at least.
    pub(crate) fn keep_until(&mut self, end: Instant) {
        if self.kept_until.is_none_or(|kept| kept < end) {
            (self.kept_until, self.is_window) = (Some(end), false);
        }
    }

    /// The key of a window is free again when the call ends.
    pub(crate) const fn reopen_window(&mut self) {
        if self.is_window {
            self.kept_until = None;
        }
    }

    /// Whether the next call in this process may go on with the token, and if so, counts it.
    ///
    /// A lock is passed on for one ttl in all, and only for a while once others wait for it: they would otherwise wait
    /// for ever should they not be heard of.
    pub(crate) fn pass(&mut self, now: Instant, contended_since: Option<Instant>, budget: LocalBudget) -> bool {
        let passes = self.goes_first(now, contended_since, budget);
        if passes {
            self.leave(now);
        }
        passes
    }

    /// Whether one more call of this process may have the lock before those who wait elsewhere, and if so, counts it.
    pub(crate) fn goes_first(&mut self, now: Instant, contended_since: Option<Instant>, budget: LocalBudget) -> bool {
        let is_within_budget =
            contended_since.is_none_or(|since| budget.allows(self.contended_passes, now.since(since)));
        let is_allowed = self.is_fresh(now) && is_within_budget;
        self.contended_passes += u32::from(is_allowed && contended_since.is_some());
        is_allowed
    }

    /// Those who have the lock must be done by `end`, if by any time.
    pub(crate) const fn end_by(&mut self, end: Option<Instant>) {
        self.must_end = end;
    }
}

/// Whole milliseconds, and one more for a part of one. No `ttl` and no wait is too long for it.
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
    fn renewals_come_after_a_third_of_what_is_left() {
        let mut period = period(TTL, RENEWED);
        assert_eq!(period.renewal_due(at(30_000)), Some(at(10_000)));
        period.renewed(at(10_000), at(30_000));
        assert_eq!(period.renewal_due(at(40_000)), Some(at(20_000)), "it was answered");
        assert_eq!(period.renewal_due(at(25_000)), Some(at(15_000)), "it was not");
    }

    #[test]
    fn renewals_come_apart_once_and_again_when_they_were_held_up() {
        let mut period = HoldPeriod { chance: 0.5, ..period(TTL, RENEWED) };
        let mut renewed_at = at(0);
        // By how many milliseconds it is late, and after how many the next one is due.
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
    fn renewals_near_the_end_are_no_hot_loop() {
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
    fn a_longest_hold_ends_renewals_and_validity() {
        let terms = HoldOptions { max_hold: Some(Duration::from_secs(40)), ..RENEWED };
        let period = period(TTL, terms);
        assert_eq!(period.capped(at(30_000)), at(30_000));
        assert!(period.renewal_due(at(30_000)).is_some());
        assert_eq!(period.capped(at(45_000)), at(40_000));
        assert_eq!(period.renewal_due(at(45_000)), None, "it lasts long enough");
        assert!(!period.is_used_up(at(39_999)) && period.is_used_up(at(40_000)));
    }

    #[test]
    fn the_rest_of_a_window_is_kept() {
        let period = period(TTL, HoldOptions { min_hold: Some(Duration::from_secs(5)), ..RENEWED });
        assert_eq!(period.rest(at(2000)), Some(Duration::from_secs(3)));
        assert_eq!(period.rest(at(5000)), None);
    }

    #[test]
    fn passes_are_limited_by_the_ttl_and_the_budget() {
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
