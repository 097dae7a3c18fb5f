//! Tests of other tasks that are polled inside of a body, on its thread. Defect 21 of peers: reentrancy by thread,
//! which mistakes them for calls of the body.

use crate::private::hold;
use crate::{Inherited, LockError, LockGuard, LockManager, LockRequest};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::{LocalSet, block_in_place, spawn_local, unconstrained, yield_now};
use tokio::time::timeout;

const WAIT: Duration = Duration::from_secs(10);

fn request() -> LockRequest {
    LockRequest::new("order:7").wait(WAIT)
}

/// Returns `true` if a reentrant call here enters.
async fn enters(manager: LockManager) -> bool {
    let body = async |_: &LockGuard| {
        yield_now().await;
        Ok::<_, LockError>(())
    };
    match manager.with_lock(request().reentrant(), body).await {
        Ok(()) => true,
        Err(LockError::WouldDeadlock { .. }) => false,
        Err(other) => panic!("{other}"),
    }
}

/// Returns `true` if such a call enters without waiting, because other calls may use the lock.
async fn enters_at_once(manager: LockManager) -> bool {
    manager.try_acquire(request().reentrant()).await.is_ok()
}

/// Returns `true` if a call here is refused because it would wait for its caller.
async fn is_called(manager: LockManager) -> bool {
    let error = manager.acquire(request().wait(Duration::from_millis(1))).await.unwrap_err();
    matches!(error, LockError::WouldDeadlock { .. })
}

/// Synchronous library that drives its own tasks inside its caller.
fn library() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

type Asking = Pin<Box<dyn Future<Output = bool> + Send>>;
/// Use of the lock in a body, with the handle for its tasks.
type Asks = fn(LockManager, Inherited) -> Asking;

/// Answers for a body in a task, and for a body that is polled by a `block_on`.
async fn answers(asks: Asks) -> [bool; 2] {
    let body = || async move {
        let manager = LockManager::in_memory();
        let guard: LockGuard = manager.acquire(request()).await.unwrap();
        hold(&guard, asks(manager.clone(), guard.inherit())).await.unwrap()
    };
    [tokio::spawn(body()).await.unwrap(), body().await]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn future_polled_by_a_body_counts_as_a_nested_call() {
    let table: [(&str, Asks); 8] = [
        ("join", |ours, _| {
            Box::pin(async move {
                tokio::join!(enters(ours.clone()), enters(ours.clone()), enters(ours)) == (true, true, true)
            })
        }),
        ("select", |ours, _| {
            Box::pin(async move {
                tokio::select! { is_entered = enters(ours) => is_entered, () = std::future::pending() => false }
            })
        }),
        ("timeout", |ours, _| Box::pin(async move { timeout(WAIT, unconstrained(enters(ours))).await.unwrap() })),
        ("unordered", |ours, _| {
            let calls: FuturesUnordered<_> = (0..3).map(|_| enters(ours.clone())).collect();
            Box::pin(calls.all(|is_entered| async move { is_entered }))
        }),
        ("block_in_place", |ours, _| {
            Box::pin(async move { block_in_place(|| Handle::current().block_on(enters(ours))) })
        }),
        ("another runtime", |ours, _| Box::pin(async move { block_in_place(|| library().block_on(enters(ours))) })),
        ("local", |ours, _| {
            Box::pin(
                async move { block_in_place(|| Handle::current().block_on(LocalSet::new().run_until(enters(ours)))) },
            )
        }),
        ("inherited", |ours, lock| {
            Box::pin(async move {
                let local = LocalSet::new();
                let asks = async move { spawn_local(lock.scope(enters(ours))).await.unwrap().unwrap() };
                block_in_place(|| library().block_on(local.run_until(asks)))
            })
        }),
    ];
    for (by, asks) in table {
        assert_eq!(answers(asks).await, [true; 2], "{by}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn task_driven_by_a_body_is_not_a_nested_call() {
    fn in_a_task<F: Future<Output = bool> + Send + 'static>(asks: F) -> bool {
        block_in_place(|| {
            let library = library();
            library.block_on(library.spawn(asks)).unwrap()
        })
    }
    fn in_a_local_task<F: Future<Output = bool> + 'static>(asks: F) -> bool {
        let task = async move { spawn_local(asks).await.unwrap() };
        block_in_place(|| Handle::current().block_on(LocalSet::new().run_until(task)))
    }
    let table: [(&str, Asks); 4] = [
        ("enters", |ours, _| Box::pin(async move { in_a_task(enters_at_once(ours)) })),
        ("enters, local", |ours, _| Box::pin(async move { in_a_local_task(enters_at_once(ours)) })),
        ("waits", |ours, _| Box::pin(async move { in_a_task(is_called(ours)) })),
        ("waits, local", |ours, _| Box::pin(async move { in_a_local_task(is_called(ours)) })),
    ];
    for (by, asks) in table {
        assert_eq!(answers(asks).await, [false; 2], "{by}");
    }
}

#[tokio::test]
async fn body_keeps_its_locks_when_it_moves_to_another_task() {
    let manager = LockManager::in_memory();
    let ours = manager.clone();
    let mut body = Box::pin(async move {
        let nested = async |_: &LockGuard| {
            yield_now().await;
            Ok::<_, LockError>(enters(ours.clone()).await)
        };
        ours.with_lock(request(), nested).await.unwrap()
    });
    assert!(poll_fn(|cx| Poll::Ready(pin!(&mut body).poll(cx).is_pending())).await);
    assert!(LocalSet::new().run_until(async { spawn_local(body).await.unwrap() }).await);
}
