//! Ten thousand locks that are held and renewed, and the memory that remains after a hundred thousand locks.

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
    /// Cost while all nodes answer.
    pub(crate) answered: Held,
    /// Cost while one node is frozen.
    pub(crate) frozen: Held,
    /// CPU time as in [`Held`] while the locks are held without renewal: the share of the runtime and the benchmark.
    pub(crate) of_a_core_idle: f64,
    pub(crate) lost: usize,
    /// Memory that remains after [`BURST`] locks were held and released.
    pub(crate) stays: u64,
    /// Additional memory that remains after a second burst.
    pub(crate) is_added: u64,
}

/// Cost of the held locks.
pub(crate) struct Held {
    /// CPU time of this process as a fraction of one core.
    pub(crate) of_a_core: f64,
    pub(crate) bytes_per_lock: f64,
    /// Renewals per second on one node.
    pub(crate) renewals_per_second: f64,
}

pub(crate) async fn measure(manager: &LockManager, nodes: &Nodes, is_quick: bool) -> Renewal {
    // Each lock is renewed about once in a third of the ttl.
    let window = if is_quick { TTL / 3 } else { TTL };
    let before = resident_bytes();
    let guards = acquire(manager, LOCKS, true).await;
    let taken = resident_bytes();
    // Wait until the renewals are spread evenly.
    sleep(TTL / 2).await;
    let answered = hold(&nodes[1], window, before, taken).await;
    nodes[0].freeze();
    // Wait until every lock has sent a request to the frozen node.
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

/// Measures the CPU time in a `window` that begins now. The memory use is the difference between `before` and `taken`.
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

/// Returns the CPU time of this process as a fraction of one core, and the number of renewals on `server`.
async fn cpu_during(server: &RedisServer, window: Duration) -> (f64, u64) {
    let renewals = server.inspect().calls("pexpire").await;
    let (begun, used) = (Instant::now(), cpu_time());
    sleep(window).await;
    let of_a_core = cpu_time().saturating_sub(used).as_secs_f64() / begun.elapsed().as_secs_f64();
    (of_a_core, server.inspect().calls("pexpire").await - renewals)
}

/// Holds [`BURST`] locks at once and releases them. Returns the memory that remains.
async fn stays_after_burst(manager: &LockManager) -> u64 {
    let before = resident_bytes();
    drop(acquire(manager, BURST, true).await);
    // Wait until the nodes have answered the releases.
    sleep(TTL / 10).await;
    resident_bytes().saturating_sub(before)
}

#[allow(clippy::cast_precision_loss, reason = "far less than 2^52")]
const fn as_float(number: u64) -> f64 {
    number as f64
}
