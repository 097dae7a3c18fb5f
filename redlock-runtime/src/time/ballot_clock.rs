//! The clock that fencing numbers come from.
//!
//! A *ballot* is a number that a process proposes to the nodes; each accepts it if it is larger than all that it has accepted
//! for locks of the same slot. That alone makes numbers rise. Clocks only make most ballots large enough at the first try:
//!
//! 1. A ballot is the time in sixteenths of a millisecond, and larger than every ballot of its slot that is known here.
//! 2. A node that refuses tells what it has accepted. When that is ahead of our clock, the clock of another process is, and
//!    ours follows it by a learnt lead from then on: otherwise each change of owners would cost a round trip more. A ballot that was
//!    long on its way is refused as well, and says nothing about clocks: for that, nobody goes further ahead than [`MOST_BY_CHANCE`].
//!    Ballots of one slot that are drawn faster than the clock ticks count on from each other, which cannot be told from a faster clock.
//! 3. A clock that is an hour away from those of most servers is wrong, and theirs are followed. So no process moves a slot
//!    further ahead than that; and after a loss of all data, numbers are above those that were given before when the clock of whoever
//!    draws has passed them.

use crate::time::clock::Clock;
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

/// How far a clock may be from those of the servers, in ballots: an hour. Smaller, and an ordinary skew is taken for a wrong
/// clock; larger, and one wrong clock moves the numbers of its locks further ahead of all others.
const MOST_APART: u64 = 3_600_000 * PER_MILLI;

/// What a process goes ahead because of refusals that may come from its own delay, in ballots: 20 ms. Smaller, and owners that take
/// turns faster than their clocks differ are refused each time; larger, and numbers fall by more when all servers lose their data and a
/// process draws next that knows nothing of those before.
const MOST_BY_CHANCE: u64 = 20 * PER_MILLI;

/// Whoever is further ahead than that has a faster clock, in ballots: 22 ms. It is more than [`MOST_BY_CHANCE`], because owners that take
/// turns within one tick of a clock count on from each other. Smaller, and those would be taken for faster clocks; larger, and a clock
/// that is faster by less is not followed all the way.
const MORE_THAN_CHANCE: u64 = MOST_BY_CHANCE + 2 * PER_MILLI;

/// That nothing is known of the clocks of servers.
const UNKNOWN: i64 = i64::MAX;

/// A number that is proposed to the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ballot {
    pub(crate) number: u64,
    /// What our clock showed when it was drawn, if it was drawn for this.
    drawn_at: Option<u64>,
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

    /// Whether it was drawn before, for other nodes.
    pub(crate) const fn is_known(&self) -> bool {
        self.drawn_at.is_none()
    }
}

/// Draws ballots, and learns of those of other processes.
#[derive(Debug)]
pub(crate) struct BallotClock {
    clock: Clock,
    /// The largest one that is known of each slot; most managers never need it.
    largest: OnceLock<Box<[AtomicU64]>>,
    /// By how much the clocks of other processes are ahead of ours.
    lead: AtomicU64,
    /// All are above this.
    floor: AtomicU64,
    /// What is to be added to the time since the origin of our clock, in microseconds, for that of the servers.
    servers_ahead: AtomicI64,
}

impl BallotClock {
    pub(crate) const fn new(clock: Clock) -> Self {
        let [lead, floor] = [const { AtomicU64::new(0) }; 2];
        Self { clock, largest: OnceLock::new(), lead, floor, servers_ahead: AtomicI64::new(UNKNOWN) }
    }

    /// A ballot for locks of `slot` that is larger than all that are known of it; `None` when there are no larger ones.
    pub(crate) fn draw(&self, slot: u16) -> Option<Ballot> {
        self.draw_above(slot, 0)
    }

    /// The same, and larger than `others`.
    fn draw_above(&self, slot: u16, others: u64) -> Option<Ballot> {
        let (now, latest) = self.believed();
        let by_clock = now.saturating_add(self.lead.load(Ordering::Relaxed)).min(latest);
        let above = self.floor.load(Ordering::Relaxed).max(others);
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
        let latest = self.believed().1;
        slots.len() < 2 || largest <= latest || self.floor.load(Ordering::Relaxed) >= latest
    }

    /// A node has refused `ballot`: it has accepted `largest` for a lock of one of these slots, which may be any of them. What would
    /// move the others out of reach is said of none.
    pub(crate) fn refused_for(&self, slots: &[u16], ballot: Ballot, largest: u64) {
        if self.is_in_reach(slots, largest) {
            for slot in slots {
                self.refused(*slot, ballot, largest);
            }
        }
    }

    /// A node has refused `ballot`: it has accepted `largest` for a lock of `slot`.
    fn refused(&self, slot: u16, ballot: Ballot, largest: u64) {
        if let Some(known) = self.of(slot) {
            known.fetch_max(largest, Ordering::Relaxed);
        }
        let Some(drawn_at) = ballot.drawn_at.filter(|drawn_at| *drawn_at <= largest) else { return };
        let ((now, latest), above) = (self.believed(), largest.saturating_add(1));
        // The clock of whoever drew it shows more than that by now. Our own, when the ballot was drawn, showed less than it would have if the
        // ballot had been on its way for a shorter time: so for how long it was counts no further than by chance.
        let certain = above.saturating_sub(now);
        let lead = if certain > MORE_THAN_CHANCE { certain } else { (above - drawn_at).min(MOST_BY_CHANCE) };
        // What no clock can have shown says nothing about clocks.
        if lead <= 2 * MOST_APART && largest <= latest {
            self.lead.fetch_max(lead, Ordering::Relaxed);
        }
    }

    /// Numbers up to `number` were given in another way. One that leaves no room says nothing, whoever has written it.
    pub(crate) fn given(&self, number: u64) {
        if Ballot::has_room_above(number) {
            self.floor.fetch_max(number, Ordering::Relaxed);
        }
    }

    /// What most servers show, since 1970, is so many microseconds more than the time of our clock since its origin.
    pub(crate) fn servers_are_ahead(&self, micros: i64) {
        self.servers_ahead.store(micros, Ordering::Relaxed);
    }

    /// What our clock shows, or that of the servers where ours is wrong; and the latest that any clock can show.
    fn believed(&self) -> (u64, u64) {
        let since_origin = i64::try_from(self.clock.now().since_origin().as_micros()).unwrap_or(i64::MAX);
        let ours = ballots(self.clock.wall_micros());
        match self.servers_ahead.load(Ordering::Relaxed) {
            UNKNOWN => (ours, Ballot::NUMBERS.end),
            ahead => {
                let servers = ballots(u64::try_from(since_origin.saturating_add(ahead)).unwrap_or_default());
                let is_right = ours.abs_diff(servers) <= MOST_APART;
                (if is_right { ours } else { servers }, servers.saturating_add(MOST_APART))
            }
        }
    }

    fn of(&self, slot: u16) -> Option<&AtomicU64> {
        let largest = self.largest.get_or_init(|| (0..SLOTS).map(|_| AtomicU64::new(0)).collect());
        largest.get(usize::from(slot))
    }
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

    /// One whose wall clock is wrong by `skew_ms`.
    fn skewed(skew_ms: i64) -> BallotClock {
        let error = ClockError { skew_ms, ..ClockError::default() };
        BallotClock::new(Clock::Tokio { origin: tokio::time::Instant::now(), error })
    }

    /// What the servers show, which are right.
    fn knowing_the_servers(skew_ms: i64) -> BallotClock {
        let clock = skewed(skew_ms);
        clock.servers_are_ahead(i64::try_from(virtual_origin().as_micros()).unwrap());
        clock
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
            clock.refused(SLOT, ballot, *register);
            rounds += 1;
        }
    }

    #[test]
    fn ballots_are_the_time_and_never_the_same() {
        assert_eq!([ballots(EPOCH - 1), ballots(EPOCH), ballots(EPOCH + 1_063)], [0, 0, 17]);
        let clock = BallotClock::new(Clock::Boot);
        let drawn: Vec<_> = (0..10_000).map(|_| clock.draw(SLOT).unwrap().number).collect();
        assert!(drawn.is_sorted_by(|a, b| a < b));
        assert!(drawn[0].abs_diff(ballots(Clock::Boot.wall_micros())) < 60_000 * PER_MILLI);
    }

    #[tokio::test(start_paused = true)]
    async fn processes_that_take_turns_are_refused_once_and_not_again() {
        let skews = [0, 1, 100, 1000, 60_000, HOUR / 2];
        for (skew, micros) in skews.into_iter().flat_map(|skew| [100, 300, 1000].map(|micros| (skew, micros))) {
            let (ahead, behind) = (knowing_the_servers(skew), knowing_the_servers(-skew));
            let (mut register, mut refused) = (0, 0);
            for _ in 0..50 {
                for clock in [&ahead, &behind] {
                    let rounds = rounds(&mut register, clock);
                    assert!(rounds <= 2, "{rounds} rounds, {skew} ms");
                    refused += rounds - 1;
                    tokio::time::advance(Duration::from_micros(micros)).await;
                }
            }
            assert_eq!(refused, u32::from(skew > 0), "{skew} ms, {micros} us");
            let most = u64::try_from(2 * skew).unwrap() * PER_MILLI + 2;
            assert!(behind.lead.load(Ordering::Relaxed) <= most, "it follows, and does not run ahead");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_ballot_that_was_long_on_its_way_says_nothing_of_clocks() {
        // Two that learn from each other how late they were go ahead without end.
        let clocks = [knowing_the_servers(0), knowing_the_servers(0)];
        let mut register = 0;
        for delay_ms in [1, 10, 100, 1000, 10_000] {
            for turn in 0..200 {
                let (early, late) = (&clocks[turn % 2], &clocks[(turn + 1) % 2]);
                let old = early.draw(SLOT).unwrap();
                tokio::time::advance(Duration::from_millis(delay_ms)).await;
                rounds(&mut register, late);
                early.refused(SLOT, old, register);
                assert!(rounds(&mut register, early) <= 2);
                let leads = clocks.each_ref().map(|clock| clock.lead.load(Ordering::Relaxed));
                assert!(leads.iter().all(|lead| *lead <= MOST_BY_CHANCE), "{leads:?} after {turn} of {delay_ms} ms");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_late_goes_no_further_ahead_than_the_fastest_clock() {
        for skew in [1, 30, 1000, 60_000] {
            let clocks = [knowing_the_servers(skew), knowing_the_servers(-skew), knowing_the_servers(0)];
            let mut register = 0;
            for turn in 0..300 {
                let (early, late) = (&clocks[turn % 3], &clocks[(turn + 1 + turn / 3 % 2) % 3]);
                let old = early.draw(SLOT).unwrap();
                tokio::time::advance(Duration::from_millis(turn as u64 % 7)).await;
                rounds(&mut register, late);
                // No answer is heard in the moment in which it is given.
                tokio::time::advance(Duration::from_micros(100)).await;
                early.refused(SLOT, old, register);
                tokio::time::advance(Duration::from_millis(1)).await;
            }
            let fastest = ballots(clocks[0].clock.wall_micros());
            let drawn = clocks.each_ref().map(|clock| clock.draw(SLOT + 1).unwrap().number);
            assert!(drawn.iter().all(|drawn| *drawn <= fastest + MOST_BY_CHANCE), "{drawn:?}, {fastest}, {skew} ms");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_wrong_follows_the_servers() {
        let right = knowing_the_servers(0).draw(SLOT).unwrap().number;
        for skew in [-1_000_000 * HOUR, -5 * HOUR, 5 * HOUR, 1_000_000 * HOUR] {
            assert_eq!(knowing_the_servers(skew).draw(SLOT).unwrap().number, right, "{skew} ms");
        }
        assert!(skewed(5 * HOUR).draw(SLOT).unwrap().number > right + MOST_APART, "nothing is known of the servers");
    }

    #[tokio::test(start_paused = true)]
    async fn what_no_clock_has_shown_moves_its_slot_alone() {
        let clock = knowing_the_servers(0);
        let before = clock.draw(SLOT).unwrap();
        let made_up = before.number + 3 * MOST_APART;
        clock.refused(SLOT, before, made_up);
        assert_eq!(clock.draw(SLOT).unwrap().number, made_up + 1);
        assert_eq!(clock.draw(SLOT + 1).unwrap().number, before.number);
        let both = [SLOT, SLOT + 1];
        assert_eq!(clock.draw_for(&both), None, "it would move the other one as well");
        assert_eq!(clock.draw(SLOT + 1).unwrap().number, before.number + 1);
        let others = [SLOT + 2, SLOT + 3];
        clock.refused_for(&others, before, made_up);
        assert_eq!(clock.draw_for(&others).unwrap().number, before.number, "which of them it is, nobody knows");
        assert_eq!(
            [made_up, made_up - 3 * MOST_APART].map(|largest| clock.is_in_reach(&others, largest)),
            [false, true]
        );
        assert!(clock.is_in_reach(&[SLOT], made_up));
        clock.refused(SLOT, before, Ballot::NUMBERS.end - 1);
        assert_eq!(clock.draw(SLOT), None, "there are no larger ones");
    }

    #[tokio::test(start_paused = true)]
    async fn numbers_that_were_counted_are_respected() {
        let clock = skewed(-1_000_000 * HOUR);
        clock.given(41);
        assert_eq!([SLOT, SLOT, 0].map(|slot| clock.draw(slot).unwrap().number), [42, 43, 42]);
        clock.given(Ballot::NUMBERS.end);
        assert_eq!(clock.draw(SLOT).unwrap().number, 44, "nobody has given this one");
        let clock = knowing_the_servers(0);
        let counted = clock.draw(SLOT).unwrap().number + 3 * MOST_APART;
        clock.given(counted);
        assert_eq!(
            [1, 2].map(|more| clock.draw_for(&[0, 1]).unwrap().number - more),
            [counted; 2],
            "all slots are there"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn one_for_several_slots_is_above_what_is_known_of_each() {
        let clock = knowing_the_servers(0);
        let before = clock.draw(SLOT).unwrap();
        clock.refused(SLOT, before, before.number + 100);
        assert_eq!(clock.draw_for(&[0, SLOT]).unwrap().number, before.number + 101);
        assert_eq!([SLOT, 0].map(|slot| clock.draw(slot).unwrap().number), [before.number + 102; 2]);
        assert_eq!(clock.draw_for(&[]), None);
        clock.refused(0, before, Ballot::NUMBERS.end - 1);
        assert_eq!(clock.draw_for(&[0, SLOT]), None);
    }

    #[test]
    fn ballots_for_several_slots_are_never_the_same_in_any_of_them() {
        let clock = BallotClock::new(Clock::Boot);
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

    #[tokio::test(start_paused = true)]
    async fn a_known_number_says_nothing_of_clocks() {
        let clock = knowing_the_servers(0);
        let before = clock.draw(SLOT).unwrap().number;
        clock.refused(SLOT, Ballot::known(7), before + 100);
        assert_eq!([SLOT, 0].map(|slot| clock.draw(slot).unwrap().number), [before + 101, before]);
    }
}
