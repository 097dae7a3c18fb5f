//! How much a lock adds to the future of a function.
#![allow(deprecated, reason = "the key matters to nobody here")]

use redlock_runtime::{LockError, distributed_lock};
use tokio::task;

macro_rules! plain_and_locked {
    ($plain:ident, $locked:ident, ($($arguments:tt)*) $body:block) => {
        async fn $plain($($arguments)*) -> Result<u64, LockError> $body

        #[distributed_lock(key = "order", ttl = 5, wait = 1)]
        async fn $locked($($arguments)*) -> Result<u64, LockError> $body
    };
}

plain_and_locked!(small, small_locked, (id: u64) {
    Ok(id)
});

plain_and_locked!(ordinary, ordinary_locked, (id: u64, name: String, values: [u64; 4]) {
    task::yield_now().await;
    let doubled = [id; 8];
    task::yield_now().await;
    Ok(doubled.iter().chain(&values).sum::<u64>() + name.len() as u64)
});

#[test]
fn at_most_96_bytes() {
    let small = (size_of_val(&small(1)), size_of_val(&small_locked(1)));
    let ordinary =
        (size_of_val(&ordinary(1, String::new(), [2; 4])), size_of_val(&ordinary_locked(1, String::new(), [2; 4])));
    for (plain, locked) in [small, ordinary] {
        assert!(locked <= plain + 96, "{plain} bytes became {locked}");
    }
}
