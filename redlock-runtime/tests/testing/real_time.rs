//! Test servers in real time, on several threads.

use redlock_runtime::LockRequest;
use redlock_runtime::testing::TestServers;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::time::Instant;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_on_several_threads_take_turns() {
    let servers = TestServers::new(3);
    let managers = [(); 3].map(|()| servers.manager());
    let (at_work, calls) = (Arc::new(AtomicU32::new(0)), 60);
    let tasks: Vec<_> = (0..calls)
        .map(|call| {
            let (manager, at_work) = (managers[call % 3].clone(), Arc::clone(&at_work));
            tokio::spawn(async move {
                let guard = manager.acquire(LockRequest::new("order:7").wait(Duration::from_secs(60))).await.unwrap();
                assert_eq!(at_work.fetch_add(1, Ordering::SeqCst), 0);
                tokio::task::yield_now().await;
                at_work.fetch_sub(1, Ordering::SeqCst);
                drop(guard);
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(servers.log().acquired().len(), calls);
    assert_eq!(servers.log().max_together("order:7"), 1);
}

#[tokio::test]
async fn lease_expires_in_real_time() {
    let servers = TestServers::new(1);
    let (ours, theirs) = (servers.manager(), servers.manager());
    let ttl = Duration::from_millis(200);
    let begun = Instant::now();
    let _guard = ours.acquire(LockRequest::new("order:7").ttl(ttl).without_renewal()).await.unwrap();
    drop(theirs.acquire("order:7").await.unwrap());
    assert!(begun.elapsed() >= ttl);
}
