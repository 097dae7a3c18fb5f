//! Schedule of the checks that the host of a connection is polled, and their consequences.
//!
//! 1. A connection in use is checked every 10 ms, and less often while nothing is sent. The checks are rarest when a reply is late by a
//!    second.
//! 2. A host that was not polled since the last check is woken: it may have had nothing to do.
//! 3. A host that was not polled after that is silent.
//! 4. All connections of the process are checked at the same moments, because the wake-up is the largest cost.
//! 5. After a second without a command and without a missing reply, the next command requests a check. Renewals are ignored here: no caller
//!    waits for them, and the occasional renewals of many locks are not a reason to check all the time.

use std::mem;
use std::time::Duration;

/// Pause between two checks of a connection in use. Too small: more wake-ups. Too large: a release waits for longer when all threads of the
/// application are blocked.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
/// Maximum pause, up to which the pauses double while nothing is sent. Too small: more wake-ups while a reply is missing. Too large: the
/// reply is read later, and with it the proof of a lease of some 100 ms.
const LONGEST_PAUSE: Duration = Duration::from_millis(40);
/// Maximum pause when a reply is late by a second, as from a frozen server. Too small: a process that only holds locks is woken for
/// nothing. Too large: the late reply is read still later if all threads are blocked.
const LONGEST_PAUSE_WHEN_LATE: Duration = Duration::from_millis(640);
/// Number of checks without a command after which a reply is late by about a second.
const LATE_LOOKS: u32 = 25;
/// Time in which a host has to be polled after it was woken. Too small: a busy host, or one with too little CPU time, is taken for a
/// blocked one. Too large: all commands wait longer for a blocked host.
const PATIENCE: Duration = Duration::from_millis(20);
/// Number of idle checks before the checks end. Too small: the next command has to request a check. Too large: needless wake-ups of an idle
/// process. Notifications for waiters need no check: a waiter asks every second.
const IDLE_LOOKS: u32 = 25;

/// Returns the time of the next check, `pause` after a check at `now`. Both are measured from one moment for all connections of a process.
/// The pauses are multiples of the shortest one, so that only the first one is a little longer or shorter.
pub(super) fn next_look(now: Duration, pause: Duration) -> Duration {
    let after = (now + pause + SHORTEST_PAUSE / 2).as_millis();
    Duration::from_millis(u64::try_from(after - after % SHORTEST_PAUSE.as_millis()).unwrap_or(u64::MAX))
}

/// Observed activity of a host that drives a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Number of polls of the host.
    pub(super) polls: u64,
    /// Number of commands put into the outbox.
    pub(super) puts: u64,
    /// Number of these commands without renewals.
    pub(super) uses: u64,
    /// `true` if a command must be sent, or a reply is missing.
    pub(super) is_busy: bool,
}

/// Action after a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeAction {
    /// Check again after this time.
    Wait(Duration),
    /// Wake the host, and check again after this time.
    Ask(Duration),
    /// Check again at the next command.
    Rest,
    /// The host is blocked.
    Silent,
}

impl ProbeAction {
    /// Returns `true` if the next command should be reported before this time.
    pub(super) fn is_long(self) -> bool {
        match self {
            Self::Wait(pause) => pause > SHORTEST_PAUSE,
            Self::Rest => true,
            Self::Ask(_) | Self::Silent => false,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct LivenessProbe {
    last: Seen,
    pause: Duration,
    idle_looks: u32,
    /// Number of checks with a missing reply and without use of the connection before.
    owed_looks: u32,
    is_asked: bool,
}

impl LivenessProbe {
    /// Evaluates the observation, and returns the next action.
    pub(super) fn beat(&mut self, seen: Seen) -> ProbeAction {
        let last = mem::replace(&mut self.last, seen);
        let (is_polled, is_used) = (seen.polls != last.polls, seen.uses != last.uses);
        if mem::take(&mut self.is_asked) && !is_polled {
            return ProbeAction::Silent;
        }
        self.owed_looks = if is_used || !seen.is_busy { 0 } else { self.owed_looks.saturating_add(1) };
        let longest = if self.owed_looks > LATE_LOOKS { LONGEST_PAUSE_WHEN_LATE } else { LONGEST_PAUSE };
        self.pause = if is_used { SHORTEST_PAUSE } else { (self.pause * 2).clamp(SHORTEST_PAUSE, longest) };
        if is_used {
            self.idle_looks = 0;
        } else if !seen.is_busy {
            self.idle_looks = (self.idle_looks + 1).min(IDLE_LOOKS + 1);
            if self.idle_looks > IDLE_LOOKS {
                return ProbeAction::Rest;
            }
        }
        self.is_asked = !is_polled;
        if is_polled { ProbeAction::Wait(self.pause) } else { ProbeAction::Ask(PATIENCE) }
    }

    /// Returns the number of commands in the outbox at the last check.
    pub(super) const fn puts(&self) -> u64 {
        self.last.puts
    }

    /// Records that the host is being polled.
    pub(super) fn at_work(&mut self) -> ProbeAction {
        self.is_asked = false;
        ProbeAction::Wait(SHORTEST_PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASK: ProbeAction = ProbeAction::Ask(PATIENCE);

    fn seen(polls: u64, puts: u64, is_busy: bool) -> Seen {
        Seen { polls, puts, uses: puts, is_busy }
    }

    fn wait(millis: u64) -> ProbeAction {
        ProbeAction::Wait(Duration::from_millis(millis))
    }

    #[test]
    fn beats() {
        let table: [(&str, &[(Seen, ProbeAction)]); 4] = [
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
            (
                "blocked",
                &[(seen(1, 1, true), wait(10)), (seen(1, 2, true), ASK), (seen(1, 2, true), ProbeAction::Silent)],
            ),
            (
                "blocked while nothing is sent",
                &[(seen(1, 1, false), wait(10)), (seen(1, 1, false), ASK), (seen(1, 1, false), ProbeAction::Silent)],
            ),
        ];
        for (name, steps) in table {
            let mut liveness_probe = LivenessProbe::default();
            for (number, (seen, beat)) in steps.iter().enumerate() {
                assert_eq!(liveness_probe.beat(*seen), *beat, "{name}, step {number}");
            }
        }
    }

    #[test]
    fn probes_of_all_connections_share_the_same_ticks() {
        // Time of the last check in microseconds, the pause after it, and the time of the next check in milliseconds.
        let table =
            [(0, 10, 10), (4_999, 10, 10), (5_000, 10, 20), (20_300, 10, 30), (20_300, 20, 40), (34_900, 40, 70)];
        for (now, pause, expected) in table {
            let next = next_look(Duration::from_micros(now), Duration::from_millis(pause));
            assert_eq!(next, Duration::from_millis(expected), "{pause} ms after {now} us");
        }
    }

    #[test]
    fn responsive_idle_runtime_is_not_probed() {
        let mut liveness_probe = LivenessProbe::default();
        let mut polls = 1;
        let mut looks = 0;
        loop {
            looks += 1;
            match liveness_probe.beat(seen(polls, 1, false)) {
                ProbeAction::Rest => break,
                ProbeAction::Ask(_) => polls += 1,
                ProbeAction::Wait(_) => {}
                ProbeAction::Silent => panic!("it was polled when it was asked"),
            }
        }
        assert_eq!(looks, IDLE_LOOKS + 2);
        // The next command finds out if the host is blocked.
        assert_eq!(liveness_probe.beat(seen(polls, 2, true)), ASK);
        assert_eq!(liveness_probe.beat(seen(polls, 2, true)), ProbeAction::Silent);
    }

    #[test]
    fn probes_for_a_missing_reply_become_rarer() {
        let mut liveness_probe = LivenessProbe::default();
        let mut pauses: Vec<_> = (1..=60)
            .filter_map(|polls| match liveness_probe.beat(seen(polls, 1, true)) {
                ProbeAction::Wait(pause) => Some(pause.as_millis()),
                _ => None,
            })
            .collect();
        pauses.dedup();
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640]);
        assert_eq!(liveness_probe.beat(seen(61, 1, false)), wait(40), "it has come");
        assert_eq!(liveness_probe.beat(seen(62, 2, true)), wait(10), "something was sent");
    }

    #[test]
    fn occasional_renewals_do_not_count_as_use() {
        let mut liveness_probe = LivenessProbe::default();
        let seen = |polls, puts, is_busy| Seen { polls, puts, uses: 1, is_busy };
        let mut polls = 0;
        while liveness_probe.beat(seen(polls, 1, false)) != ProbeAction::Rest {
            polls += 1;
        }
        assert_eq!(liveness_probe.beat(seen(polls, 2, true)), ASK, "whoever drives the connection may be blocked");
        assert_eq!(liveness_probe.beat(seen(polls + 1, 2, false)), ProbeAction::Rest, "it is answered");
        assert_eq!(liveness_probe.beat(seen(polls + 1, 3, true)), ASK);
        assert_eq!(liveness_probe.beat(seen(polls + 1, 3, true)), ProbeAction::Silent);
    }
}
