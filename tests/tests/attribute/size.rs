//! Size that a lock adds to the future of a function.
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

/// 4 KiB that has no `Drop`, and must not be copied.
struct Large(#[expect(dead_code, reason = "only its size counts")] [u8; 4096]);

/// Functions with an unused argument. A plain function does not even store it, unless it has a `Drop`.
macro_rules! with_unused {
    ($plain:ident, $locked:ident, ($($arguments:tt)*)) => {
        #[expect(unused_variables)]
        async fn $plain($($arguments)*) -> Result<u64, LockError> {
            let page = [1; 2048];
            task::yield_now().await;
            Ok(page.into_iter().map(u64::from as fn(u8) -> u64).sum())
        }

        #[expect(unused_variables)]
        #[distributed_lock(key = "order")]
        async fn $locked($($arguments)*) -> Result<u64, LockError> {
            let page = [1; 2048];
            task::yield_now().await;
            Ok(page.into_iter().map(u64::from as fn(u8) -> u64).sum())
        }
    };
}

with_unused!(array, array_locked, (large: [u8; 4096]));
with_unused!(silent, silent_locked, (other: u8, _large: Large));
with_unused!(unnamed, unnamed_locked, (other: u8, _: Large));
with_unused!(part, part_locked, ((large, other): (Large, u8)));
with_unused!(dropped, dropped_locked, (large: (Large, String)));

#[test]
fn unused_argument_is_stored_once_in_the_future() {
    let large = || Large([0; 4096]);
    let sizes = [
        (size_of_val(&array([0; 4096])), size_of_val(&array_locked([0; 4096]))),
        (size_of_val(&silent(0, large())), size_of_val(&silent_locked(0, large()))),
        (size_of_val(&unnamed(0, large())), size_of_val(&unnamed_locked(0, large()))),
        (size_of_val(&part((large(), 0))), size_of_val(&part_locked((large(), 0)))),
        (size_of_val(&dropped((large(), String::new()))), size_of_val(&dropped_locked((large(), String::new())))),
    ];
    for (plain, locked) in sizes {
        assert!(locked <= plain + 96, "{plain} bytes became {locked}");
    }
}

#[test]
fn lock_adds_at_most_96_bytes_to_the_future() {
    let small = (size_of_val(&small(1)), size_of_val(&small_locked(1)));
    let ordinary =
        (size_of_val(&ordinary(1, String::new(), [2; 4])), size_of_val(&ordinary_locked(1, String::new(), [2; 4])));
    for (plain, locked) in [small, ordinary] {
        assert!(locked <= plain + 96, "{plain} bytes became {locked}");
    }
}
