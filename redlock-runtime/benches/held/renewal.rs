//! Ten thousand locks that are held and renewed, and what is left of a hundred thousand.

use crate::cpu_time::cpu_time;
use crate::resident::resident_bytes;
use redlock_runtime::{LockGuard, LockManager, LockRequest};
use redlock_tests::{Nodes, RedisServer};
use std::time::{Duration, Instant};
use tokio::time::sleep;

pub(crate) const LOCKS: u32 = 10_000;
pub(crate) const BURST: u32 = 100_000;
pub(crate) const TTL: Duration = Duration::from_secs(30);

pub(crate) struct Renewal {
    /// While all nodes answer.
    pub(crate) answered: Held,
    /// While one of them is frozen.
    pub(crate) frozen: Held,
    /// CPU time as in [`Held`] with the locks held and not renewed: what the runtime and the benchmark take.
    pub(crate) of_a_core_idle: f64,
    pub(crate) lost: usize,
    /// What is left of the memory for [`BURST`] locks when they have been given back.
    pub(crate) stays: u64,
    /// What is added to that by as many locks once more.
    pub(crate) is_added: u64,
}

/// What it costs to hold the locks.
pub(crate) struct Held {
    /// CPU time of this process for each second, as a fraction of a core.
    pub(crate) of_a_core: f64,
    pub(crate) bytes_per_lock: f64,
    /// Those of one node.
    pub(crate) renewals_per_second: f64,
}

pub(crate) async fn measure(manager: &LockManager, nodes: &Nodes, is_quick: bool) -> Renewal {
    // One renewal of each lock takes about a third of the ttl.
    let window = if is_quick { TTL / 3 } else { TTL };
    let before = resident_bytes();
    let guards = acquire(manager, LOCKS, true).await;
    let taken = resident_bytes();
    // The renewals spread out in the first rounds.
    sleep(TTL / 2).await;
    let answered = hold(&nodes[1], window, before, taken).await;
    nodes[0].freeze();
    // Every lock has asked the silent node by then.
    sleep(TTL / 2).await;
    let frozen = hold(&nodes[1], window, before, resident_bytes()).await;
    let lost = guards.iter().filter(|guard| !guard.is_held()).count();
    nodes[0].thaw();
    drop(guards);
    let unrenewed = acquire(manager, LOCKS, false).await;
    let (of_a_core_idle, _) = cpu_during(&nodes[1], TTL / 3).await;
    drop(unrenewed);
    let (stays, is_added) = (stays_after_burst(manager).await, stays_after_burst(manager).await);
    Renewal { answered, frozen, of_a_core_idle, lost, stays, is_added }
}

/// What is held costs memory from `before` to `taken`, and CPU time in the `window` that begins now.
async fn hold(server: &RedisServer, window: Duration, before: u64, taken: u64) -> Held {
    let (of_a_core, renewals) = cpu_during(server, window).await;
    Held {
        of_a_core,
        bytes_per_lock: as_float(taken.saturating_sub(before)) / f64::from(LOCKS),
        renewals_per_second: as_float(renewals) / window.as_secs_f64(),
    }
}

async fn acquire(manager: &LockManager, locks: u32, renew: bool) -> Vec<LockGuard> {
    let mut guards = Vec::new();
    for lock in 0..locks {
        let request = LockRequest::new(format!("bench:held:{lock}")).ttl(TTL);
        let request = if renew { request } else { request.without_renewal() };
        guards.push(manager.acquire(request).await.expect("nobody else wants it"));
    }
    guards
}

/// The CPU time of this process as a fraction of a core, and how often the server has renewed.
async fn cpu_during(server: &RedisServer, window: Duration) -> (f64, u64) {
    let renewals = server.inspect().calls("pexpire").await;
    let (begun, used) = (Instant::now(), cpu_time());
    sleep(window).await;
    let of_a_core = cpu_time().saturating_sub(used).as_secs_f64() / begun.elapsed().as_secs_f64();
    (of_a_core, server.inspect().calls("pexpire").await - renewals)
}

/// Holds [`BURST`] locks at once and gives them back.
async fn stays_after_burst(manager: &LockManager) -> u64 {
    let before = resident_bytes();
    drop(acquire(manager, BURST, true).await);
    // Until the nodes have answered.
    sleep(TTL / 10).await;
    resident_bytes().saturating_sub(before)
}

#[allow(clippy::cast_precision_loss, reason = "far less than 2^52")]
const fn as_float(number: u64) -> f64 {
    number as f64
}
