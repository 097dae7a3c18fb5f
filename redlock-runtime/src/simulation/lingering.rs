//! Circumstances in which locks stay held without a call.

use super::circumstances::{fenced_with_cuts, late_shutdowns};
use super::network::Delays;
use super::profile::Profile;
use crate::request::Wait;
use std::time::Duration;

/// Calls return to a key that other processes want as well. Their processes retain the lock in between.
pub(super) fn lingering() -> Profile {
    let waits = vec![Wait::For(Duration::from_secs(5)), Wait::Forever];
    Profile {
        clients: 2..=3,
        calls: 4..=8,
        ttls: vec![10_000],
        waits,
        pauses: 0..=120,
        bodies: 0..=20,
        lingers: vec![5000],
        ..Profile::calm()
    }
}

/// Like `lingering`, with calls that mostly do not wait, and with waiters behind them.
pub(super) fn lingering_tries() -> Profile {
    Profile {
        delays: Delays { latency: 2, jitter: 1, spike: 3 },
        calls: 6..=10,
        waits: vec![Wait::None, Wait::None, Wait::For(Duration::from_secs(5))],
        tasks: 1..=2,
        pauses: 20..=200,
        ..lingering()
    }
}

/// No holder receives messages about waiters, so that these wait for the end of the idle time or for the next poll.
pub(super) fn lingering_deaf() -> Profile {
    Profile { lingers: vec![500, 2000], is_deaf: true, bound: 2600, ..lingering() }
}

/// Calls give up while they request their numbers, and few other calls want their locks.
pub(super) fn lingering_with_cancels() -> Profile {
    Profile {
        nodes: vec![3],
        clients: 1..=2,
        keys: 2..=2,
        calls: 6..=10,
        ttls: vec![20_000],
        cancels: 60,
        lingers: vec![8000],
        ..fenced_with_cuts()
    }
}

/// Managers shut down soon after their last lock, which they have retained.
pub(super) fn lingering_shutdowns() -> Profile {
    Profile { calls: 3..=6, pauses: 0..=200, bodies: 0..=30, shutdowns: 80, lingers: vec![8000], ..late_shutdowns() }
}
