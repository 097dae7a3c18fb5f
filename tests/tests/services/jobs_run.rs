//! The jobs run concurrently, as far as their locks allow.

use crate::jobs::{self, Invoices, Job, Runner};
use crate::store::Store;
use redlock_runtime::{LockError, LockManager, Wait};
use std::ops::ControlFlow;
use std::sync::Arc;

type Three = Runner<Store, 3>;

fn runner() -> (LockManager, Store, Three) {
    let (locks, store) = (LockManager::in_memory(), Store::default());
    (locks.clone(), store.clone(), Runner::new(locks, store, "shop".to_owned()))
}

#[tokio::test(start_paused = true)]
async fn job_runs_exclusively_per_input() {
    let (locks, store, _) = runner();
    let invoices = Invoices(store.clone());
    let run = |input: &str| locks.scope(invoices.run(input.to_owned(), 1));
    let (first, second) = tokio::join!(run("a"), run("a"));
    assert_eq!((first.unwrap(), second.unwrap(), store.peak()), (1, 2, 1));
    let (first, second) = tokio::join!(run("a"), run("b"));
    assert_eq!((first.unwrap(), second.unwrap(), store.peak()), (3, 1, 2));
    let all = invoices.run_all(vec!["a".to_owned(), "c".to_owned()]);
    assert_eq!(locks.scope(all).await.unwrap(), 4 + 1);
    let _guard = locks.acquire("prepare:invoices:a").await.unwrap();
    assert_eq!(run("a").await.unwrap(), 5, "without preparation");
}

#[tokio::test(start_paused = true)]
async fn shards_run_concurrently() {
    let (_, store, runner) = runner();
    let runner = Arc::new(runner);
    let shard = |number| tokio::spawn(Arc::clone(&runner).shard(number, Wait::Forever));
    let (first, second) = tokio::join!(shard(0), shard(0));
    assert_eq!(first.unwrap().unwrap() + second.unwrap().unwrap(), 1 + 2);
    assert_eq!(store.peak(), 1);
    let (first, second) = tokio::join!(shard(0), shard(1));
    assert_eq!((first.unwrap().unwrap(), second.unwrap().unwrap(), store.peak()), (3, 1, 2));
    let at_once = || Arc::clone(&runner).shard(2, Wait::None);
    let (first, second) = tokio::join!(at_once(), at_once());
    assert!(first.is_ok() && matches!(second, Err(LockError::Contended { .. })));
}

#[tokio::test(start_paused = true)]
async fn returned_borrow_outlives_the_lock() {
    let (locks, _, mut runner) = runner();
    let slot = runner.slot(4).await.unwrap().unwrap();
    locks.try_acquire("shop:slots").await.unwrap().release().await.unwrap();
    *slot += 7;
    assert_eq!(runner.slot(1).await.unwrap().copied(), Some(7));
}

#[tokio::test(start_paused = true)]
async fn each_month_is_archived_exclusively() {
    let (_, store, runner) = runner();
    let month = |month, day| runner.archive((2024, month, day), 1);
    let (first, second, other) = tokio::join!(month(1, 1), month(1, 2), month(2, 1));
    assert!(matches!(first, ControlFlow::Continue(2)) && matches!(other, ControlFlow::Continue(2)));
    assert!(matches!(second, ControlFlow::Break(LockError::Contended { .. })));
    assert_eq!((store.read("2024-1"), store.read("2024-2"), store.peak()), (2, 2, 2));
}

#[tokio::test(start_paused = true)]
async fn futures_acquire_their_lock_at_the_first_poll() {
    let (locks, store, runner) = runner();
    let (first, second, empty) = (runner.later("a"), runner.later("a"), runner.later(""));
    locks.try_acquire("shop:a").await.unwrap().release().await.unwrap();
    let results = tokio::join!(first, second, empty);
    assert_eq!((results.0.unwrap(), results.1.unwrap(), results.2.unwrap(), store.peak()), (1, 2, 0, 1));
    let export = |name| locks.scope(jobs::export(&store, name, 1));
    let (first, second, other) = tokio::join!(export("a"), export("a"), export("b"));
    assert_eq!((first.unwrap(), second.unwrap(), other.unwrap()), ("a", "a", "b"));
    assert_eq!((store.read("a"), store.read("b"), store.peak()), (4, 1, 2));
}

#[tokio::test(start_paused = true)]
async fn recursive_sweep_handles_every_half() {
    let (locks, store, _) = runner();
    assert_eq!(jobs::sweep(&locks, &store, 0, 4).await.unwrap(), 4);
    let (first, second) = tokio::join!(jobs::sweep(&locks, &store, 0, 2), jobs::sweep(&locks, &store, 0, 2));
    assert!(first.is_ok() && second.is_ok());
    assert_eq!((store.read("swept"), store.peak()), (8, 1));
}

#[tokio::test(start_paused = true)]
async fn contended_heartbeat_returns_none() {
    let (locks, store, _) = runner();
    let beat = |process| locks.scope(jobs::heartbeat(&store, process));
    let (first, other) = tokio::join!(beat(1), beat(2));
    assert_eq!((first.unwrap(), other.unwrap(), store.peak()), (Some(1), Some(1), 2));
    let _guard = locks.acquire("heartbeat:1").await.unwrap();
    assert_eq!(beat(1).await.unwrap(), None);
    assert!(matches!(jobs::heartbeat(&store, 1).await, Err(LockError::NotInstalled)));
}
