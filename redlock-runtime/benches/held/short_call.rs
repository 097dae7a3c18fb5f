//! A call that ends before its first renewal, with and without renewal.

use crate::percentile::percentile;
use redlock_runtime::{LockManager, LockRequest};
use std::time::{Duration, Instant};

pub(crate) struct ShortCall {
    pub(crate) renewed: Duration,
    pub(crate) unrenewed: Duration,
}

pub(crate) async fn measure(manager: &LockManager, is_quick: bool) -> ShortCall {
    let rounds = if is_quick { 4 } else { 40 };
    let (mut renewed, mut unrenewed) = (Vec::new(), Vec::new());
    // Alternate, so that a change of the machine's speed affects both equally.
    for round in 0..rounds {
        renewed.extend(pairs(manager, round, true).await);
        unrenewed.extend(pairs(manager, round, false).await);
    }
    ShortCall { renewed: percentile(&renewed, 50), unrenewed: percentile(&unrenewed, 50) }
}

async fn pairs(manager: &LockManager, round: usize, renew: bool) -> Vec<Duration> {
    let mut latencies = Vec::new();
    for pair in 0..1000 {
        let request = LockRequest::new(format!("bench:short:{round}:{pair}"));
        let request = if renew { request } else { request.without_renewal() };
        let begun = Instant::now();
        drop(manager.acquire(request).await.expect("nobody else wants it"));
        latencies.push(begun.elapsed());
    }
    latencies
}
