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
async fn held_for_ends_with_the_proven_lease() {
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
async fn released_guard_cannot_be_extended_or_detached() {
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
async fn release_during_an_extension_fails_the_extension() {
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
async fn window_is_reopened_only_by_its_holder() {
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
async fn extension_fails_after_max_hold() {
    let manager = LockManager::in_memory();
    let guard = manager.acquire(request().max_hold(TTL / 2)).await.unwrap();
    guard.extend().await.unwrap();
    advance(TTL / 2).await;
    assert!(matches!(guard.extend().await, Err(LockError::Lost { cause: LossCause::MaxHold, .. })));
}

#[tokio::test(start_paused = true)]
async fn fencing_token_increases_after_a_detached_lock() {
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
async fn held_for_of_a_late_body_ends_with_the_lease() {
    let late = async |_: &LockGuard| -> Result<(), LockError> {
        advance(LONG).await;
        std::future::pending().await
    };
    assert!(held_for(LockManager::in_memory().with_lock(request(), late).await) < TTL);
}

#[test]
fn lease_expires_in_every_paused_runtime_in_turn() {
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
