//! Calls of annotated functions in the bodies of others.
#![allow(deprecated, reason = "one key for all: what is tested is something else")]

use redlock_runtime::{LockError, LockManager, distributed_lock};
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
async fn a_call_that_would_wait_for_its_caller_names_both_attributes() {
    let started = Instant::now();
    let error = LockManager::in_memory().scope(capture(7)).await.unwrap_err();
    let LockError::WouldDeadlock { held, .. } = &error else { panic!("{error}") };
    assert_eq!((held.taken_at().line(), held.asked_at().line()), (OUTER_LINE, INNER_LINE), "{error}");
    assert!(held.taken_at().file().ends_with("attribute/nested.rs"), "{error}");
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
async fn it_is_no_lock_of_somebody_else_that_could_be_skipped() {
    let manager = LockManager::in_memory();
    for outcome in [manager.scope(with_an_outcome(7)).await, manager.scope(to_the_end(7)).await] {
        assert!(matches!(outcome, Err(LockError::WouldDeadlock { .. })), "{outcome:?}");
    }
}

#[distributed_lock(key = "order:{id}", wait = 5s, guard = lock)]
async fn gives_back_meanwhile(id: u64) -> Result<u64, LockError> {
    let gives_back = async {
        sleep(Duration::from_secs(1)).await;
        lock.release().await
    };
    let (refunded, given_back) = tokio::join!(refund(id), gives_back);
    given_back.and(refunded)
}

#[distributed_lock(key = "order:{id}", wait = 5s, on_lost = continue, guard = lock)]
async fn gives_back_to_the_end(id: u64) -> Result<u64, LockError> {
    let gives_back = async {
        sleep(Duration::from_secs(1)).await;
        lock.release().await
    };
    let (refunded, given_back) = tokio::join!(refund(id), gives_back);
    given_back.and(refunded)
}

#[tokio::test(start_paused = true)]
async fn a_body_that_sees_its_guard_may_give_the_lock_back_while_its_call_waits() {
    let manager = LockManager::in_memory();
    assert_eq!(manager.scope(gives_back_meanwhile(7)).await.unwrap(), 7);
    assert_eq!(manager.scope(gives_back_to_the_end(7)).await.unwrap(), 7);
}
