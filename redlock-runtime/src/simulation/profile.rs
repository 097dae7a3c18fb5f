//! Parameters of a run.

use super::faults::Faults;
use super::network::Delays;
use super::tree::NAMES;
use crate::protocol::node_state::Limits;
use crate::protocol::rules::Rules;
use crate::request::AfterRestart;
use crate::request::Wait;
use fastrand::Rng;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

/// Parameters from which a seed draws a run. Times are in milliseconds, and chances in percent.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent circumstances")]
pub(super) struct Profile {
    pub(super) nodes: Vec<usize>,
    pub(super) clients: RangeInclusive<usize>,
    pub(super) tasks: RangeInclusive<usize>,
    pub(super) keys: RangeInclusive<usize>,
    pub(super) calls: RangeInclusive<u32>,
    pub(super) delays: Delays,
    pub(super) ttls: Vec<u64>,
    pub(super) waits: Vec<Wait>,
    pub(super) pauses: RangeInclusive<u64>,
    pub(super) bodies: RangeInclusive<u64>,
    pub(super) cancels: u8,
    pub(super) aborts: u8,
    pub(super) panics: u8,
    pub(super) extends: u8,
    /// Chance that the lease of a call is renewed.
    pub(super) renewals: u8,
    pub(super) fenced: u8,
    pub(super) max_holds: u8,
    pub(super) min_holds: u8,
    /// Chance that a manager is shut down during the run.
    pub(super) shutdowns: u8,
    pub(super) foreign: u8,
    /// Chance that a manager has an earlier version, without proven offers.
    pub(super) of_old: u8,
    /// Chance that a call detaches its lock.
    pub(super) detaches: u8,
    /// Chance that a call is shared. Half as many exclusive calls downgrade in the middle of their bodies.
    pub(super) sharing: u8,
    /// Chance that a call wants both keys, in either order, or two places.
    pub(super) sets: u8,
    /// Permit limits from which each call draws; 0 is an exclusive call. Empty if no call wants a permit.
    pub(super) permits: Vec<u32>,
    /// Chance that a call wants a place in the tree instead of a key.
    pub(super) tree: u8,
    /// Limits of the work of one command of a server.
    pub(super) limits: Limits,
    /// Number of operators, each of which breaks at most one lock.
    pub(super) operators: usize,
    /// Chance that a message about a broken lock is lost.
    pub(super) losses: u8,
    /// Times for which a process retains its lock after a call. Empty if no process retains locks.
    pub(super) lingers: Vec<u64>,
    /// `true` if no holder receives messages about waiters.
    pub(super) is_deaf: bool,
    pub(super) faults: Faults,
    /// Treatment of nodes that restart without their data, see [`Faults::forgets`].
    pub(super) after_restart: AfterRestart,
    /// `true` if servers are configured to write every command to disk, but restart without their data nevertheless.
    pub(super) are_durable: bool,
    pub(super) markers: Markers,
    /// Number of servers that may lose their data at once.
    pub(super) amnesia: usize,
    /// `true` if all servers have just started.
    pub(super) is_cold: bool,
    /// Latest start of a process. Half of the processes start at once.
    pub(super) late: u64,
    /// `true` if numbers must grow even though servers lose them.
    pub(super) is_sure_of_counters: bool,
    /// `true` if fencing numbers travel only with votes, and are not delivered otherwise.
    pub(super) has_no_deliveries: bool,
    /// `true` if all messages of a break arrive, so that no placeholder of a dead holder remains.
    pub(super) is_heard: bool,
    /// `true` if renewals are not disturbed, so that a loss is known within the time of a renewal.
    pub(super) is_prompt: bool,
    /// `true` if the faults cost no lock that is renewed.
    pub(super) keeps_all: bool,
    /// Largest error of a clock rate, in parts per million. Two clocks differ by up to twice that. A lease allows for a
    /// drift of 1 %.
    pub(super) drift_ppm: i32,
    /// Largest error of a wall clock.
    pub(super) skew: i64,
    /// `true` if no wall clock was ever set, so that fencing numbers come only from the registers.
    pub(super) has_no_wall_clocks: bool,
    /// Longest time for which a live waiter waits while the lock is free.
    pub(super) bound: u64,
    /// Longest time for which a live waiter waits at all, if the lock changes hands quickly.
    pub(super) fair_within: Option<u64>,
    pub(super) rules: Rules,
}

/// State of the marker after a server has lost its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Markers {
    EndWithTheData,
    /// The server restarts with an old copy of the data.
    AreRestored,
    /// No user may read or write markers.
    AreForbidden,
}

impl Profile {
    /// Returns `true` if there are no faults, no waiter gives up, and no lease runs out.
    ///
    /// A lock that becomes free in that way is free for the plain `SET` of a new call as well.
    pub(super) fn is_calm(&self) -> bool {
        let is_in_time = self.ttls.iter().all(|ttl| self.bodies.end() * 2 < *ttl);
        self.faults.are_none()
            && self.foreign == 0
            && self.cancels == 0
            && self.aborts == 0
            && self.detaches == 0
            && self.operators == 0
            && is_in_time
    }

    /// Returns the names that calls may want.
    pub(super) const fn names(&self) -> Range<usize> {
        if self.tree > 0 { 0..NAMES.len() } else { 0..2 }
    }

    pub(super) fn max_ttl(&self) -> Duration {
        Duration::from_millis(self.ttls.iter().copied().max().unwrap_or_default())
    }

    pub(super) fn longest_linger(&self) -> Duration {
        Duration::from_millis(self.lingers.iter().copied().max().unwrap_or_default())
    }

    /// Returns `true` if every server keeps its data, or the quorum tolerates the loss.
    ///
    /// If a server has missed a number of a majority, one server less than a majority may know it. If one of those
    /// loses its data, the next owner may not learn the number.
    pub(super) const fn keeps_counters(&self) -> bool {
        self.is_sure_of_counters || self.faults.wipes == 0 && self.faults.forget() as usize <= self.amnesia
    }

    /// Healthy servers and short delays. Every call waits for at least a second.
    pub(super) fn calm() -> Self {
        let second = Duration::from_secs(1);
        Self {
            nodes: vec![1, 3, 3, 5],
            clients: 2..=4,
            tasks: 1..=2,
            keys: 1..=1,
            calls: 1..=2,
            delays: Delays { latency: 3, jitter: 2, spike: 8 },
            ttls: vec![2000, 10_000],
            waits: vec![Wait::For(second * 5), Wait::For(second), Wait::Forever],
            pauses: 0..=60,
            bodies: 0..=40,
            cancels: 0,
            aborts: 0,
            panics: 0,
            extends: 0,
            renewals: 0,
            fenced: 0,
            max_holds: 0,
            min_holds: 0,
            shutdowns: 0,
            foreign: 0,
            of_old: 0,
            detaches: 0,
            sharing: 0,
            sets: 0,
            permits: Vec::new(),
            tree: 0,
            limits: Limits::default(),
            operators: 0,
            losses: 0,
            lingers: Vec::new(),
            is_deaf: false,
            faults: Faults::NONE,
            after_restart: AfterRestart::Trust,
            amnesia: 0,
            are_durable: false,
            markers: Markers::EndWithTheData,
            is_cold: false,
            late: 0,
            is_sure_of_counters: false,
            has_no_deliveries: false,
            is_heard: false,
            is_prompt: false,
            keeps_all: false,
            drift_ppm: 0,
            skew: 0,
            has_no_wall_clocks: false,
            bound: 300,
            fair_within: None,
            rules: Rules::default(),
        }
    }

    /// Draws any parameters, but not all faults at once: a run with few faults gets further with each of them.
    pub(super) fn any(random: &mut Rng) -> Self {
        let mut maybe = |most: u32| if random.u8(0..3) == 0 { random.u32(1..=most) } else { 0 };
        let forgets = maybe(3);
        let faults = Faults {
            blocks: 0,
            lies: 0,
            forgeries: 0,
            poisons: 0,
            cuts: maybe(6),
            freezes: maybe(2),
            restarts: maybe(1),
            wipes: u32::from(maybe(8) == 1),
            forgets,
            rolls: 0,
            blinks: 0,
            replacements: if forgets > 0 { maybe(2) } else { 0 },
            promotions: if forgets > 0 { maybe(2) } else { 0 },
            fail_overs: if forgets > 0 { maybe(2) } else { 0 },
            pauses: maybe(2),
            crashes: maybe(2),
            thefts: maybe(2),
            // Servers measure their uptime with exact clocks.
            steps: if forgets > 0 { 0 } else { maybe(2) },
            raises: None,
            targets: None,
            away: 0,
            after: 0,
            is_minority: maybe(1) == 1,
            loses_the_numbered: false,
            until: 1500,
            longest: 1500,
        };
        let [cancels, aborts, panics, extends, foreign, fenced, max_holds, min_holds, shutdowns] =
            [40, 30, 10, 30, 50, 100, 50, 30, 50].map(|most| u8::try_from(maybe(most)).unwrap());
        let is_slow = random.u8(0..4) == 0;
        // Some runs have long bodies on short leases. Renewed leases outlive the bodies, and the other bodies are
        // stopped.
        let (renewals, longest_body) = if random.u8(0..4) == 0 { (50, 1500) } else { (20, 150) };
        let detaches = if random.u8(0..4) == 0 { random.u8(1..=60) } else { 0 };
        let lingers = if random.u8(0..4) == 0 { vec![0, 100, 2000] } else { Vec::new() };
        // If its notices are lost, a waiter waits for the idle time as well.
        let bound = 4000 + lingers.iter().max().unwrap_or(&0);
        let of_old = if random.u8(0..3) == 0 { 50 } else { 0 };
        let operators = if random.u8(0..4) == 0 { random.usize(1..=2) } else { 0 };
        // Some messages of a break are forged, and some reach processes with blocked threads.
        let faults = if operators > 0 { Faults { blocks: 1, lies: 1, ..faults } } else { faults };
        let (calm, millis) = (Self::calm(), Duration::from_millis);
        // Drawn last, so that older seeds keep their meaning.
        let sharing = if random.u8(0..3) == 0 { random.u8(20..=90) } else { 0 };
        let kinds = Kinds::any(random);
        Self {
            clients: 2..=5,
            tasks: 1..=3,
            keys: kinds.keys,
            sets: kinds.sets,
            tree: kinds.tree,
            permits: kinds.permits,
            delays: if is_slow { Delays { latency: 15, jitter: 20, spike: 80 } } else { calm.delays },
            ttls: vec![300, 1000, 3000, 20_000],
            waits: vec![
                Wait::None,
                Wait::For(millis(50)),
                Wait::For(millis(800)),
                Wait::For(millis(5000)),
                Wait::Forever,
            ],
            bodies: 0..=longest_body,
            cancels,
            aborts,
            panics,
            extends,
            renewals,
            fenced,
            max_holds,
            min_holds,
            shutdowns,
            detaches,
            operators,
            losses: 30,
            lingers,
            // A program without restart detection trusts servers that have lost their data.
            foreign: if forgets > 0 { 0 } else { foreign },
            of_old,
            faults,
            after_restart: if forgets > 0 { AfterRestart::Abstain } else { AfterRestart::Trust },
            sharing,
            drift_ppm: 4500,
            skew: 10_000,
            has_no_wall_clocks: fenced % 3 == 0,
            bound,
            ..calm
        }
    }
}

/// Kinds of locks in addition to single keys.
struct Kinds {
    keys: RangeInclusive<usize>,
    sets: u8,
    tree: u8,
    permits: Vec<u32>,
}

impl Kinds {
    /// Draws the kinds of locks. In one run of three, one kind is added to single keys.
    fn any(random: &mut Rng) -> Self {
        let single = Self { keys: 1..=2, sets: 0, tree: 0, permits: Vec::new() };
        match random.u8(0..9) {
            0 => Self { keys: 2..=2, sets: 60, ..single },
            1 => Self { tree: 100, sets: 20, ..single },
            2 => Self { permits: vec![1, 2, 2, 0], ..single },
            _ => single,
        }
    }
}
