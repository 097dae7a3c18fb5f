//! Circumstances in which one rule matters more than the others.

use super::faults::Faults;
use super::network::Delays;
use super::profile::{Markers, Profile};
use crate::protocol::command::Verb;
use crate::protocol::node_state::Limits;
use crate::request::AfterRestart;
use crate::request::Wait;
use std::time::Duration;

/// All calls start at once, so that votes split.
pub(super) fn crowd() -> Profile {
    let second = Duration::from_secs(1);
    Profile {
        nodes: vec![3, 5],
        clients: 3..=5,
        tasks: 1..=1,
        calls: 2..=3,
        ttls: vec![3000, 20_000],
        waits: vec![Wait::Forever, Wait::For(second * 30)],
        pauses: 0..=8,
        bodies: 0..=30,
        bound: 5000,
        ..Profile::calm()
    }
}

/// Connections are cut while calls give up and extend their leases.
pub(super) fn cuts() -> Profile {
    let faults = Faults { cuts: 24, until: 600, ..Faults::NONE };
    Profile { faults, cancels: 20, extends: 60, delays: Delays { latency: 6, jitter: 10, spike: 60 }, ..crowd() }
}

/// Two nodes, whose votes often split, and which are both needed.
pub(super) fn cut_yields() -> Profile {
    let faults = Faults { targets: Some(|verb| matches!(verb, Verb::Yield { .. })), ..Faults::NONE };
    Profile { nodes: vec![2, 3], faults, ..slow_crowd() }
}

/// Smaller tokens arrive later, and do not reach every node.
pub(super) fn cut_yields_and_others() -> Profile {
    let Profile { faults, .. } = cut_yields();
    let faults = Faults { cuts: 16, until: 500, ..faults };
    Profile { nodes: vec![3], clients: 4..=6, faults, skew: 1000, pauses: 0..=60, bodies: 20..=200, ..cut_yields() }
}

/// Connections are cut while they carry extensions.
pub(super) fn cut_extensions() -> Profile {
    let faults = Faults { targets: Some(Verb::is_extension), ..Faults::NONE };
    Profile { nodes: vec![1, 3], faults, extends: 100, ..slow_crowd() }
}

/// Connections are cut while they carry acquisitions, and many calls give up.
pub(super) fn cut_acquisitions() -> Profile {
    let faults = Faults { targets: Some(|verb| matches!(verb, Verb::Acquire { .. })), ..Faults::NONE };
    Profile { nodes: vec![1, 3], faults, cancels: 50, ttls: vec![20_000], ..slow_crowd() }
}

/// No call waits, so that no process subscribes to wake-ups before it must.
pub(super) fn cut_tries() -> Profile {
    let faults = Faults { targets: Some(|verb| matches!(verb, Verb::SetNx { .. })), ..Faults::NONE };
    Profile { nodes: vec![1, 3], faults, waits: vec![Wait::None], ttls: vec![20_000], ..slow_crowd() }
}

/// Scripts fail after they have written, for example because the user lacks the permission for a later command.
pub(super) fn failing_scripts() -> Profile {
    let faults = Faults { raises: Some(|verb| verb != Verb::Revoke), ..Faults::NONE };
    let waits = vec![Wait::None, Wait::For(Duration::from_secs(1)), Wait::Forever];
    Profile { nodes: vec![1, 3], keys: 2..=2, sets: 40, sharing: 30, faults, waits, ttls: vec![20_000], ..slow_crowd() }
}

/// Locks are detached, and some of them are attached several times.
pub(super) fn double_delivery() -> Profile {
    let faults = Faults { cuts: 8, until: 600, ..Faults::NONE };
    Profile { nodes: vec![1, 3, 5], faults, detaches: 60, ..crowd() }
}

/// Locks are detached, without faults.
pub(super) fn calm_delivery() -> Profile {
    Profile { nodes: vec![1, 3], detaches: 60, ..Profile::calm() }
}

/// Like `crowd`, on a slow network.
pub(super) fn slow_crowd() -> Profile {
    Profile { delays: Delays { latency: 10, jitter: 30, spike: 150 }, calls: 3..=5, ..crowd() }
}

/// Processes crash while they hold or want the lock.
pub(super) fn crowd_with_crashes() -> Profile {
    let faults = Faults { crashes: 3, until: 900, ..Faults::NONE };
    Profile { nodes: vec![1, 3], faults, bodies: 500..=2500, ttls: vec![3000], ..crowd() }
}

/// Bodies that may outlive their leases, on a slow network.
pub(super) fn long_bodies() -> Profile {
    let delays = Delays { latency: 30, jitter: 40, spike: 100 };
    Profile { nodes: vec![1, 3], delays, bodies: 200..=1800, ttls: vec![500, 1500, 3000], extends: 50, ..crowd() }
}

/// A server freezes at the start of the run.
pub(super) fn frozen_minority() -> Profile {
    let faults = Faults { freezes: 1, until: 40, longest: 8000, ..Faults::NONE };
    Profile { faults, bound: 2000, ttls: vec![20_000], ..crowd() }
}

/// One process crashes early, possibly as the holder.
pub(super) fn crashed_holder() -> Profile {
    let faults = Faults { crashes: 1, until: 300, ..Faults::NONE };
    Profile { faults, ttls: vec![2000], bodies: 0..=150, bound: 600, ..crowd() }
}

/// Most waiters are dead when the lock is released, and one command skips only one of them.
pub(super) fn dead_crowd() -> Profile {
    let faults = Faults { crashes: 4, until: 150, ..Faults::NONE };
    let limits = Limits { gone: 1, ..Limits::default() };
    Profile {
        nodes: vec![1],
        clients: 5..=7,
        faults,
        limits,
        ttls: vec![3000],
        bodies: 400..=800,
        bound: 600,
        ..crowd()
    }
}

/// Like `dead_crowd`, with readers.
pub(super) fn dead_readers() -> Profile {
    Profile { sharing: 60, ..dead_crowd() }
}

/// Short holds for a long time, with wall clocks that differ by seconds.
pub(super) fn wrong_clocks() -> Profile {
    Profile {
        nodes: vec![1, 3],
        clients: 3..=3,
        calls: 40..=60,
        pauses: 0..=2,
        bodies: 1..=5,
        waits: vec![Wait::Forever],
        skew: 10_000,
        fair_within: Some(700),
        ..crowd()
    }
}

/// Many calls in each process, which could pass the lock among themselves. Notices to the holder are lost.
pub(super) fn families_with_cuts() -> Profile {
    let faults = Faults { cuts: 12, until: 400, ..Faults::NONE };
    Profile {
        nodes: vec![1, 3],
        clients: 2..=2,
        tasks: 3..=4,
        calls: 200..=200,
        pauses: 0..=0,
        bodies: 5..=20,
        ttls: vec![20_000],
        waits: vec![Wait::Forever],
        fair_within: Some(4000),
        faults,
        ..crowd()
    }
}

/// Registers differ because some servers have missed the last numbers, and no wall clock hides the difference.
pub(super) fn fenced_with_cuts() -> Profile {
    let faults = Faults { freezes: 2, restarts: 2, longest: 400, ..cuts().faults };
    Profile { fenced: 100, has_no_wall_clocks: true, faults, ..cuts() }
}

/// Bodies that exceed their `max_hold`, on renewed leases.
pub(super) fn long_holds() -> Profile {
    Profile { nodes: vec![1, 3], max_holds: 100, renewals: 100, bodies: 100..=900, ..crowd() }
}

/// Short bodies, after which a `min_hold` keeps the key taken.
pub(super) fn windows() -> Profile {
    Profile { nodes: vec![1, 3], min_holds: 50, calls: 2..=4, ..crowd() }
}

/// Registers differ, and a lock has several owners.
pub(super) fn fenced_with_thefts() -> Profile {
    let faults = Faults { thefts: 6, until: 900, ..fenced_with_cuts().faults };
    Profile { nodes: vec![3], faults, keys: 2..=2, renewals: 50, bodies: 50..=600, ..fenced_with_cuts() }
}

/// A user with write access poisons the registers of a minority of the servers.
pub(super) fn poisoned_registers() -> Profile {
    let faults = Faults { poisons: 3, until: 100, is_minority: true, ..Faults::NONE };
    Profile { nodes: vec![3, 5], clients: 1..=1, fenced: 100, calls: 4..=6, pauses: 0..=60, faults, ..crowd() }
}

/// A user who may publish sends forged messages about the locks of others.
pub(super) fn forged_messages() -> Profile {
    let faults = Faults { forgeries: 8, until: 900, ..Faults::NONE };
    Profile { nodes: vec![1, 3], bodies: 20..=200, calls: 3..=5, faults, ..crowd() }
}

/// Long bodies on renewed leases, without disturbances of the network.
fn renewed() -> Profile {
    Profile {
        nodes: vec![1, 3, 5],
        clients: 2..=3,
        tasks: 1..=2,
        keys: 2..=2,
        ttls: vec![3000],
        renewals: 100,
        bodies: 2000..=8000,
        ..crowd()
    }
}

/// A minority of the servers is in trouble for longer than a lease.
pub(super) fn troubled_minority() -> Profile {
    let faults = Faults {
        cuts: 4,
        freezes: 2,
        restarts: 1,
        thefts: 2,
        steps: 2,
        until: 4000,
        longest: 12_000,
        is_minority: true,
        ..Faults::NONE
    };
    Profile { nodes: vec![3, 5], faults, bound: 30_000, ..renewed() }
}

/// Any server may freeze for longer than a lease.
pub(super) fn frozen_servers() -> Profile {
    let faults = Faults { freezes: 6, until: 4000, longest: 12_000, ..Faults::NONE };
    Profile { faults, bound: 30_000, ..renewed() }
}

/// Other programs delete and overwrite keys.
pub(super) fn thefts() -> Profile {
    let faults = Faults { thefts: 6, until: 6000, ..Faults::NONE };
    Profile { faults, is_prompt: true, ..renewed() }
}

/// The clocks of servers are set forward. Some locks are renewed, and others are not.
pub(super) fn clock_steps() -> Profile {
    let faults = Faults { steps: 6, until: 6000, ..Faults::NONE };
    Profile { faults, is_prompt: true, renewals: 60, ttls: vec![3000, 20_000], ..renewed() }
}

/// Keys are deleted at several nodes at once. Other calls hold the lock for a moment before the next renewal of its
/// holder.
pub(super) fn thefts_of_a_moment() -> Profile {
    let faults = Faults { thefts: 12, until: 6000, ..Faults::NONE };
    Profile {
        faults,
        is_prompt: true,
        nodes: vec![3],
        keys: 1..=1,
        calls: 20..=40,
        pauses: 0..=50,
        delays: Delays { latency: 1, jitter: 30, spike: 80 },
        bodies: 0..=1500,
        waits: vec![Wait::For(Duration::from_millis(50))],
        ..renewed()
    }
}

/// Servers restart without their data, in turn or at once.
pub(super) fn forgetful() -> Profile {
    let faults = Faults { forgets: 6, until: 6000, longest: 300, ..Faults::NONE };
    Profile { faults, after_restart: AfterRestart::Abstain, bound: 5000, drift_ppm: 4500, ..renewed() }
}

/// The servers restart in turn without their data while one body runs. The other calls wait until its end.
pub(super) fn rolling() -> Profile {
    let faults = Faults { rolls: 6, until: 500, longest: 300, ..Faults::NONE };
    Profile {
        nodes: vec![3, 3, 5],
        keys: 1..=1,
        calls: 1..=1,
        ttls: vec![1000],
        bodies: 13_500..=15_000,
        waits: vec![Wait::Forever],
        faults,
        after_restart: AfterRestart::Abstain,
        keeps_all: true,
        bound: 5000,
        ..renewed()
    }
}

/// Like `rolling`, with fencing numbers and with processes that start later and know no number.
///
/// Each server has lost the first number when the second is drawn.
pub(super) fn fenced_rolling() -> Profile {
    let faults = Faults { rolls: 12, ..rolling().faults };
    let base = Profile { nodes: vec![3], clients: 3..=4, late: 26_000, faults, ..rolling() };
    // Deliveries would hide a vote without its number.
    Profile { fenced: 100, has_no_wall_clocks: true, is_sure_of_counters: true, has_no_deliveries: true, ..base }
}

/// Fencing numbers of short bodies, and processes that acquire their first lock when each server has lost its data.
/// Other processes know the numbers.
pub(super) fn taught_rolling() -> Profile {
    let faults = Faults { rolls: 9, ..rolling().faults };
    let base =
        Profile { nodes: vec![3], clients: 3..=4, calls: 1..=4, pauses: 0..=12_000, bodies: 0..=100, ..rolling() };
    Profile { keeps_all: false, fenced: 100, has_no_wall_clocks: true, is_sure_of_counters: true, faults, ..base }
}

/// The processes that have drawn the first numbers end before a server loses its data. Other processes start later.
pub(super) fn numbers_of_the_gone() -> Profile {
    let faults = Faults { loses_the_numbered: true, is_minority: true, ..Faults::NONE };
    let base = Profile { nodes: vec![3], clients: 3..=5, calls: 1..=3, pauses: 0..=100, bodies: 0..=100, ..rolling() };
    let late = 30_000;
    Profile { keeps_all: false, fenced: 100, has_no_wall_clocks: true, is_sure_of_counters: true, late, faults, ..base }
}

/// Like `fenced_rolling`, and some fenced holders downgrade in the middle of their bodies.
pub(super) fn lowered_rolling() -> Profile {
    Profile { sharing: 40, ..fenced_rolling() }
}

/// Votes split among calls that start at once. Then one server freezes for longer than a lease.
pub(super) fn one_freezes() -> Profile {
    let faults = Faults { freezes: 1, until: 6000, longest: 12_000, ..Faults::NONE };
    Profile { nodes: vec![3], clients: 3..=5, keys: 1..=1, faults, keeps_all: true, bound: 30_000, ..renewed() }
}

/// All servers are unreachable repeatedly, for longer than they are reachable.
pub(super) fn blinking() -> Profile {
    let faults = Faults { blinks: 14, until: 1000, ..Faults::NONE };
    let (ttls, bodies) = (vec![10_000], 20_000..=28_000);
    Profile { keys: 1..=1, calls: 1..=1, ttls, bodies, faults, keeps_all: true, bound: 30_000, ..renewed() }
}

/// Locks that are not renewed, and connections that are restored.
pub(super) fn unrenewed() -> Profile {
    let faults = Faults { cuts: 12, restarts: 2, until: 2500, longest: 200, ..Faults::NONE };
    Profile { nodes: vec![3], ttls: vec![2000], bodies: 1500..=4000, faults, renewals: 0, bound: 30_000, ..renewed() }
}

/// Servers become unreachable while waiters own them.
pub(super) fn away_while_waiting() -> Profile {
    let faults = Faults { cuts: 12, restarts: 4, until: 800, longest: 9000, ..Faults::NONE };
    Profile { nodes: vec![3], faults, ttls: vec![20_000], bodies: 0..=60, bound: 3000, ..crowd() }
}

/// Like `forgetful`, with many waiters that come and go.
pub(super) fn forgetful_crowd() -> Profile {
    let second = Duration::from_secs(1);
    let waits = vec![Wait::For(second / 2), Wait::For(3 * second), Wait::Forever];
    Profile { nodes: vec![3], clients: 3..=5, keys: 1..=1, calls: 3..=5, waits, cancels: 30, ..forgetful() }
}

/// Running servers replicate an empty data set. Only their replication ids show it.
pub(super) fn replaced() -> Profile {
    let faults = Faults { replacements: 6, forgets: 0, ..forgetful().faults };
    Profile { faults, markers: Markers::AreForbidden, ..forgetful() }
}

/// Replicas that have missed everything are promoted while some connections are away.
pub(super) fn promoted() -> Profile {
    let faults = Faults { promotions: 6, cuts: 12, away: 3000, forgets: 0, ..forgetful().faults };
    Profile { faults, bound: 10_000, ..forgetful() }
}

/// Replicas that have missed nothing are promoted.
pub(super) fn failed_over() -> Profile {
    Profile { faults: Faults { fail_overs: 6, forgets: 0, ..forgetful().faults }, ..forgetful() }
}

/// Servers that are configured to write every command to disk restart on an empty one.
pub(super) fn empty_disks() -> Profile {
    Profile { are_durable: true, ..forgetful() }
}

/// Servers that are configured to write every command to disk restart with an old copy of their data.
pub(super) fn old_copies() -> Profile {
    Profile { markers: Markers::AreRestored, ..empty_disks() }
}

/// Processes start after a minority has restarted on empty disks.
pub(super) fn late_starts_on_empty_disks() -> Profile {
    Profile { are_durable: true, ..late_starts() }
}

/// All servers start together. Soon after that, one of them restarts without its data, and then processes start.
pub(super) fn early_restarts() -> Profile {
    let (cuts, away) = (12, 3000);
    let faults = Faults { forgets: 1, cuts, away, after: 10_500, until: 10_000, longest: 300, ..Faults::NONE };
    let (ttls, bodies, late) = (vec![30_000], 2000..=9000, 20_000);
    Profile { is_cold: true, nodes: vec![3], faults, ttls, bodies, late, bound: 30_000, ..late_starts() }
}

/// Processes start after a minority has lost its grants.
pub(super) fn late_starts() -> Profile {
    let faults = Faults { cuts: 6, is_minority: true, ..forgetful().faults };
    Profile { nodes: vec![3, 5], faults, late: 1900, bound: 10_000, ..forgetful() }
}

/// All servers and processes start at once.
pub(super) fn cold_start() -> Profile {
    Profile { is_cold: true, after_restart: AfterRestart::Abstain, ttls: vec![10_000], ..Profile::calm() }
}

/// One server of five may lose all its data at any time, and is trusted at once.
pub(super) fn one_forgets() -> Profile {
    let faults = Faults { forgets: 1, cuts: 8, freezes: 2, until: 3000, longest: 300, ..Faults::NONE };
    Profile { nodes: vec![5], faults, amnesia: 1, fenced: 50, bound: 5000, ..renewed() }
}

/// The clocks of servers are set forward while votes are split.
pub(super) fn steps_while_waiting() -> Profile {
    let faults = Faults { steps: 8, until: 3000, ..Faults::NONE };
    let (calls, bodies) = (3..=5, 300..=1000);
    Profile { nodes: vec![3], clients: 3..=4, keys: 1..=1, faults, calls, bodies, bound: 30_000, ..slow_crowd() }
}

/// Managers shut down while others continue.
pub(super) fn shutdowns() -> Profile {
    Profile { tasks: 2..=3, calls: 2..=6, bodies: 0..=400, shutdowns: 50, delays: slow_crowd().delays, ..crowd() }
}

/// Managers shut down soon after their last lock.
pub(super) fn late_shutdowns() -> Profile {
    Profile { tasks: 1..=1, calls: 1..=2, bodies: 0..=300, waits: vec![Wait::None], ..shutdowns() }
}
