//! When to look whether the host of a connection was polled, and what follows.
//!
//! 1. While the connection is in use, it is looked at every 10 ms, and less and less often while nothing is sent; least often
//!    when an answer is late by a second.
//! 2. A host that was not polled since the last look is asked: it may have had nothing to do.
//! 3. A host that was not polled after that is silent.
//! 4. All connections of the process are looked at in the same moments: what costs most is to wake up.
//! 5. After a second in which nothing was sent and nothing was to be answered, the next command calls for a look. Renewals are
//!    not counted: nobody waits for one, so that those of many locks, every now and then, are no reason to look all the time.

use std::mem;
use std::time::Duration;

/// The pause between two looks at a connection that is in use. Smaller, more wake-ups; larger, a release waits for longer when
/// all threads of the application are blocked.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
/// The pauses double up to this while nothing is sent. Smaller, more wake-ups while a server owes an answer; larger, that
/// answer is read later, and the proof of a lease of some 100 ms with it.
const LONGEST_PAUSE: Duration = Duration::from_millis(40);
/// And up to this when an answer is late by a second, as that of a frozen server is. Smaller, a process whose only work is
/// to hold locks is woken for nothing; larger, what comes of it late is read still later where all threads are blocked.
const LONGEST_PAUSE_WHEN_LATE: Duration = Duration::from_millis(640);
/// After so many looks in which nothing was sent, an answer is late by about a second.
const LATE_LOOKS: u32 = 25;
/// How long a host has to be polled when it was asked. Smaller, a host that is only busy, or gets too little of the machine,
/// is taken for a blocked one; larger, everything waits for longer when it is blocked.
const PATIENCE: Duration = Duration::from_millis(20);
/// How often nothing was in use before the looks end. Fewer, the next command has to call for one; more, needless wake-ups
/// of a process that is idle. Wake-ups for those who wait in a queue come unasked: whoever waits asks every second.
const IDLE_LOOKS: u32 = 25;

/// When to look again, `pause` after a look at `now`: both are counted from one moment for all connections of a process. The
/// pauses are multiples of the shortest one, so that only the first one is a little longer or shorter than that.
pub(super) fn next_look(now: Duration, pause: Duration) -> Duration {
    let after = (now + pause + SHORTEST_PAUSE / 2).as_millis();
    Duration::from_millis(u64::try_from(after - after % SHORTEST_PAUSE.as_millis()).unwrap_or(u64::MAX))
}

/// What is seen of a host that drives a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// How often the host was polled.
    pub(super) polls: u64,
    /// How many commands were put into the outbox.
    pub(super) puts: u64,
    /// How many of them were no renewals.
    pub(super) uses: u64,
    /// Whether something is to be sent, or an answer is still to come.
    pub(super) is_busy: bool,
}

/// What to do after a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beat {
    /// Look again after this time.
    Wait(Duration),
    /// Wake the host, and look again after this time.
    Ask(Duration),
    /// Look again at the next command.
    Rest,
    /// The host is blocked.
    Silent,
}

impl Beat {
    /// Whether the next command should be told of before the time.
    pub(super) fn is_long(self) -> bool {
        match self {
            Self::Wait(pause) => pause > SHORTEST_PAUSE,
            Self::Rest => true,
            Self::Ask(_) | Self::Silent => false,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Pulse {
    last: Seen,
    pause: Duration,
    idle_looks: u32,
    /// How often something was to be answered, and nothing was in use before.
    owed_looks: u32,
    is_asked: bool,
}

impl Pulse {
    /// Takes in what was seen.
    pub(super) fn beat(&mut self, seen: Seen) -> Beat {
        let last = mem::replace(&mut self.last, seen);
        let (is_polled, is_used) = (seen.polls != last.polls, seen.uses != last.uses);
        if mem::take(&mut self.is_asked) && !is_polled {
            return Beat::Silent;
        }
        self.owed_looks = if is_used || !seen.is_busy { 0 } else { self.owed_looks.saturating_add(1) };
        let longest = if self.owed_looks > LATE_LOOKS { LONGEST_PAUSE_WHEN_LATE } else { LONGEST_PAUSE };
        self.pause = if is_used { SHORTEST_PAUSE } else { (self.pause * 2).clamp(SHORTEST_PAUSE, longest) };
        if is_used {
            self.idle_looks = 0;
        } else if !seen.is_busy {
            self.idle_looks = (self.idle_looks + 1).min(IDLE_LOOKS + 1);
            if self.idle_looks > IDLE_LOOKS {
                return Beat::Rest;
            }
        }
        self.is_asked = !is_polled;
        if is_polled { Beat::Wait(self.pause) } else { Beat::Ask(PATIENCE) }
    }

    /// How many commands had been put into the outbox at the last look.
    pub(super) const fn puts(&self) -> u64 {
        self.last.puts
    }

    /// The host is being polled.
    pub(super) fn at_work(&mut self) -> Beat {
        self.is_asked = false;
        Beat::Wait(SHORTEST_PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASK: Beat = Beat::Ask(PATIENCE);

    fn seen(polls: u64, puts: u64, is_busy: bool) -> Seen {
        Seen { polls, puts, uses: puts, is_busy }
    }

    fn wait(millis: u64) -> Beat {
        Beat::Wait(Duration::from_millis(millis))
    }

    #[test]
    fn beats() {
        let table: [(&str, &[(Seen, Beat)]); 4] = [
            ("in use", &[(seen(1, 1, true), wait(10)), (seen(2, 2, true), wait(10)), (seen(3, 3, false), wait(10))]),
            (
                "an answer that comes late",
                &[
                    (seen(1, 1, true), wait(10)),
                    (seen(1, 1, true), ASK),
                    (seen(2, 1, true), wait(40)),
                    (seen(2, 1, true), ASK),
                    (seen(3, 1, true), wait(40)),
                    (seen(4, 2, true), wait(10)),
                ],
            ),
            ("blocked", &[(seen(1, 1, true), wait(10)), (seen(1, 2, true), ASK), (seen(1, 2, true), Beat::Silent)]),
            (
                "blocked while nothing is sent",
                &[(seen(1, 1, false), wait(10)), (seen(1, 1, false), ASK), (seen(1, 1, false), Beat::Silent)],
            ),
        ];
        for (name, steps) in table {
            let mut pulse = Pulse::default();
            for (number, (seen, beat)) in steps.iter().enumerate() {
                assert_eq!(pulse.beat(*seen), *beat, "{name}, step {number}");
            }
        }
    }

    #[test]
    fn all_connections_are_looked_at_in_the_same_moments() {
        // When the last look was, in microseconds, the pause after it, and when the next one is, in milliseconds.
        let table =
            [(0, 10, 10), (4_999, 10, 10), (5_000, 10, 20), (20_300, 10, 30), (20_300, 20, 40), (34_900, 40, 70)];
        for (now, pause, expected) in table {
            let next = next_look(Duration::from_micros(now), Duration::from_millis(pause));
            assert_eq!(next, Duration::from_millis(expected), "{pause} ms after {now} us");
        }
    }

    #[test]
    fn a_host_that_is_well_and_has_nothing_to_do_is_left_alone() {
        let mut pulse = Pulse::default();
        let mut polls = 1;
        let mut looks = 0;
        loop {
            looks += 1;
            match pulse.beat(seen(polls, 1, false)) {
                Beat::Rest => break,
                Beat::Ask(_) => polls += 1,
                Beat::Wait(_) => {}
                Beat::Silent => panic!("it was polled when it was asked"),
            }
        }
        assert_eq!(looks, IDLE_LOOKS + 2);
        // The next command finds it blocked, or not.
        assert_eq!(pulse.beat(seen(polls, 2, true)), ASK);
        assert_eq!(pulse.beat(seen(polls, 2, true)), Beat::Silent);
    }

    #[test]
    fn an_answer_that_does_not_come_is_looked_for_less_and_less_often() {
        let mut pulse = Pulse::default();
        let mut pauses: Vec<_> = (1..=60)
            .filter_map(|polls| match pulse.beat(seen(polls, 1, true)) {
                Beat::Wait(pause) => Some(pause.as_millis()),
                _ => None,
            })
            .collect();
        pauses.dedup();
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640]);
        assert_eq!(pulse.beat(seen(61, 1, false)), wait(40), "it has come");
        assert_eq!(pulse.beat(seen(62, 2, true)), wait(10), "something was sent");
    }

    #[test]
    fn renewals_now_and_then_are_no_use() {
        let mut pulse = Pulse::default();
        let seen = |polls, puts, is_busy| Seen { polls, puts, uses: 1, is_busy };
        let mut polls = 0;
        while pulse.beat(seen(polls, 1, false)) != Beat::Rest {
            polls += 1;
        }
        assert_eq!(pulse.beat(seen(polls, 2, true)), ASK, "whoever drives the connection may be blocked");
        assert_eq!(pulse.beat(seen(polls + 1, 2, false)), Beat::Rest, "it is answered");
        assert_eq!(pulse.beat(seen(polls + 1, 3, true)), ASK);
        assert_eq!(pulse.beat(seen(polls + 1, 3, true)), Beat::Silent);
    }
}
