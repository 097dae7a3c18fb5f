//! Shared locks on the node in memory.

use super::{KEY, reader, writer};
use redlock_runtime::{LockError, LockGuard, LockManager, LockRequest, LossCause, Mode};
use std::time::Duration;
use tokio::task::yield_now;
use tokio::time::{Instant, advance, sleep};

const TTL: Duration = Duration::from_secs(30);

fn waiting(manager: &LockManager, request: LockRequest) -> crate::waiters::Waiting {
    crate::waiters::waiting(manager, request.wait(10 * TTL))
}

/// Lets all tasks run that can.
async fn settle() {
    for _ in 0..50 {
        yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn readers_behind_a_waiting_writer_enter_together_after_it() {
    let manager = LockManager::in_memory();
    let held = manager.acquire(reader()).await.unwrap();
    let mut calls = Vec::new();
    for request in [writer(), reader(), reader()] {
        calls.push(waiting(&manager, request));
        settle().await;
    }
    let [alone, one, other] = calls.try_into().unwrap();
    assert!(!alone.is_finished() && !one.is_finished() && !other.is_finished());
    assert!(manager.try_acquire(LockRequest::shared(KEY)).await.unwrap_err().is_contended());
    drop(held);
    let guard = alone.await.unwrap().unwrap();
    settle().await;
    assert!(guard.mode() == Mode::Exclusive && !one.is_finished() && !other.is_finished());
    guard.release().await.unwrap();
    let readers = [one.await.unwrap().unwrap(), other.await.unwrap().unwrap()];
    assert!(readers.iter().all(LockGuard::is_held));
    drop(readers);
    drop(manager.try_acquire(KEY).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn leaked_reader_blocks_a_writer_only_for_its_ttl() {
    let manager = LockManager::in_memory();
    let leaked = manager.acquire(reader().ttl(TTL).without_renewal()).await.unwrap();
    let held = manager.acquire(reader()).await.unwrap();
    advance(TTL / 2).await;
    held.release().await.unwrap();
    let begun = Instant::now();
    let guard = manager.acquire(writer().wait(10 * TTL)).await.unwrap();
    assert!(begun.elapsed() <= TTL, "{:?}", begun.elapsed());
    assert!(matches!(leaked.ensure_held(), Err(LockError::Lost { cause: LossCause::Expired, .. })));
    drop((guard, leaked));
}

#[tokio::test(start_paused = true)]
async fn readers_are_renewed_individually() {
    let manager = LockManager::in_memory();
    let guards = [manager.acquire(reader()).await.unwrap(), manager.acquire(reader()).await.unwrap()];
    sleep(10 * TTL).await;
    assert!(guards.iter().all(LockGuard::is_held));
    let [one, other] = guards;
    drop(one);
    sleep(10 * TTL).await;
    other.ensure_held().unwrap();
    assert!(manager.try_acquire(KEY).await.unwrap_err().is_contended());
    drop(other);
    drop(manager.try_acquire(KEY).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn downgrade_admits_waiting_readers_in_memory() {
    let manager = LockManager::in_memory();
    let held = manager.acquire(KEY).await.unwrap();
    let (readers, alone) = ([waiting(&manager, reader()), waiting(&manager, reader())], waiting(&manager, writer()));
    settle().await;
    held.downgrade();
    for call in readers {
        call.await.unwrap().unwrap().release().await.unwrap();
    }
    settle().await;
    assert!(held.is_held() && !alone.is_finished());
    drop(held);
    alone.await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn shared_lock_is_detached_and_attached_in_memory() {
    let manager = LockManager::in_memory();
    let other = manager.acquire(reader()).await.unwrap();
    let text = manager.acquire(reader()).await.unwrap().detach().to_string();
    let taken_up = manager.attach(text.parse().unwrap()).await.unwrap();
    assert_eq!(taken_up.mode(), Mode::Shared);
    let again = manager.attach(text.parse().unwrap()).await;
    assert!(matches!(again, Err(LockError::Lost { .. })), "{again:?}");
    drop(other);
    assert!(manager.try_acquire(KEY).await.unwrap_err().is_contended());
    drop(taken_up);
    drop(manager.try_acquire(KEY).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn held_locks_show_their_modes() {
    let manager = LockManager::in_memory();
    let guards = [manager.acquire(reader()).await.unwrap(), manager.acquire(reader()).await.unwrap()];
    let alone = manager.acquire("order:7").await.unwrap();
    let modes = |key: &str| {
        let held = manager.held_locks();
        held.iter().filter(|held| held.key.as_str() == key).map(|held| held.mode).collect::<Vec<_>>()
    };
    assert_eq!((modes(KEY), modes("order:7")), (vec![Mode::Shared; 2], vec![Mode::Exclusive]));
    alone.downgrade();
    assert_eq!(modes("order:7"), [Mode::Shared]);
    drop((guards, alone));
    assert!(manager.held_locks().is_empty());
}
