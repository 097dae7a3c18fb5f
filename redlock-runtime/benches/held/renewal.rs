//! Ten thousand locks that are held and renewed.

use crate::process::{cpu_time, resident_bytes};
use redlock_runtime::{LockGuard, LockManager, LockRequest};
use redlock_tests::RedisServer;
use std::time::{Duration, Instant};
use tokio::time::sleep;

pub(crate) const LOCKS: u32 = 10_000;
pub(crate) const TTL: Duration = Duration::from_secs(30);

pub(crate) struct Renewal {
    /// CPU time of this process for each second, as a fraction of a core.
    pub(crate) of_a_core: f64,
    /// The same with the locks held and not renewed: what the runtime and the benchmark take.
    pub(crate) of_a_core_idle: f64,
    pub(crate) bytes_per_lock: f64,
    pub(crate) renewals_per_second: f64,
    pub(crate) lost: usize,
}

pub(crate) async fn measure(manager: &LockManager, server: &RedisServer, is_quick: bool) -> Renewal {
    // One renewal of each lock takes about a third of the ttl.
    let window = if is_quick { TTL / 3 } else { TTL };
    let before = resident_bytes();
    let guards = acquire_all(manager, true).await;
    let bytes = resident_bytes().saturating_sub(before);
    // The renewals spread out in the first rounds.
    sleep(TTL / 2).await;
    let (of_a_core, renewals) = cpu_during(server, window).await;
    let lost = guards.iter().filter(|guard| !guard.is_held()).count();
    drop(guards);
    let unrenewed = acquire_all(manager, false).await;
    let (of_a_core_idle, _) = cpu_during(server, TTL / 3).await;
    drop(unrenewed);
    Renewal {
        of_a_core,
        of_a_core_idle,
        bytes_per_lock: as_float(bytes) / f64::from(LOCKS),
        renewals_per_second: as_float(renewals) / window.as_secs_f64(),
        lost,
    }
}

async fn acquire_all(manager: &LockManager, renew: bool) -> Vec<LockGuard> {
    let mut guards = Vec::new();
    for lock in 0..LOCKS {
        let request = LockRequest::new(format!("bench:held:{lock}")).ttl(TTL).renew(renew);
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

#[allow(clippy::cast_precision_loss, reason = "far less than 2^52")]
const fn as_float(number: u64) -> f64 {
    number as f64
}
