//! Clock of fencing numbers: an estimate of the servers' clocks.
//!
//! A *ballot* is a number that a process proposes to the nodes. A node accepts a ballot if it is larger than all ballots that it has
//! accepted for locks of the same slot. This rule alone makes fencing numbers rise. The clock only makes most ballots large
//! enough at the first try:
//!
//! 1. A ballot is a time in units of 1/64 ms, and larger than every ballot of its slot that this process knows.
//! 2. The time is that of the servers. If their clocks differ, the median counts. Wrong wall clocks of processes therefore change no
//!    number. The estimate is a lower bound: the largest difference that an answer has shown, which is too small by the time that
//!    the answer was on its way, less the drift since then (`node/server_clock`). A caller that draws after it has heard of a
//!    release therefore usually draws more than the owner before. If the user may not run `TIME`, the wall clock of the process is
//!    used.
//! 3. A node that refuses a ballot returns the largest ballot that it has accepted. The next ballot for the slot is above it.
//! 4. If the refused ballot was too small by at most a millisecond, the process adds the difference to its next ballots for the slot
//!    (`ballot_margins`). Two processes that take turns without a pause would otherwise refuse the one whose estimate lags each time.
//! 5. A refusal changes nothing else, because most refusals do not show that a clock lags. The ballot was long on its way, or many
//!    ballots were drawn within one unit. So numbers are ahead of the servers' clocks by at most a millisecond, except in slots with
//!    more than 64 000 ballots in a second. After a loss of all data, they therefore continue above the earlier numbers. The exception is
//!    a process whose estimate is too small by more than the time since the last ballot: without registers, nothing corrects it.

use crate::time::ballot_margins::BallotMargins;
use crate::time::clock::{Clock, Instant};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Maximum number of registers on a node: one for each slot of a cluster.
pub(crate) const SLOTS: u16 = 16384;

/// Ballots in a millisecond. Too few: owners that take turns draw the same number. Too many: the numbers run out earlier.
const PER_MILLI: u64 = 64;

/// 2024-01-01, in microseconds since 1970.
const EPOCH: u64 = 1_704_067_200_000_000;

/// Maximum distance of a ballot for several slots from the servers' time, in ballots: one hour. Too small: calls fail after a server's
/// clock was set back. Too large: one damaged register moves the registers of other names further.
const MOST_AHEAD: u64 = 3_600_000 * PER_MILLI;

/// Maximum drift between two healthy clocks, as 1/n: 200 ppm. A quartz has up to 100 ppm. Too large an n: numbers run ahead of the servers'
/// clocks. Too small: of two owners that take turns, the one with the older answer is refused.
pub(crate) const USUAL_DRIFT: i64 = 5000;

/// Stored in place of an offset while no server has returned its time.
const UNKNOWN: i64 = i64::MAX;

/// Stored in place of an offset if the user may not run `TIME`.
const UNTOLD: i64 = i64::MIN;

/// Lower bound of the difference between a server's clock and ours. It falls with the drift since it was measured. Of two bounds, the
/// larger one is larger at all times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ahead {
    /// In microseconds, at the origin of our clock.
    at_origin: i64,
}

impl Ahead {
    /// A server's clock that was at least `micros` ahead when our clock showed `heard`.
    pub(crate) fn new(micros: i64, heard: Instant) -> Self {
        Self { at_origin: micros.saturating_add(since_origin(heard) / USUAL_DRIFT) }
    }

    /// Returns the bound at the given time, in microseconds.
    pub(crate) fn at(self, at: Instant) -> i64 {
        self.at_origin.saturating_sub(since_origin(at) / USUAL_DRIFT)
    }

    /// Returns the distance of two bounds, in microseconds.
    pub(crate) const fn differs_by(self, other: Self) -> u64 {
        self.at_origin.abs_diff(other.at_origin)
    }
}

/// Source of the time that ballots are drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Believed {
    /// The servers' clocks, which are ahead by this much.
    Servers(Ahead),
    /// Our own wall clock, because the user may not run `TIME`.
    Ours,
}

/// A number that is proposed to the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ballot {
    pub(crate) number: u64,
    /// Time of the draw; `None` for a number that was drawn for earlier commands.
    drawn_at: Option<Instant>,
}

impl Ballot {
    /// All valid numbers. A fencing token of the last one fits a signed `BIGINT`, and 64 for each millisecond last until the year 2302.
    pub(crate) const NUMBERS: Range<u64> = 1..1 << 49;

    /// Reads the register. No node accepts this ballot.
    pub(crate) const LOOK: Self = Self::known(0);

    /// Returns `true` if there are valid numbers above `number`.
    pub(crate) const fn has_room_above(number: u64) -> bool {
        number < Self::NUMBERS.end - 1
    }

    /// An existing number that is proposed to one more node.
    pub(crate) const fn known(number: u64) -> Self {
        Self { number, drawn_at: None }
    }

    /// Returns the time of the draw; `None` for a number that was drawn for earlier commands.
    pub(crate) const fn drawn_at(&self) -> Option<Instant> {
        self.drawn_at
    }
}

/// Draws ballots, and records what refusals show of the ballots of other processes.
#[derive(Debug)]
pub(crate) struct BallotClock {
    clock: Clock,
    /// Largest known ballot of each slot. Allocated by the first draw, because most managers do not fence.
    largest: OnceLock<Box<[AtomicU64]>>,
    margins: BallotMargins,
    /// The [`Ahead`] of the servers, [`UNKNOWN`] or [`UNTOLD`].
    servers: AtomicI64,
}

impl BallotClock {
    pub(crate) const fn new(clock: Clock) -> Self {
        Self { clock, largest: OnceLock::new(), margins: BallotMargins::new(SLOTS), servers: AtomicI64::new(UNKNOWN) }
    }

    /// Draws a ballot for locks of `slot` that is larger than every known ballot of the slot. Returns `None` if no larger number is valid,
    /// or if the servers' time is not known yet.
    pub(crate) fn draw(&self, slot: u16) -> Option<Ballot> {
        self.draw_above(&[slot], 0)
    }

    /// Draws a ballot for the first of `slots` that is also larger than `others`.
    fn draw_above(&self, slots: &[u16], others: u64) -> Option<Ballot> {
        let now = self.clock.now();
        let margin = slots.iter().map(|slot| self.margins.get(*slot, now)).max()?;
        let by_clock = self.shown_by_servers(now)?.saturating_add(margin);
        let next = |known: u64| by_clock.max(known.max(others).saturating_add(1));
        // Never fails: the closure always has a next value.
        let largest = self.of(*slots.first()?)?;
        let update = largest.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |known| Some(next(known)));
        let number = update.map_or_else(next, next);
        Ballot::NUMBERS.contains(&number).then_some(Ballot { number, drawn_at: Some(now) })
    }

    /// Draws a ballot for locks of all these slots. Returns `None` like [`draw`](Self::draw), for an empty list, and for several slots if
    /// the largest ballot of one of them is out of reach.
    pub(crate) fn draw_for(&self, slots: &[u16]) -> Option<Ballot> {
        let (first, others) = slots.split_first()?;
        if others.is_empty() {
            return self.draw(*first);
        }
        let known = |slot: &u16| self.of(*slot).map_or(0, |known| known.load(Ordering::Relaxed));
        loop {
            let largest = slots.iter().map(known).max()?;
            if !self.is_in_reach(slots, largest) {
                return None;
            }
            let ballot = self.draw_above(slots, largest)?;
            let is_ours =
                |slot: &u16| Some(self.of(*slot)?.fetch_max(ballot.number, Ordering::Relaxed) < ballot.number);
            // Another thread may have drawn for one of these slots in between.
            if others.iter().all(|slot| is_ours(slot) == Some(true)) {
                return Some(ballot);
            }
        }
    }

    /// Returns `true` if a ballot for these slots may be above `largest`: a clock can show that number, or the only slot has reached it.
    /// Several slots must not move each other further than a clock can show.
    pub(crate) fn is_in_reach(&self, slots: &[u16], largest: u64) -> bool {
        let shown = self.shown_by_servers(self.clock.now());
        let latest = shown.map_or(Ballot::NUMBERS.end, |shown| shown.saturating_add(MOST_AHEAD));
        let has_reached = |slot: &u16| self.of(*slot).is_some_and(|known| largest <= known.load(Ordering::Relaxed));
        largest <= latest || matches!(slots, [slot] if has_reached(slot))
    }

    /// Records that a node has refused `ballot`, because it has accepted `largest` for a lock of one of these slots. Which of the slots
    /// is not known. A `largest` that is [out of reach](Self::is_in_reach) is ignored.
    pub(crate) fn refused_for(&self, slots: &[u16], ballot: Ballot, largest: u64) {
        if !self.is_in_reach(slots, largest) {
            return;
        }
        let by_clock = ballot.drawn_at.and_then(|drawn_at| self.shown_by_servers(drawn_at));
        let shortfall = by_clock.map_or(0, |by_clock| largest.saturating_add(1).saturating_sub(by_clock));
        let now = self.clock.now();
        for slot in slots {
            self.margins.record(*slot, shortfall, now);
            if let Some(known) = self.of(*slot) {
                known.fetch_max(largest, Ordering::Relaxed);
            }
        }
    }

    /// Records that a quorum of nodes has accepted `number` or more for locks of `slot`, however far ahead of the clocks that is.
    pub(crate) fn reached(&self, slot: u16, number: u64) {
        if let Some(known) = self.of(slot) {
            known.fetch_max(number, Ordering::Relaxed);
        }
    }

    /// Returns the largest known ballots of up to `most` slots, from `slot` on, without slots of which none is known.
    pub(crate) fn known_from(&self, slot: u16, most: usize) -> Vec<(u16, u64)> {
        let largest = self.largest.get().map(|largest| &**largest).unwrap_or_default();
        let known =
            (0..SLOTS).zip(largest).skip(slot.into()).map(|(slot, known)| (slot, known.load(Ordering::Relaxed)));
        known.filter(|(_, number)| Ballot::NUMBERS.contains(number)).take(most).collect()
    }

    /// Sets the source of the time.
    pub(crate) fn believe(&self, believed: Believed) {
        let stored = match believed {
            Believed::Servers(Ahead { at_origin }) => at_origin.clamp(UNTOLD + 1, UNKNOWN - 1),
            Believed::Ours => UNTOLD,
        };
        self.servers.store(stored, Ordering::Relaxed);
    }

    /// Returns the estimate of the servers' time, in ballots; `None` while it is not known.
    fn shown_by_servers(&self, now: Instant) -> Option<u64> {
        let micros = match self.servers.load(Ordering::Relaxed) {
            UNKNOWN => return None,
            UNTOLD => self.clock.wall_micros(),
            at_origin => {
                let shown = since_origin(now).saturating_add(Ahead { at_origin }.at(now));
                u64::try_from(shown).unwrap_or_default()
            }
        };
        Some(ballots(micros))
    }

    fn of(&self, slot: u16) -> Option<&AtomicU64> {
        let largest = self.largest.get_or_init(|| (0..SLOTS).map(|_| AtomicU64::new(0)).collect());
        largest.get(usize::from(slot))
    }
}

fn since_origin(at: Instant) -> i64 {
    i64::try_from(at.since_origin().as_micros()).unwrap_or(i64::MAX)
}

/// Converts microseconds since 1970 to ballots since [`EPOCH`].
const fn ballots(micros: u64) -> u64 {
    let since = micros.saturating_sub(EPOCH);
    since / 1000 * PER_MILLI + since % 1000 * PER_MILLI / 1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::ballot_margins;
    use crate::time::clock::{ClockError, virtual_origin};
    use std::time::Duration;

    const HOUR: i64 = 3_600_000;
    const SLOT: u16 = 7;

    /// Returns the clock of a process whose wall clock is wrong by `skew_ms`.
    fn skewed(skew_ms: i64) -> BallotClock {
        let error = ClockError { skew_ms, ..ClockError::default() };
        BallotClock::new(Clock::Tokio { origin: tokio::time::Instant::now(), error })
    }

    /// Returns such a clock that has just learned the time of servers whose clocks are ahead by `servers_ahead_ms`.
    fn knowing(skew_ms: i64, servers_ahead_ms: i64) -> BallotClock {
        let clock = skewed(skew_ms);
        let micros = i64::try_from(virtual_origin().as_micros()).unwrap() + servers_ahead_ms * 1000;
        clock.believe(Believed::Servers(Ahead::new(micros, clock.clock.now())));
        clock
    }

    /// Returns the clock of a process that knows the time of servers with correct clocks.
    fn right() -> BallotClock {
        knowing(0, 0)
    }

    /// Returns how many rounds it takes until the register accepts a ballot of `clock`.
    fn rounds(register: &mut u64, clock: &BallotClock) -> u32 {
        let mut rounds = 1;
        loop {
            let ballot = clock.draw(SLOT).unwrap();
            if ballot.number > *register {
                *register = ballot.number;
                return rounds;
            }
            clock.refused_for(&[SLOT], ballot, *register);
            rounds += 1;
        }
    }

    /// Records that a node has refused a ballot that is drawn now, because it has accepted `largest`.
    fn refuse(clock: &BallotClock, slots: &[u16], largest: u64) {
        clock.refused_for(slots, Ballot { number: 1, drawn_at: Some(clock.clock.now()) }, largest);
    }

    fn drawn(clock: &BallotClock, slots: &[u16]) -> Option<u64> {
        clock.draw_for(slots).map(|ballot| ballot.number)
    }

    #[test]
    fn ballots_follow_the_time_and_are_unique() {
        assert_eq!([ballots(EPOCH - 1), ballots(EPOCH), ballots(EPOCH + 1_063)], [0, 0, 68]);
        let clock = BallotClock::new(Clock::Boot);
        clock.believe(Believed::Ours);
        let drawn: Vec<_> = (0..10_000).map(|_| clock.draw(SLOT).unwrap().number).collect();
        assert!(drawn.is_sorted_by(|a, b| a < b));
        assert!(drawn[0].abs_diff(ballots(Clock::Boot.wall_micros())) < 60_000 * PER_MILLI);
    }

    #[tokio::test(start_paused = true)]
    async fn ballot_clock_uses_only_the_time_of_the_servers() {
        let expected = right().draw(SLOT).unwrap().number;
        for skew in [-1_000_000 * HOUR, -HOUR, -1, 1, HOUR, 1_000_000 * HOUR] {
            assert_eq!(skewed(skew).draw(SLOT), None, "nothing is known of them yet");
            assert_eq!(knowing(skew, 0).draw(SLOT).unwrap().number, expected, "{skew} ms");
        }
        assert_eq!(knowing(0, 1000).draw(SLOT).unwrap().number, expected + 1000 * PER_MILLI);
    }

    #[tokio::test(start_paused = true)]
    async fn ballot_clock_uses_local_time_if_servers_deny_theirs() {
        let clock = skewed(HOUR);
        clock.believe(Believed::Ours);
        assert_eq!(clock.draw(SLOT), knowing(0, HOUR).draw(SLOT));
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(clock.draw(SLOT).unwrap().number, ballots(clock.clock.wall_micros()));
    }

    #[tokio::test(start_paused = true)]
    async fn old_clock_lead_is_reduced_by_the_drift() {
        let (clock, later) = (right(), Duration::from_secs(5000));
        let before = clock.draw(SLOT).unwrap().number;
        tokio::time::advance(later).await;
        assert_eq!(clock.draw(SLOT).unwrap().number, before + 4_999_000 * PER_MILLI, "a second less");
        let heard = |millis: i64| Ahead::new(millis * 1000, clock.clock.now());
        let old = Ahead::new(0, Instant::from_origin(Duration::ZERO));
        assert!(heard(-1001) < old && old < heard(-999));
        assert_eq!([old.at(clock.clock.now()), heard(5).at(clock.clock.now())], [-1_000_000, 5000]);
    }

    #[tokio::test(start_paused = true)]
    async fn refusal_costs_one_round_and_leaves_other_slots_unchanged() {
        // The servers show half an hour less than before.
        let clocks = [right(), right()];
        let now = clocks[0].draw(SLOT).unwrap().number;
        let mut register = now + MOST_AHEAD / 2;
        for turn in 0..10 {
            assert_eq!(rounds(&mut register, &clocks[turn % 2]), 2);
            assert_eq!(rounds(&mut register, &clocks[turn % 2]), 1);
        }
        assert_eq!(clocks[0].draw(SLOT + 1).unwrap().number, now);
    }

    #[tokio::test(start_paused = true)]
    async fn delays_and_bursts_leave_other_slots_unchanged() {
        let [clocks @ .., unused] = [right(), right(), right()];
        let mut register = 0;
        for turn in 0..1000 {
            let (early, late) = (&clocks[turn % 2], &clocks[(turn + 1) % 2]);
            let _on_its_way = early.draw(SLOT);
            tokio::time::advance(Duration::from_millis(turn as u64 % 20)).await;
            for _ in 0..50 {
                rounds(&mut register, late);
            }
            refuse(early, &[SLOT], register);
            assert!(rounds(&mut register, early) <= 2);
        }
        let now = unused.draw(SLOT).unwrap().number;
        assert_eq!(clocks.each_ref().map(|clock| clock.draw(SLOT + 1).unwrap().number), [now; 2]);
        // The slot itself is ahead until the clock has caught up with the ballots that were drawn, and the margins have expired.
        tokio::time::advance(ballot_margins::LIFETIME).await;
        let now = unused.draw(SLOT).unwrap().number;
        assert_eq!(clocks.each_ref().map(|clock| clock.draw(SLOT).unwrap().number), [now; 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn process_with_lagging_estimate_is_refused_once_and_not_each_turn() {
        for lag_us in [100, 300, 1000] {
            let clocks = [right(), right()];
            // One of them has only had an answer that was on its way for longer.
            let late = i64::try_from(virtual_origin().as_micros()).unwrap() - lag_us;
            clocks[1].believe(Believed::Servers(Ahead::new(late, clocks[1].clock.now())));
            let (mut register, mut refused) = (0, 0);
            for turn in 0..1000 {
                refused += rounds(&mut register, &clocks[turn % 2]) - 1;
                tokio::time::advance(Duration::from_micros(40 + turn as u64 * 7 % 30)).await;
            }
            assert!((1..=3).contains(&refused), "{refused} of 1000 turns were refused with a lag of {lag_us} us");
            let shown = clocks.each_ref().map(|clock| clock.shown_by_servers(clock.clock.now()).unwrap());
            assert!(register <= shown[0] && shown[0] - shown[1] >= 5, "{register} {shown:?}");
            tokio::time::advance(ballot_margins::LIFETIME).await;
            let shown = clocks[1].shown_by_servers(clocks[1].clock.now());
            assert_eq!(clocks[1].draw(SLOT).map(|ballot| ballot.number), shown, "the margin has expired");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn two_processes_with_margins_stay_within_a_millisecond_of_the_clock() {
        let clocks = [right(), right()];
        for turn in 0..10_000 {
            let clock = &clocks[turn % 2];
            let ballot = clock.draw(SLOT).unwrap();
            let shown = clock.shown_by_servers(clock.clock.now()).unwrap();
            assert!(ballot.number <= shown + ballot_margins::MAX_MARGIN, "{ballot:?} {shown}");
            // Both are refused all the time, as with ballots that are on their way for as long as a turn takes.
            tokio::time::advance(Duration::from_micros(200)).await;
            clock.refused_for(&[SLOT], ballot, clocks[(turn + 1) % 2].draw(SLOT).unwrap().number);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn implausible_number_advances_only_its_slot() {
        let clock = right();
        let before = clock.draw(SLOT).unwrap().number;
        let made_up = before + 3 * MOST_AHEAD;
        refuse(&clock, &[SLOT], made_up);
        assert_eq!(clock.draw(SLOT).unwrap().number, before + 1, "one node may be damaged");
        clock.reached(SLOT, made_up);
        assert_eq!([SLOT, SLOT + 1].map(|slot| clock.draw(slot).unwrap().number), [made_up + 1, before]);
        assert_eq!(drawn(&clock, &[SLOT, SLOT + 1]), None, "it would move the other one as well");
        assert_eq!(clock.draw(SLOT + 1).unwrap().number, before + 1);
        let others = [SLOT + 2, SLOT + 3];
        refuse(&clock, &others, made_up);
        assert_eq!(drawn(&clock, &others), Some(before), "which of them it is, nobody knows");
        assert_eq!([made_up, before].map(|largest| clock.is_in_reach(&others, largest)), [false, true]);
        assert!(clock.is_in_reach(&[SLOT], made_up));
        clock.reached(SLOT, Ballot::NUMBERS.end - 1);
        assert_eq!(clock.draw(SLOT), None, "there are no larger ones");
    }

    #[tokio::test(start_paused = true)]
    async fn ballot_for_several_slots_exceeds_the_known_number_of_each() {
        let clock = right();
        let before = clock.draw(SLOT).unwrap().number;
        refuse(&clock, &[SLOT], before + 100);
        assert_eq!(drawn(&clock, &[0, SLOT]), Some(before + 101));
        assert_eq!([SLOT, 0].map(|slot| clock.draw(slot).unwrap().number), [before + 102; 2]);
        assert_eq!(drawn(&clock, &[]), None);
        clock.reached(0, Ballot::NUMBERS.end - 1);
        assert_eq!(drawn(&clock, &[0, SLOT]), None);
    }

    #[test]
    fn ballots_for_several_slots_are_unique_in_each_slot() {
        let clock = BallotClock::new(Clock::Boot);
        clock.believe(Believed::Ours);
        let wanted: [&[u16]; 4] = [&[1, 2], &[1, 2], &[2, 3], &[1, 3]];
        let draw = |slots: &[u16]| (0..20_000).map(|_| clock.draw_for(slots).unwrap().number).collect::<Vec<_>>();
        let drawn = std::thread::scope(|scope| {
            let threads = wanted.map(|slots| scope.spawn(move || draw(slots)));
            threads.map(|thread| thread.join().unwrap())
        });
        for slot in 1..=3 {
            let with_it = wanted.iter().zip(&drawn).filter(|(slots, _)| slots.contains(&slot));
            let mut numbers: Vec<_> = with_it.flat_map(|(_, drawn)| drawn).collect();
            let all = numbers.len();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), all, "of slot {slot}");
        }
    }
}
