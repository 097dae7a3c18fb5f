//! `ensure_held`, the check before a side effect.

use crate::percentile::percentile;
use redlock_runtime::LockManager;
use std::hint::black_box;
use std::time::{Duration, Instant};

const BATCHES: usize = 1000;
const CHECKS: u32 = 1000;

/// Returns the duration of one `ensure_held`. The median of many short batches excludes those that another process
/// interrupts.
pub(crate) async fn measure(manager: &LockManager) -> Duration {
    let guard = manager.acquire("bench:check").await.expect("nobody else wants it");
    let batch = || {
        let begun = Instant::now();
        for _ in 0..CHECKS {
            black_box(&guard).ensure_held().expect("it is renewed");
        }
        begun.elapsed() / CHECKS
    };
    let batches: Vec<_> = std::iter::repeat_with(batch).take(BATCHES).collect();
    percentile(&batches, 50)
}
