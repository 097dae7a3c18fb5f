//! Circumstances with shared locks, and with calls for several locks: readers and writers, transfers between accounts.

use super::circumstances::{crowd, slow_crowd};
use super::faults::Faults;
use super::profile::Profile;
use crate::protocol::command::Verb;
use crate::request::Wait;
use std::time::Duration;

/// No faults. Every waiter must be served soon.
pub(super) fn readers_and_writers() -> Profile {
    let waits = vec![Wait::Forever, Wait::For(Duration::from_secs(30))];
    Profile { clients: 3..=5, calls: 2..=4, ttls: vec![10_000], waits, sharing: 60, ..Profile::calm() }
}

/// All calls start at once, so that votes split between readers and writers, and each vote is needed.
pub(super) fn readers_crowd() -> Profile {
    Profile { bound: 900, calls: 3..=6, ttls: vec![20_000], sharing: 60, ..crowd() }
}

/// Waiters give up.
pub(super) fn readers_with_cancels() -> Profile {
    Profile { cancels: 50, bodies: 800..=3000, bound: 500, sharing: 70, ..readers_and_writers() }
}

/// Writers die while they wait behind readers.
pub(super) fn readers_with_crashes() -> Profile {
    let faults = Faults { crashes: 2, until: 600, ..Faults::NONE };
    Profile { faults, bodies: 1000..=9000, calls: 1..=3, bound: 2200, sharing: 70, ..readers_and_writers() }
}

/// Processes pause while they wait behind readers.
pub(super) fn readers_with_pauses() -> Profile {
    let faults = Faults { pauses: 2, until: 600, longest: 20_000, ..Faults::NONE };
    let (bodies, ttls) = (3000..=15_000, vec![20_000]);
    Profile { faults, bodies, ttls, calls: 1..=3, bound: 5500, sharing: 70, ..readers_and_writers() }
}

/// Holders downgrade in the middle of their bodies, and earlier commands may arrive late.
pub(super) fn lowered_with_cuts() -> Profile {
    let faults = Faults { targets: Some(Verb::is_extension), cuts: 6, until: 900, ..Faults::NONE };
    Profile { nodes: vec![1, 3], faults, extends: 100, bodies: 50..=600, sharing: 50, ..slow_crowd() }
}

/// Readers arrive all the time, and the bodies of some of them always overlap.
pub(super) fn stream_of_readers() -> Profile {
    Profile {
        nodes: vec![1, 3],
        clients: 4..=4,
        tasks: 2..=2,
        calls: 40..=60,
        pauses: 0..=5,
        bodies: 20..=60,
        waits: vec![Wait::Forever],
        sharing: 95,
        fair_within: Some(1500),
        ..crowd()
    }
}

/// Like `stream_of_readers`, and the readers of one process share one token.
pub(super) fn joined_readers() -> Profile {
    // A holder that is not subscribed yet learns of a waiter with the next request of that waiter.
    let (clients, tasks, calls, ttls) = (2..=3, 3..=3, 45..=60, vec![20_000]);
    Profile { clients, tasks, calls, ttls, renewals: 100, sharing: 98, fair_within: Some(1600), ..stream_of_readers() }
}

/// Keys are stolen from readers, and some of them continue nevertheless.
pub(super) fn joined_with_thefts() -> Profile {
    let faults = Faults { thefts: 3, until: 900, ..Faults::NONE };
    Profile {
        nodes: vec![1, 3],
        faults,
        tasks: 2..=4,
        calls: 2..=6,
        ttls: vec![300],
        bodies: 50..=900,
        renewals: 100,
        bound: 4000,
        sharing: 90,
        ..readers_and_writers()
    }
}

/// Calls for both keys, in either order, among calls for one. No faults. Every waiter must be served soon.
pub(super) fn bank() -> Profile {
    Profile { keys: 2..=2, sets: 60, ..readers_and_writers() }
}

/// Like `bank`, and all calls start at once.
pub(super) fn bank_crowd() -> Profile {
    Profile { sharing: 20, ..Profile { keys: 2..=2, sets: 60, ..readers_crowd() } }
}

/// Waiters for both keys give up.
pub(super) fn bank_with_cancels() -> Profile {
    Profile { keys: 2..=2, sets: 70, sharing: 20, ..readers_with_cancels() }
}

/// Waiters for both keys die. Many others wait, so that one of them asks soon.
pub(super) fn bank_with_crashes() -> Profile {
    let faults = Faults { crashes: 3, until: 400, ..Faults::NONE };
    let (clients, tasks, bodies) = (7..=8, 1..=1, 100..=400);
    Profile { nodes: vec![1], clients, tasks, bodies, faults, sets: 80, sharing: 0, bound: 1200, ..bank_crowd() }
}

/// Connections break while calls wait for both keys.
pub(super) fn bank_with_cuts() -> Profile {
    let faults = Faults { cuts: 6, until: 900, ..Faults::NONE };
    Profile { keys: 2..=2, sets: 60, sharing: 20, faults, ..slow_crowd() }
}
