//! The clock that fencing numbers come from: that of the servers.
//!
//! A *ballot* is a number that a process proposes to the nodes; each accepts it if it is larger than all that it has accepted
//! for locks of the same slot. That alone makes numbers rise. The clock only makes most ballots large enough at the first try:
//!
//! 1. A ballot is the time in sixteenths of a millisecond, and larger than every ballot of its slot that is known here.
//! 2. The time is that of the servers: where their clocks differ, that of the one in the middle. So all processes have the same,
//!    however wrong their own clocks are, and nobody has to follow a faster one. What is known of it is no more than the servers
//!    show, and less by the time that a short answer took on its way, and by the drift since then (`node/server_clock`). So whoever
//!    draws because a server has said that a lock is free draws more than the owner before. Servers that a user may not ask for
//!    their time are taken to show ours.
//! 3. A node that refuses tells what it has accepted, and the next ballot for the slot is above that. It teaches nothing about clocks:
//!    a proposal that was long on its way is refused as well, and so is one where ballots are drawn faster than the clock ticks, which
//!    count on from each other until the clock has caught up. So no slot moves another one, and after a loss of all data numbers
//!    are above those that were given before.

use crate::time::clock::{Clock, Instant};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// How many registers a node has at the most: one for each slot of a cluster.
pub(crate) const SLOTS: u16 = 16384;

/// How many ballots there are in a millisecond. Fewer, and processes that take turns within one meet; more, and numbers are
/// used up sooner.
const PER_MILLI: u64 = 16;

/// 2024-01-01, in microseconds since 1970.
const EPOCH: u64 = 1_704_067_200_000_000;

/// How far from the time of the servers a ballot may be that is for several slots, in ballots: an hour. Smaller, and the clock of a server
/// that was set back makes calls fail; larger, and one register that is damaged moves those of other names further.
const MOST_AHEAD: u64 = 3_600_000 * PER_MILLI;

/// By how much clocks run apart that nothing is wrong with, as one part in so many: 200 in a million, where quartz has up to 100. More parts,
/// and numbers run ahead of the servers' clocks; fewer, and owners that take turns are refused, when one has heard of the time later.
const USUAL_DRIFT: i64 = 5000;

/// That nothing is known of the clocks of servers.
const UNKNOWN: i64 = i64::MAX;

/// That they may not be asked.
const UNTOLD: i64 = i64::MIN;

/// By how many microseconds the clock of a server is ahead of ours at least: less by the drift, the longer ago it was heard. Of two, the
/// larger one is so at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ahead {
    /// At the origin of our clock.
    at_origin: i64,
}

impl Ahead {
    /// It was so many ahead at least when our clock was at `heard`.
    pub(crate) fn new(micros: i64, heard: Instant) -> Self {
        Self { at_origin: micros.saturating_add(since_origin(heard) / USUAL_DRIFT) }
    }

    /// So many microseconds it is ahead at least `at` that time.
    pub(crate) fn at(self, at: Instant) -> i64 {
        self.at_origin.saturating_sub(since_origin(at) / USUAL_DRIFT)
    }

    /// By how many microseconds it differs from another one.
    pub(crate) const fn differs_by(self, other: Self) -> u64 {
        self.at_origin.abs_diff(other.at_origin)
    }
}

/// Where the time comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Believed {
    /// From servers whose clocks are so far ahead.
    Servers(Ahead),
    /// From our own wall clock: the servers may not be asked.
    Ours,
}

/// A number that is proposed to the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ballot {
    pub(crate) number: u64,
    /// When it was drawn, if it was drawn for this.
    drawn_at: Option<Instant>,
}

impl Ballot {
    /// The numbers that there are. A token that is made of the last one is no negative `BIGINT`; sixteen of them for each
    /// millisecond last until the year 2302.
    pub(crate) const NUMBERS: Range<u64> = 1..1 << 47;

    /// Looks at the register like any other one, and is never accepted.
    pub(crate) const LOOK: Self = Self::known(0);

    /// Whether a number can have been given so that others are larger.
    pub(crate) const fn has_room_above(number: u64) -> bool {
        number < Self::NUMBERS.end - 1
    }

    /// One that was drawn before, and is told to one node more.
    pub(crate) const fn known(number: u64) -> Self {
        Self { number, drawn_at: None }
    }

    /// When it was drawn; `None` when that was before, for other nodes.
    pub(crate) const fn drawn_at(&self) -> Option<Instant> {
        self.drawn_at
    }
}

/// Draws ballots, and learns of those of other processes.
#[derive(Debug)]
pub(crate) struct BallotClock {
    clock: Clock,
    /// The largest one that is known of each slot; most managers never need it.
    largest: OnceLock<Box<[AtomicU64]>>,
    /// All are above this.
    floor: AtomicU64,
    /// The [`Ahead`] of the servers, or one of the two values beside it.
    servers: AtomicI64,
}

impl BallotClock {
    pub(crate) const fn new(clock: Clock) -> Self {
        Self { clock, largest: OnceLock::new(), floor: AtomicU64::new(0), servers: AtomicI64::new(UNKNOWN) }
    }

    /// A ballot for locks of `slot` that is larger than all that are known of it; `None` when there are no larger ones, or the time of
    /// the servers is not known yet.
    pub(crate) fn draw(&self, slot: u16) -> Option<Ballot> {
        self.draw_above(slot, 0)
    }

    /// The same, and larger than `others`.
    fn draw_above(&self, slot: u16, others: u64) -> Option<Ballot> {
        let now = self.clock.now();
        let (by_clock, above) = (self.shown_by_servers(now)?, self.floor.load(Ordering::Relaxed).max(others));
        let next = |known: u64| by_clock.max(known.max(above).saturating_add(1));
        // Never fails: the closure always has a next value.
        let update = self.of(slot)?.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |known| Some(next(known)));
        let number = update.map_or_else(next, next);
        Ballot::NUMBERS.contains(&number).then_some(Ballot { number, drawn_at: Some(now) })
    }

    /// A ballot that is larger than all that are known to have been accepted for locks of these slots; `None` as above, for no
    /// slot, and for several when what was accepted for one of them is out of reach: it moves its slot alone.
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
            let ballot = self.draw_above(*first, largest)?;
            let is_ours =
                |slot: &u16| Some(self.of(*slot)?.fetch_max(ballot.number, Ordering::Relaxed) < ballot.number);
            // Somebody else may have drawn for one of them meanwhile.
            if others.iter().all(|slot| is_ours(slot) == Some(true)) {
                return Some(ballot);
            }
        }
    }

    /// Whether a ballot for locks of these slots may be larger than `largest`. One of several slots moves the others no further than
    /// a clock can show; where numbers were counted to beyond that, all slots are there already.
    pub(crate) fn is_in_reach(&self, slots: &[u16], largest: u64) -> bool {
        let shown = self.shown_by_servers(self.clock.now());
        let latest = shown.map_or(Ballot::NUMBERS.end, |shown| shown.saturating_add(MOST_AHEAD));
        slots.len() < 2 || largest <= latest || self.floor.load(Ordering::Relaxed) >= latest
    }

    /// A node has refused a ballot: it has accepted `largest` for a lock of one of these slots, which may be any of them. What would
    /// move the others out of reach is said of none.
    pub(crate) fn refused_for(&self, slots: &[u16], largest: u64) {
        if self.is_in_reach(slots, largest) {
            for known in slots.iter().filter_map(|slot| self.of(*slot)) {
                known.fetch_max(largest, Ordering::Relaxed);
            }
        }
    }

    /// Numbers up to `number` were given in another way. One that leaves no room says nothing, whoever has written it.
    pub(crate) fn given(&self, number: u64) {
        if Ballot::has_room_above(number) {
            self.floor.fetch_max(number, Ordering::Relaxed);
        }
    }

    /// The time, since 1970, is what `believed` says.
    pub(crate) fn believe(&self, believed: Believed) {
        let stored = match believed {
            Believed::Servers(Ahead { at_origin }) => at_origin.clamp(UNTOLD + 1, UNKNOWN - 1),
            Believed::Ours => UNTOLD,
        };
        self.servers.store(stored, Ordering::Relaxed);
    }

    /// What the clocks of the servers show `now`, if that is known.
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

/// The time in ballots since their beginning, of one in microseconds since 1970.
const fn ballots(micros: u64) -> u64 {
    let since = micros.saturating_sub(EPOCH);
    since / 1000 * PER_MILLI + since % 1000 * PER_MILLI / 1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::clock::{ClockError, virtual_origin};
    use std::time::Duration;

    const HOUR: i64 = 3_600_000;
    const SLOT: u16 = 7;

    /// Of a process whose wall clock is wrong by `skew_ms`.
    fn skewed(skew_ms: i64) -> BallotClock {
        let error = ClockError { skew_ms, ..ClockError::default() };
        BallotClock::new(Clock::Tokio { origin: tokio::time::Instant::now(), error })
    }

    /// The same, which has just heard the time of servers that are ahead by so many milliseconds.
    fn knowing(skew_ms: i64, servers_ahead_ms: i64) -> BallotClock {
        let clock = skewed(skew_ms);
        let micros = i64::try_from(virtual_origin().as_micros()).unwrap() + servers_ahead_ms * 1000;
        clock.believe(Believed::Servers(Ahead::new(micros, clock.clock.now())));
        clock
    }

    /// Of a process that knows the time of servers which are right.
    fn right() -> BallotClock {
        knowing(0, 0)
    }

    /// A register, and how many rounds it takes until it accepts a ballot of `clock`.
    fn rounds(register: &mut u64, clock: &BallotClock) -> u32 {
        let mut rounds = 1;
        loop {
            let ballot = clock.draw(SLOT).unwrap();
            if ballot.number > *register {
                *register = ballot.number;
                return rounds;
            }
            clock.refused_for(&[SLOT], *register);
            rounds += 1;
        }
    }

    fn drawn(clock: &BallotClock, slots: &[u16]) -> Option<u64> {
        clock.draw_for(slots).map(|ballot| ballot.number)
    }

    #[test]
    fn ballots_are_the_time_and_never_the_same() {
        assert_eq!([ballots(EPOCH - 1), ballots(EPOCH), ballots(EPOCH + 1_063)], [0, 0, 17]);
        let clock = BallotClock::new(Clock::Boot);
        clock.believe(Believed::Ours);
        let drawn: Vec<_> = (0..10_000).map(|_| clock.draw(SLOT).unwrap().number).collect();
        assert!(drawn.is_sorted_by(|a, b| a < b));
        assert!(drawn[0].abs_diff(ballots(Clock::Boot.wall_micros())) < 60_000 * PER_MILLI);
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_is_that_of_the_servers_alone() {
        let expected = right().draw(SLOT).unwrap().number;
        for skew in [-1_000_000 * HOUR, -HOUR, -1, 1, HOUR, 1_000_000 * HOUR] {
            assert_eq!(skewed(skew).draw(SLOT), None, "nothing is known of them yet");
            assert_eq!(knowing(skew, 0).draw(SLOT).unwrap().number, expected, "{skew} ms");
        }
        assert_eq!(knowing(0, 1000).draw(SLOT).unwrap().number, expected + 1000 * PER_MILLI);
    }

    #[tokio::test(start_paused = true)]
    async fn where_servers_may_not_be_asked_the_time_is_ours() {
        let clock = skewed(HOUR);
        clock.believe(Believed::Ours);
        assert_eq!(clock.draw(SLOT), knowing(0, HOUR).draw(SLOT));
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(clock.draw(SLOT).unwrap().number, ballots(clock.clock.wall_micros()));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_heard_long_ago_counts_less_by_the_drift() {
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
    async fn a_refusal_costs_one_round_and_says_nothing_of_other_slots() {
        // The servers show a day less than they did.
        let clocks = [right(), right()];
        let now = clocks[0].draw(SLOT).unwrap().number;
        let mut register = now + 24 * 3_600_000 * PER_MILLI;
        for turn in 0..10 {
            assert_eq!(rounds(&mut register, &clocks[turn % 2]), 2);
            assert_eq!(rounds(&mut register, &clocks[turn % 2]), 1);
        }
        assert_eq!(clocks[0].draw(SLOT + 1).unwrap().number, now);
    }

    #[tokio::test(start_paused = true)]
    async fn neither_delays_nor_bursts_move_other_slots() {
        let [clocks @ .., unused] = [right(), right(), right()];
        let mut register = 0;
        for turn in 0..1000 {
            let (early, late) = (&clocks[turn % 2], &clocks[(turn + 1) % 2]);
            let _on_its_way = early.draw(SLOT);
            tokio::time::advance(Duration::from_millis(turn as u64 % 20)).await;
            for _ in 0..50 {
                rounds(&mut register, late);
            }
            early.refused_for(&[SLOT], register);
            assert!(rounds(&mut register, early) <= 2);
        }
        let now = unused.draw(SLOT).unwrap().number;
        assert_eq!(clocks.each_ref().map(|clock| clock.draw(SLOT + 1).unwrap().number), [now; 2]);
        // Where more were drawn than there are ticks, they are ahead for as long as the rest of the ticks takes.
        tokio::time::advance(Duration::from_secs(1)).await;
        let now = unused.draw(SLOT).unwrap().number;
        assert_eq!(clocks.each_ref().map(|clock| clock.draw(SLOT).unwrap().number), [now; 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_no_clock_has_shown_moves_its_slot_alone() {
        let clock = right();
        let before = clock.draw(SLOT).unwrap().number;
        let made_up = before + 3 * MOST_AHEAD;
        clock.refused_for(&[SLOT], made_up);
        assert_eq!([SLOT, SLOT + 1].map(|slot| clock.draw(slot).unwrap().number), [made_up + 1, before]);
        assert_eq!(drawn(&clock, &[SLOT, SLOT + 1]), None, "it would move the other one as well");
        assert_eq!(clock.draw(SLOT + 1).unwrap().number, before + 1);
        let others = [SLOT + 2, SLOT + 3];
        clock.refused_for(&others, made_up);
        assert_eq!(drawn(&clock, &others), Some(before), "which of them it is, nobody knows");
        assert_eq!([made_up, before].map(|largest| clock.is_in_reach(&others, largest)), [false, true]);
        assert!(clock.is_in_reach(&[SLOT], made_up));
        clock.refused_for(&[SLOT], Ballot::NUMBERS.end - 1);
        assert_eq!(clock.draw(SLOT), None, "there are no larger ones");
    }

    #[tokio::test(start_paused = true)]
    async fn numbers_that_were_counted_are_respected() {
        // Before the first ballot.
        let clock = knowing(0, -1_000_000 * HOUR);
        clock.given(41);
        assert_eq!([SLOT, SLOT, 0].map(|slot| clock.draw(slot).unwrap().number), [42, 43, 42]);
        clock.given(Ballot::NUMBERS.end);
        assert_eq!(clock.draw(SLOT).unwrap().number, 44, "nobody has given this one");
        let clock = right();
        let counted = clock.draw(SLOT).unwrap().number + 3 * MOST_AHEAD;
        clock.given(counted);
        assert_eq!([1, 2].map(|_| drawn(&clock, &[0, 1]).unwrap()), [1, 2].map(|more| counted + more), "all are there");
    }

    #[tokio::test(start_paused = true)]
    async fn one_for_several_slots_is_above_what_is_known_of_each() {
        let clock = right();
        let before = clock.draw(SLOT).unwrap().number;
        clock.refused_for(&[SLOT], before + 100);
        assert_eq!(drawn(&clock, &[0, SLOT]), Some(before + 101));
        assert_eq!([SLOT, 0].map(|slot| clock.draw(slot).unwrap().number), [before + 102; 2]);
        assert_eq!(drawn(&clock, &[]), None);
        clock.refused_for(&[0], Ballot::NUMBERS.end - 1);
        assert_eq!(drawn(&clock, &[0, SLOT]), None);
    }

    #[test]
    fn ballots_for_several_slots_are_never_the_same_in_any_of_them() {
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
