//! What a run may be made of.

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

/// All times are in milliseconds, all chances in percent.
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
    /// How many calls have their lease renewed.
    pub(super) renewals: u8,
    pub(super) fenced: u8,
    pub(super) max_holds: u8,
    pub(super) min_holds: u8,
    /// How many managers are shut down in the middle of it all.
    pub(super) shutdowns: u8,
    pub(super) foreign: u8,
    /// How many managers are of an earlier version, which knows nothing of proven claims.
    pub(super) of_old: u8,
    /// How many calls leave their lock to others.
    pub(super) detaches: u8,
    /// How many calls share their locks; of the others, as many share theirs from the middle of their bodies on as half of these.
    pub(super) sharing: u8,
    /// How many calls want both keys, in either order, or two places.
    pub(super) sets: u8,
    /// How many may have permits at a time, as each call draws one of these; 0 for one that wants the lock alone. Empty where nobody
    /// wants a permit.
    pub(super) permits: Vec<u32>,
    /// How many want places in a tree, and no keys.
    pub(super) tree: u8,
    /// Limits of the work of one command of a server.
    pub(super) limits: Limits,
    /// How many people break locks, each one at the most.
    pub(super) operators: usize,
    /// How much of what is said about broken locks is lost.
    pub(super) losses: u8,
    /// For how long processes keep their locks after a call; empty where none does.
    pub(super) lingers: Vec<u64>,
    /// Whether no holder hears that others wait.
    pub(super) is_deaf: bool,
    pub(super) faults: Faults,
    /// What nodes are worth that come back without their data, see [`Faults::forgets`].
    pub(super) after_restart: AfterRestart,
    /// Servers are configured to write every command to disk, and come back without their data all the same.
    pub(super) are_durable: bool,
    pub(super) markers: Markers,
    /// How many of them may do so at once.
    pub(super) amnesia: usize,
    /// Whether all servers are started just now.
    pub(super) is_cold: bool,
    /// When the last process starts at the latest; half of them start at once.
    pub(super) late: u64,
    /// Whether numbers are expected to grow although servers forget them.
    pub(super) is_sure_of_counters: bool,
    /// Whether fencing numbers travel with votes alone, and are not delivered otherwise.
    pub(super) has_no_deliveries: bool,
    /// Whether nothing stands in for a holder that is dead, where all that is said of a break arrives.
    pub(super) is_heard: bool,
    /// Whether losses are known within the time that renewals take: where those are not disturbed.
    pub(super) is_prompt: bool,
    /// Whether what goes wrong costs no lock that is renewed.
    pub(super) keeps_all: bool,
    /// How wrong a clock may run, in parts in a million: two of them differ by twice that, and the drift that a lease
    /// allows for is one part in a hundred.
    pub(super) drift_ppm: i32,
    /// How wrong a wall clock may be.
    pub(super) skew: i64,
    /// Whether no wall clock was ever set, so that fencing numbers come from the registers alone.
    pub(super) has_no_wall_clocks: bool,
    /// No live waiter waits for longer than this while the lock is free.
    pub(super) bound: u64,
    /// No live waiter waits for longer than this, free or not, where the lock goes round quickly.
    pub(super) fair_within: Option<u64>,
    pub(super) rules: Rules,
}

/// What becomes of the marker in the data of a server that loses its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Markers {
    EndWithTheData,
    /// The server comes back with an old copy of the data.
    AreRestored,
    /// No user may read or write markers.
    AreForbidden,
}

impl Profile {
    /// Whether nothing goes wrong, nobody gives up and no lease runs out: a lock that becomes free in that way is free for
    /// the plain `SET` of a newcomer as well.
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

    /// Those that anybody wants.
    pub(super) const fn names(&self) -> Range<usize> {
        if self.tree > 0 { 0..NAMES.len() } else { 0..2 }
    }

    pub(super) fn max_ttl(&self) -> Duration {
        Duration::from_millis(self.ttls.iter().copied().max().unwrap_or_default())
    }

    pub(super) fn longest_linger(&self) -> Duration {
        Duration::from_millis(self.lingers.iter().copied().max().unwrap_or_default())
    }

    /// Whether every server keeps its data. A number that a majority has given may be known to one server less than the
    /// majority when another one has missed it: so the next owner may hear of it from nobody if one forgets.
    pub(super) const fn keeps_counters(&self) -> bool {
        self.is_sure_of_counters || self.faults.wipes == 0 && self.faults.forget() as usize <= self.amnesia
    }

    /// Healthy servers, short ways, everybody waits for a second at least.
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

    /// Anything, but not everything at once: a run in which only a few things go wrong gets further with them.
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
            // Servers count their uptime by clocks that are right.
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
        // Long bodies on short leases now and then: those that are renewed outlive them, and the others are stopped.
        let (renewals, longest_body) = if random.u8(0..4) == 0 { (50, 1500) } else { (20, 150) };
        let detaches = if random.u8(0..4) == 0 { random.u8(1..=60) } else { 0 };
        let lingers = if random.u8(0..4) == 0 { vec![0, 100, 2000] } else { Vec::new() };
        // Whose notices are lost waits for the idle time as well.
        let bound = 4000 + lingers.iter().max().unwrap_or(&0);
        let of_old = if random.u8(0..3) == 0 { 50 } else { 0 };
        let operators = if random.u8(0..4) == 0 { random.usize(1..=2) } else { 0 };
        // Some of what is said of a break is said by liars, and to processes whose threads are blocked.
        let faults = if operators > 0 { Faults { blocks: 1, lies: 1, ..faults } } else { faults };
        let (calm, millis) = (Self::calm(), Duration::from_millis);
        // The last, so that older seeds mean what they meant.
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
            // Who knows nothing of restarts trusts those who have forgotten.
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

/// What is locked, besides single keys.
struct Kinds {
    keys: RangeInclusive<usize>,
    sets: u8,
    tree: u8,
    permits: Vec<u32>,
}

impl Kinds {
    /// In one run of three others than single keys, and one of them.
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
