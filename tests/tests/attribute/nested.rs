//! Calls of annotated functions in the bodies of others.
#![allow(deprecated, reason = "one key for all: what is tested is something else")]

use crate::is_free;
use redlock_runtime::{LockError, LockManager, distributed_lock, distributed_lock_defaults};
use std::time::Duration;
use tokio::time::{Instant, sleep};

const OUTER_LINE: u32 = line!() + 2;

#[distributed_lock(key = "order:{id}", wait = 5s)]
async fn capture(id: u64) -> Result<u64, LockError> {
    refund(id).await
}

const INNER_LINE: u32 = line!() + 2;

#[distributed_lock(key = "order:{id}", wait = 5s)]
async fn refund(id: u64) -> Result<u64, LockError> {
    Ok(id)
}

#[tokio::test(start_paused = true)]
async fn deadlock_error_names_the_lines_of_both_attributes() {
    let started = Instant::now();
    let error = LockManager::in_memory().scope(capture(7)).await.unwrap_err();
    let LockError::WouldDeadlock { held, .. } = &error else { panic!("{error}") };
    assert_eq!((held.acquire_line().line(), held.request_line().line()), (OUTER_LINE, INNER_LINE), "{error}");
    assert!(held.acquire_line().file().ends_with("attribute/nested.rs"), "{error}");
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[distributed_lock(key = "order:{id}", wait = 5s, on_contended = |_| Ok(0))]
async fn with_an_outcome(id: u64) -> Result<u64, LockError> {
    refund(id).await
}

#[distributed_lock(key = "order:{id}", wait = 5s, on_lost = continue)]
async fn to_the_end(id: u64) -> Result<u64, LockError> {
    with_an_outcome(id).await
}

#[tokio::test(start_paused = true)]
async fn self_deadlock_is_an_error_and_not_skipped() {
    let manager = LockManager::in_memory();
    for outcome in [manager.scope(with_an_outcome(7)).await, manager.scope(to_the_end(7)).await] {
        assert!(matches!(outcome, Err(LockError::WouldDeadlock { .. })), "{outcome:?}");
    }
}

#[distributed_lock(key = "order:{id}", wait = 5s, guard = lock)]
async fn releases_during_a_nested_call(id: u64) -> Result<u64, LockError> {
    let gives_back = async {
        sleep(Duration::from_secs(1)).await;
        lock.release().await
    };
    let (refunded, released) = tokio::join!(refund(id), gives_back);
    released.and(refunded)
}

#[distributed_lock(key = "order:{id}", wait = 5s, on_lost = continue, guard = lock)]
async fn releases_during_a_nested_call_and_continues(id: u64) -> Result<u64, LockError> {
    let gives_back = async {
        sleep(Duration::from_secs(1)).await;
        lock.release().await
    };
    let (refunded, released) = tokio::join!(refund(id), gives_back);
    released.and(refunded)
}

#[tokio::test(start_paused = true)]
async fn body_may_release_its_guard_during_a_nested_wait() {
    let manager = LockManager::in_memory();
    assert_eq!(manager.scope(releases_during_a_nested_call(7)).await.unwrap(), 7);
    assert_eq!(manager.scope(releases_during_a_nested_call_and_continues(7)).await.unwrap(), 7);
}

#[distributed_lock(key = "order:{id}", wait = 5s, reentrant)]
async fn pay(id: u64) -> Result<u64, LockError> {
    sleep(Duration::from_secs(1)).await;
    Ok(id)
}

#[distributed_lock(key = "order:{id}", wait = 5s)]
async fn pay_three_times(id: u64, others: u64) -> Result<u64, LockError> {
    let (first, second, other) = tokio::join!(pay(id), pay(id), pay(others));
    Ok(first? + second? + other?)
}

/// Has no warning about a call that waits for itself.
#[deny(deprecated)]
#[distributed_lock(key = "order:{id}", ttl = 1s, guard = lock, reentrant)]
async fn count_down(id: u64, depth: u64) -> Result<u64, LockError> {
    sleep(Duration::from_millis(700)).await;
    if depth > 0 {
        Box::pin(count_down(id, depth - 1)).await?;
    }
    lock.ensure_held()?;
    Ok(lock.ttl().as_secs())
}

#[tokio::test(start_paused = true)]
async fn reentrant_function_enters_the_lock_of_its_caller() {
    let manager = LockManager::in_memory();
    let started = Instant::now();
    assert_eq!(manager.scope(pay_three_times(7, 8)).await.unwrap(), 22);
    // Two calls for one key run one after the other, and the call for another key beside them.
    assert!((2..3).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
    assert_eq!(manager.scope(count_down(7, 5)).await.unwrap(), 1);
    assert!(is_free(&manager, "order:7").await && is_free(&manager, "order:8").await);
}

struct Shop;

#[distributed_lock_defaults(reentrant, wait = 5s)]
impl Shop {
    #[distributed_lock(key = "order:{id}")]
    async fn capture(&self, id: u64) -> Result<u64, LockError> {
        self.charge(id).await
    }

    #[distributed_lock(key = "order:{id}", fencing, guard = lock)]
    async fn fenced(&self, id: u64) -> Result<(u64, u64), LockError> {
        Ok((lock.fencing_token().as_u64(), self.number(id).await?))
    }

    #[distributed_lock(key = "order:{id}", fencing, guard = lock)]
    async fn number(&self, id: u64) -> Result<u64, LockError> {
        let _ = id;
        Ok(lock.fencing_token().as_u64())
    }

    #[distributed_lock(key = "order:{id}", release = confirmed, on_lost = continue)]
    async fn charge(&self, id: u64) -> Result<u64, LockError> {
        Ok(id)
    }

    #[distributed_lock(key = "report", once_per = 15m, on_contended = skip)]
    async fn report(&self, depth: u64) -> Result<Option<u64>, LockError> {
        if depth > 0 { Box::pin(self.report(depth - 1)).await } else { Ok(Some(depth)) }
    }
}

#[tokio::test(start_paused = true)]
async fn reentrant_default_applies_to_the_whole_block() {
    let manager = LockManager::in_memory();
    assert_eq!(manager.scope(Shop.capture(7)).await.unwrap(), 7);
    let (outer, inner) = manager.scope(Shop.fenced(7)).await.unwrap();
    assert_eq!(outer, inner);
    // A window runs once, whatever the block sets.
    assert_eq!(manager.scope(Shop.report(1)).await.unwrap(), None);
}
