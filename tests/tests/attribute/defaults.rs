//! Options that a block gives to the functions inside, and options of functions that override them.

use crate::ui_defaults::jobs::{self, Job};
use crate::ui_defaults::{Capture, Shop};
use redlock_runtime::{LockError, LockManager};
use std::time::Duration;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test]
async fn function_inherits_the_defaults_of_its_block() {
    let shop = Shop { locks: LockManager::in_memory() };
    assert_eq!(shop.all(1).await.unwrap(), seconds(7));
    assert_eq!(shop.some(1).await.unwrap(), seconds(9));
    assert_eq!(Shop::without_self(&shop.locks).await.unwrap(), seconds(7));
    assert_eq!(shop.window().await.unwrap(), seconds(7));
    assert_eq!(shop.capture(1).await.unwrap(), seconds(8));

    let _guard = shop.locks.acquire("order:2").await.unwrap();
    let contended = shop.all(2).await.unwrap_err();
    assert!(matches!(contended, LockError::Contended { .. }), "{contended}: `wait = none` is the default");
}

#[tokio::test]
async fn inner_defaults_override_outer_defaults() {
    let calls = async { [jobs::outer().await, jobs::deeper::inner().await, Job::run().await] };
    let leases = LockManager::in_memory().scope(calls).await.map(Result::unwrap);
    assert_eq!(leases, [20, 20, 30].map(seconds));
}
