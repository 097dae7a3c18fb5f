//! Tests of a guard in memory and in virtual time, after its lock has ended.

use super::*;
use crate::{LockManager, LockRequest, LossCause};
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use tokio::runtime::Builder;
use tokio::time::advance;

const TTL: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_secs(10);

fn request() -> LockRequest {
    LockRequest::new("order:7").ttl(TTL)
}

fn held_for<T>(outcome: Result<T, LockError>) -> Duration {
    match outcome.err() {
        Some(LockError::Lost { held_for, .. }) => held_for,
        other => panic!("a lost lock expected: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_was_not_held_for_longer_than_was_proven() {
    let manager = LockManager::in_memory();
    let guard = manager.acquire(request()).await.unwrap();
    advance(LONG).await;
    assert!(held_for(guard.release().await) < TTL);
    let guard = manager.acquire(request()).await.unwrap();
    advance(LONG).await;
    assert!(held_for(guard.extend().await) < TTL);
    let guard = manager.acquire(request()).await.unwrap();
    advance(TTL / 2).await;
    guard.extend().await.unwrap();
    advance(LONG).await;
    assert!((TTL..TTL * 3 / 2).contains(&held_for(guard.release().await)));
}

#[tokio::test(start_paused = true)]
async fn what_was_given_back_cannot_be_handed_on_nor_extended() {
    let manager = LockManager::in_memory();
    let guard = manager.acquire(request()).await.unwrap();
    let waiting = tokio::spawn({
        let manager = manager.clone();
        async move { manager.acquire(request()).await }
    });
    tokio::task::yield_now().await;
    guard.release().await.unwrap();
    let heir = waiting.await.unwrap().unwrap();
    assert!(matches!(guard.extend().await, Err(LockError::Lost { cause: LossCause::Released, .. })));
    drop(guard.detach());
    advance(10 * TTL).await;
    tokio::time::sleep(TTL).await;
    drop(heir);
    drop(manager.try_acquire(request()).await.expect("the heir has given it back"));
}

#[tokio::test(start_paused = true)]
async fn what_is_given_back_while_it_is_extended_is_not_said_to_be_held() {
    let manager = LockManager::in_memory();
    let guard = manager.acquire(request()).await.unwrap();
    let waiting = tokio::spawn({
        let manager = manager.clone();
        async move { manager.acquire(request()).await }
    });
    tokio::task::yield_now().await;
    let mut extending = pin!(guard.extend());
    let is_pending = poll_fn(|cx| {
        // A task without any budget left is pending at its first await.
        while pin!(tokio::task::consume_budget()).poll(cx).is_ready() {}
        Poll::Ready(extending.as_mut().poll(cx).is_pending())
    });
    assert!(is_pending.await);
    guard.release().await.unwrap();
    let heir = waiting.await.unwrap().unwrap();
    let extended = extending.await;
    assert!(matches!(extended, Err(LockError::Lost { cause: LossCause::Released, .. })), "{extended:?}");
    drop(heir);
}

#[tokio::test(start_paused = true)]
async fn a_window_is_given_back_by_the_call_that_has_it_only() {
    let manager = LockManager::in_memory();
    let window = || LockRequest::new("report").once_per(1000 * LONG).wait(LONG);
    let guard = manager.acquire(window()).await.unwrap();
    let gives_back = async {
        guard.reopen_window();
        guard.release().await
    };
    let (heir, released) = tokio::join!(manager.acquire(window()), gives_back);
    let heir = released.and(heir).unwrap();
    assert_eq!(heir.token(), guard.token(), "the lock was passed on");
    guard.reopen_window();
    drop(heir);
    let third = manager.acquire(window()).await;
    assert!(matches!(third, Err(LockError::WindowTaken { .. })), "{third:?}");
}

#[tokio::test(start_paused = true)]
async fn an_extension_does_not_go_beyond_the_longest_hold() {
    let manager = LockManager::in_memory();
    let guard = manager.acquire(request().max_hold(TTL / 2)).await.unwrap();
    guard.extend().await.unwrap();
    advance(TTL / 2).await;
    assert!(matches!(guard.extend().await, Err(LockError::Lost { cause: LossCause::MaxHold, .. })));
}

#[tokio::test(start_paused = true)]
async fn fencing_tokens_grow_over_a_lock_that_was_detached() {
    let manager = LockManager::in_memory();
    let first = manager.acquire(request().fencing()).await.unwrap();
    let (token, detached) = (first.fencing_token(), first.into_guard().detach());
    let attached = manager.attach(detached).await.unwrap();
    let waiting = tokio::spawn({
        let manager = manager.clone();
        async move { manager.acquire(request().fencing()).await }
    });
    tokio::task::yield_now().await;
    drop(attached);
    let next = waiting.await.unwrap().unwrap();
    assert!(next.fencing_token() > token, "{} after {token}", next.fencing_token());
}

#[tokio::test(start_paused = true)]
async fn a_body_that_notices_late_held_its_lock_no_longer() {
    let late = async |_: &LockGuard| -> Result<(), LockError> {
        advance(LONG).await;
        std::future::pending().await
    };
    assert!(held_for(LockManager::in_memory().with_lock(request(), late).await) < TTL);
}

#[test]
fn a_lease_runs_out_in_every_paused_runtime_whatever_the_time_was_in_the_one_before() {
    for ahead in [LONG * 1000, Duration::ZERO] {
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            advance(ahead).await;
            let guard = LockManager::in_memory().acquire(request()).await.unwrap();
            assert!(guard.is_held());
            advance(LONG).await;
            assert!(!guard.is_held(), "{guard:?}");
        });
    }
}
