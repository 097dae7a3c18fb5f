//! Callers outside of a tokio runtime, on a plain executor. All calls work there, because the library has its own thread.

use crate::support::builder;
use redlock_runtime::admin::{BreakOptions, ListOptions};
use redlock_runtime::{LockError, LockManager, LockRequest, Wait, distributed_lock};
use redlock_tests::{Nodes, PATIENCE};
use std::future::{Future, pending};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;
use tokio::runtime::{Builder, Handle};

const KEY: &str = "order:7";

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls `future` on this thread, as `futures::executor::block_on` does.
fn block_on<F: Future>(future: F) -> F::Output {
    assert!(Handle::try_current().is_err());
    let (mut future, waker) = (pin!(future), Waker::from(Arc::new(Unpark(thread::current()))));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[distributed_lock(key = "order:{id}", manager = manager, ttl = 30)]
async fn annotated(manager: &LockManager, id: u32) -> Result<u32, LockError> {
    Ok(id)
}

/// Makes every call that takes time.
async fn use_everything(manager: &LockManager) {
    // On a busy machine, one try may take too long.
    while let Err(error) = manager.ready().await {
        assert!(error.is_transient(), "{error}");
    }
    assert!(manager.check().await.nodes.iter().all(|node| node.error.is_none()));
    assert_eq!(annotated(manager, 7).await.unwrap(), 7);
    let held = manager.acquire(KEY).await.unwrap();
    held.extend().await.unwrap();
    assert!(manager.try_acquire(KEY).await.unwrap_err().is_contended());
    let short = LockRequest::new(KEY).wait(Duration::from_millis(50));
    assert!(matches!(manager.acquire(short).await.unwrap_err(), LockError::TimedOut { .. }));
    assert!(manager.inspect(KEY).await.holder().is_some());
    manager.list(ListOptions::new("*").limit(10).timeout(PATIENCE)).await;
    assert!(manager.break_lock(KEY, BreakOptions::new(*held.token()).by_force()).await.is_broken());
    drop(held);
    let fenced = manager.acquire(LockRequest::new(KEY).fencing()).await.unwrap();
    fenced.release().await.unwrap();
    manager.acquire(LockRequest::shared("config")).await.unwrap().release().await.unwrap();
    manager.acquire(LockRequest::new("pool").permits(2)).await.unwrap().release().await.unwrap();
    manager.with_lock("cart:7", async |_| Ok::<_, LockError>(())).await.unwrap();
}

/// Holds the lock in one thread, and waits for it in another.
fn wait_for_each_other(manager: &LockManager) {
    let held = block_on(manager.acquire(KEY)).unwrap();
    let waiting = thread::spawn({
        let manager = manager.clone();
        move || block_on(manager.acquire(LockRequest::new(KEY).wait(Wait::Forever))).map(drop)
    });
    block_on(held.extend()).unwrap();
    drop(held);
    waiting.join().unwrap().unwrap();
}

/// Runs a body that only waits, so only the timer of the library ends it.
fn lose_a_lock(manager: &LockManager) {
    let request = LockRequest::new("short").max_hold(Duration::from_millis(100));
    let lost = block_on(manager.with_lock(request, async |_| pending::<Result<(), LockError>>().await));
    assert!(matches!(lost, Err(LockError::Lost { .. })), "{lost:?}");
}

#[test]
fn every_call_works_on_a_plain_executor() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let nodes = runtime.block_on(Nodes::start(3));
    let redis = {
        let _context = runtime.enter();
        builder(nodes.urls()).build().unwrap()
    };
    for manager in [redis, LockManager::in_memory()] {
        block_on(use_everything(&manager));
        wait_for_each_other(&manager);
        lose_a_lock(&manager);
        assert!(block_on(manager.shutdown()));
    }
}
