//! Circumstances in which a limited number of calls may hold a lock at a time.

use super::circumstances::{crowd, rolling, slow_crowd};
use super::faults::Faults;
use super::profile::Profile;
use crate::protocol::command::Verb;
use crate::request::Wait;
use std::time::Duration;

/// No faults. Every waiter must be served soon.
pub(super) fn pool() -> Profile {
    let waits = vec![Wait::Forever, Wait::For(Duration::from_secs(30)), Wait::None];
    let (clients, calls, ttls) = (3..=5, 2..=4, vec![10_000]);
    Profile { clients, calls, ttls, waits, bodies: 0..=200, permits: vec![1, 2, 2, 3], bound: 700, ..Profile::calm() }
}

/// Some calls share the same locks, want several of them, or want fencing numbers.
pub(super) fn pool_among_others() -> Profile {
    let (nodes, ttls) = (vec![3, 4, 5], vec![20_000]);
    let permits = vec![1, 2, 2, 0, 0];
    Profile { nodes, ttls, bodies: 0..=60, sharing: 30, sets: 30, fenced: 40, permits, bound: 2500, ..crowd() }
}

/// Several tasks in each process, which pass permits among themselves.
pub(super) fn pool_of_families() -> Profile {
    let waits = vec![Wait::Forever, Wait::For(Duration::from_secs(30))];
    let (clients, tasks, calls) = (2..=3, 3..=5, 4..=10);
    Profile {
        nodes: vec![1, 3],
        clients,
        tasks,
        calls,
        waits,
        ttls: vec![10_000],
        pauses: 0..=5,
        bodies: 0..=60,
        ..pool()
    }
}

/// Like `pool_of_families` for a long time. No waiter may be overtaken again and again.
pub(super) fn stream_of_families() -> Profile {
    let (clients, tasks, calls) = (2..=2, 4..=5, 15..=25);
    let (ttls, waits, permits) = (vec![20_000], vec![Wait::Forever], vec![2]);
    let fair_within = Some(1500);
    Profile {
        clients,
        tasks,
        calls,
        ttls,
        waits,
        permits,
        renewals: 100,
        bodies: 20..=40,
        fair_within,
        ..pool_of_families()
    }
}

/// Like `pool_of_families`, with calls that give up and locks that are lost.
pub(super) fn families_with_thefts() -> Profile {
    let faults = Faults { thefts: 3, cuts: 4, until: 900, ..Faults::NONE };
    let (ttls, bodies) = (vec![300, 20_000], 0..=300);
    let (cancels, aborts, panics, shutdowns) = (20, 10, 10, 10);
    Profile {
        faults,
        ttls,
        bodies,
        cancels,
        aborts,
        panics,
        shutdowns,
        renewals: 80,
        bound: 6000,
        ..pool_of_families()
    }
}

/// Like `pool_of_families`, with paused processes, nodes that lose their data, and processes that die.
pub(super) fn families_with_faults() -> Profile {
    let faults = Faults { pauses: 2, crashes: 1, forgets: 1, cuts: 2, until: 900, longest: 3000, ..Faults::NONE };
    let (nodes, ttls, bodies) = (vec![3, 4, 5], vec![20_000], 0..=300);
    Profile { nodes, amnesia: 1, faults, ttls, bodies, bound: 12_000, ..pool_of_families() }
}

/// All calls start at once, at many nodes, and waiters give up.
pub(super) fn pool_crowd() -> Profile {
    let (nodes, ttls) = (vec![3, 4, 5], vec![20_000]);
    Profile { nodes, ttls, bodies: 0..=200, cancels: 20, permits: vec![2, 2, 3], ..slow_crowd() }
}

/// Some calls are exclusive. The nodes are so few that votes split between these calls and those for permits.
pub(super) fn pool_and_alone() -> Profile {
    Profile { nodes: vec![2, 2, 3], ttls: vec![20_000], bodies: 0..=60, permits: vec![1, 2, 0], bound: 1800, ..crowd() }
}

/// Most calls are exclusive and repeated. No waiter may be overtaken again and again.
///
/// Few calls want permits. If all of these wait for the admission lock together, no call is left that could overtake
/// them.
pub(super) fn pool_among_writers() -> Profile {
    let (nodes, clients, tasks, calls) = (vec![1, 3], 5..=5, 1..=1, 25..=35);
    let (ttls, waits) = (vec![20_000], vec![Wait::Forever]);
    let mut permits = vec![0; 14];
    permits.push(1);
    let fair_within = Some(800);
    Profile { nodes, clients, tasks, calls, ttls, waits, permits, pauses: 0..=5, bodies: 5..=20, fair_within, ..pool() }
}

/// Connections break while calls enter, and commands may arrive late.
pub(super) fn pool_with_cuts() -> Profile {
    let enters: fn(Verb) -> bool = |verb| matches!(verb, Verb::Enter { .. });
    let faults = Faults { cuts: 12, targets: Some(enters), until: 900, ..Faults::NONE };
    let (bodies, ttls) = (0..=900, vec![300, 1000, 20_000]);
    Profile { nodes: vec![3], faults, bodies, ttls, renewals: 80, extends: 60, permits: vec![1, 2], ..slow_crowd() }
}

/// Like `pool_with_cuts`, with so few nodes that each of them decides, and with cut requests for the admission lock.
pub(super) fn pool_with_cut_tries() -> Profile {
    let enters: fn(Verb) -> bool = |verb| matches!(verb, Verb::SetNx { .. } | Verb::Enter { .. });
    let faults = Faults { cuts: 8, targets: Some(enters), until: 900, ..Faults::NONE };
    let (nodes, bodies) = (vec![1, 2, 3], 0..=400);
    Profile { nodes, faults, bodies, cancels: 20, ttls: vec![20_000], permits: vec![1, 2], ..slow_crowd() }
}

/// Each holder has its permit at a majority of the nodes, and these majorities often differ.
pub(super) fn pool_with_lost_entries() -> Profile {
    let enters: fn(Verb) -> bool = |verb| matches!(verb, Verb::Enter { .. });
    let faults = Faults { cuts: 8, targets: Some(enters), until: 1500, away: 200, ..Faults::NONE };
    let (nodes, clients, tasks, bodies) = (vec![3], 4..=6, 1..=2, 300..=900);
    Profile { nodes, clients, tasks, bodies, faults, ttls: vec![20_000], permits: vec![2], ..slow_crowd() }
}

/// Connections break while the admission lock is yielded.
pub(super) fn pool_with_cut_yields() -> Profile {
    let yields: fn(Verb) -> bool = |verb| matches!(verb, Verb::Yield { .. });
    let faults = Faults { cuts: 8, targets: Some(yields), until: 500, ..Faults::NONE };
    let nodes = vec![2, 3];
    Profile { nodes, faults, skew: 1000, bodies: 100..=400, ttls: vec![20_000], permits: vec![1, 2], ..slow_crowd() }
}

/// Processes pause in the admission lock until another call owns it.
pub(super) fn pool_with_pauses() -> Profile {
    let faults = Faults { pauses: 3, until: 900, longest: 9000, ..Faults::NONE };
    let (bodies, ttls) = (500..=6000, vec![20_000, 30_000]);
    Profile { faults, bodies, ttls, calls: 1..=3, permits: vec![1, 2], bound: 6000, ..pool_crowd() }
}

/// Processes die, and leave their permits and the admission lock behind.
pub(super) fn pool_with_crashes() -> Profile {
    let faults = Faults { crashes: 2, cuts: 3, until: 600, ..Faults::NONE };
    Profile { faults, bodies: 0..=900, ttls: vec![1000, 4000], permits: vec![1, 2, 0], bound: 2500, ..pool_crowd() }
}

/// Processes die while they wait for permits that others hold for long.
pub(super) fn pool_with_dead_waiters() -> Profile {
    let faults = Faults { crashes: 2, until: 2500, ..Faults::NONE };
    let (nodes, clients, tasks, calls) = (vec![1, 3], 4..=5, 1..=1, 2..=3);
    let (ttls, waits, bodies) = (vec![20_000], vec![Wait::Forever], 600..=1500);
    Profile { nodes, clients, tasks, calls, ttls, waits, bodies, faults, permits: vec![1, 2], bound: 3000, ..pool() }
}

/// The servers restart in turn without their data, while all calls hold permits.
pub(super) fn pool_rolling() -> Profile {
    Profile { permits: vec![8], ..rolling() }
}

/// Permits are stolen while their holders win missing votes back.
pub(super) fn pool_with_thefts() -> Profile {
    let faults = Faults { thefts: 5, restarts: 2, cuts: 3, until: 2500, longest: 300, ..Faults::NONE };
    let bodies = 300..=2500;
    Profile {
        nodes: vec![3],
        ttls: vec![300, 1000],
        bodies,
        faults,
        permits: vec![1, 2],
        renewals: 90,
        bound: 8000,
        ..crowd()
    }
}

/// Servers are away or frozen for longer than a lease. Permits are lost by that, and votes are won back.
pub(super) fn pool_with_freezes() -> Profile {
    let faults = Faults { restarts: 5, freezes: 5, until: 3000, longest: 600, ..Faults::NONE };
    let (clients, calls, tasks) = (4..=5, 2..=3, 1..=1);
    Profile {
        nodes: vec![3],
        clients,
        calls,
        tasks,
        ttls: vec![300],
        bodies: 500..=2500,
        faults,
        permits: vec![1],
        renewals: 100,
        bound: 8000,
        ..crowd()
    }
}

/// One node at a time loses all data, and a larger quorum is required.
pub(super) fn pool_with_amnesia() -> Profile {
    let faults = Faults { forgets: 1, until: 900, longest: 100, ..Faults::NONE };
    let (nodes, bodies) = (vec![3, 4, 5], 300..=3000);
    Profile { nodes, amnesia: 1, faults, bodies, ttls: vec![20_000], permits: vec![1, 2], bound: 6000, ..slow_crowd() }
}
