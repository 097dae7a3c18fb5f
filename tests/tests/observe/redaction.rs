//! `redact_keys`: spans and events contain no key.

use crate::subscriber::{events, keep_all, mentions, spans};
use redlock_runtime::{LockError, LockGuard, LockManager, LockRequest, OrderCheck, distributed_lock};
use redlock_tests::Nodes;
use std::time::Duration;

/// Text that is part of all keys here, and occurs nowhere else.
const SECRET: &str = "alice-4711";

#[distributed_lock(key = "person:{name}", manager = locks, wait = none)]
async fn annotated(locks: &LockManager, name: &str) -> Result<(), LockError> {
    Ok(())
}

#[tokio::test]
async fn redacted_keys_appear_in_no_span_or_event() {
    keep_all();
    let nodes = Nodes::start(1).await;
    let builder = LockManager::builder().nodes(nodes.urls()).redact_keys().order_check(OrderCheck::Warn);
    let manager = builder.build().unwrap();
    manager.ready().await.unwrap();
    let request = || LockRequest::new(format!("hand:{SECRET}")).ttl(Duration::from_secs(2));
    annotated(&manager, SECRET).await.unwrap();
    // Each kind of event that names a lock.
    let held = manager.acquire(request()).await.unwrap();
    manager.try_acquire(request()).await.unwrap_err();
    manager.acquire(request().wait(Duration::from_millis(200))).await.unwrap_err();
    nodes[0].inspect().command::<i64>(&["DEL", &format!("hand:{SECRET}")]).await;
    let error = held.lost().await;
    assert!(error.to_string().contains(SECRET), "errors are for the program: {error}");
    drop(held);
    let again = async |_: &LockGuard| manager.acquire(request().wait(Duration::from_millis(50))).await.map(drop);
    manager.with_lock(request(), again).await.unwrap_err();
    let nested = |outer: &'static str, inner: &'static str| {
        let (manager, key) = (manager.clone(), |kind: &str| format!("{kind}:{SECRET}"));
        async move {
            let (outer_key, inner_key) = (key(outer), key(inner));
            let body =
                async |_: &LockGuard| manager.acquire(LockRequest::new(inner_key).label("inner")).await.map(drop);
            manager.with_lock(LockRequest::new(outer_key).label("outer"), body).await
        }
    };
    nested("a", "b").await.unwrap();
    nested("b", "a").await.unwrap();
    nodes[0].stop().await;
    manager.try_acquire(request()).await.unwrap_err();

    let hash = events("skipped", "#").into_iter().next().expect("the call is told by a hash").field("key").to_owned();
    for name in ["skipped", "timed_out", "lost", "deadlock", "no_quorum"] {
        assert!(!events(name, &hash).is_empty(), "{name} of {hash}");
    }
    assert_eq!(spans("redlock.hold", "person:{name}")[0].field("key"), "person:{name}");
    assert_eq!(mentions(SECRET).iter().map(|told| &told.name).collect::<Vec<_>>(), [""; 0]);
}
