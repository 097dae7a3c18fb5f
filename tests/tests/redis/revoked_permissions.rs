//! Permissions that are taken away, and keys that are replaced, while locks are held: nothing is left without an expiry, and no holder loses
//! its lock.

use crate::support::{builder, wait_until_queued};
use crate::waiters::waiting;
use redlock_runtime::admin::BreakOptions;
use redlock_runtime::{LockError, LockGuard, LockManager, LockPart, LockRequest};
use redlock_tests::{Inspector, Nodes, PATIENCE};
use std::time::Duration;

const KEY: &str = "order:7";
const OTHER: &str = "order:8";
const TTL: Duration = Duration::from_secs(60);

/// A request for each kind of lock with the key `KEY`, or with keys of the path `/order`.
fn requests() -> [LockRequest; 6] {
    [
        LockRequest::new(KEY),
        LockRequest::shared(KEY),
        LockRequest::new(KEY).permits(1),
        LockRequest::all([KEY, OTHER]),
        LockRequest::all([LockPart::shared(KEY), OTHER.into()]),
        LockRequest::path("/order/7"),
    ]
    .map(|request| request.ttl(TTL))
}

/// Returns a manager of a user who may do everything.
async fn user(nodes: &Nodes) -> LockManager {
    let rules = ["ACL", "SETUSER", "alice", "reset", "on", ">w0nder", "~*", "&*", "+@all"];
    nodes[0].inspect().command::<()>(&rules).await;
    let manager = builder([nodes[0].url().replace("redis://", "redis://alice:w0nder@")]).build().unwrap();
    manager.ready().await.unwrap();
    manager
}

async fn set_rules(nodes: &Nodes, rules: &str) {
    nodes[0].inspect().command::<()>(&["ACL", "SETUSER", "alice", rules]).await;
}

async fn other(nodes: &Nodes) -> LockManager {
    let manager = builder(nodes.urls()).build().unwrap();
    manager.ready().await.unwrap();
    manager
}

async fn reader(manager: &LockManager) -> LockGuard {
    manager.acquire(LockRequest::shared(KEY).ttl(TTL)).await.unwrap()
}

/// Fails if a key has no expiry.
async fn assert_all_expire(inspector: &Inspector) {
    for key in inspector.keys().await {
        if !key.starts_with("redlock:f:") {
            assert_ne!(inspector.pttl(&key).await, -1, "{key} never expires");
        }
    }
}

#[tokio::test]
async fn release_of_a_key_that_became_a_list_keeps_the_list() {
    let nodes = Nodes::start(1).await;
    let manager = other(&nodes).await;
    for request in requests() {
        let shown = format!("{request:?}");
        let guard = manager.acquire(request).await.unwrap();
        let keys = nodes[0].inspect().keys().await;
        let key = keys.iter().find(|key| key.ends_with('7')).unwrap();
        nodes[0].inspect().command::<()>(&["DEL", key]).await;
        nodes[0].inspect().command::<()>(&["RPUSH", key, "a", "b"]).await;
        let error = guard.release().await.unwrap_err();
        assert!(matches!(error, LockError::Lost { .. }), "{shown}: {error:?}");
        let left: usize = nodes[0].inspect().command(&["LLEN", key]).await;
        assert_eq!(left, 2, "{shown}");
        assert!(manager.stats().releases.abandoned == 0, "{shown}: {:?}", manager.stats().releases);
        nodes[0].inspect().command::<()>(&["DEL", key]).await;
        nodes.assert_empty(PATIENCE).await;
    }
}

#[tokio::test]
async fn holder_releases_without_the_permission_to_add_members() {
    let nodes = Nodes::start(1).await;
    let manager = user(&nodes).await;
    for request in requests() {
        let shown = format!("{request:?}");
        let guard = manager.acquire(request).await.unwrap();
        set_rules(&nodes, "-zadd").await;
        // The release of a permit then looks for the holder of the admission lock.
        nodes[0].inspect().command::<()>(&["SET", "{order:7}:t", "another call", "PX", "60000"]).await;
        guard.release().await.unwrap_or_else(|error| panic!("{shown}: {error}"));
        nodes[0].inspect().command::<()>(&["DEL", "{order:7}:t"]).await;
        set_rules(&nodes, "+zadd").await;
        nodes.assert_empty(PATIENCE).await;
    }
}

#[tokio::test]
async fn breaking_a_reader_without_a_permission_leaves_its_lock() {
    for missing in ["-pexpire", "-zadd", "-zrem"] {
        let nodes = Nodes::start(1).await;
        let (ours, theirs, leaver) = (user(&nodes).await, other(&nodes).await, other(&nodes).await);
        let held = reader(&theirs).await;
        // The key is a set from now on, which has a single member in the end.
        reader(&leaver).await.release().await.unwrap();
        assert_eq!(nodes[0].inspect().shares(KEY).await.len(), 1);
        set_rules(&nodes, missing).await;
        let options = BreakOptions::new(*held.token()).wait(Duration::from_millis(100));
        let _report = ours.break_lock(KEY, options).await;
        assert_all_expire(nodes[0].inspect()).await;
        held.extend().await.unwrap_or_else(|error| panic!("{missing}: {error}"));
        held.release().await.unwrap();
        nodes.assert_empty(PATIENCE).await;
    }
}

#[tokio::test]
async fn second_reader_without_the_permission_for_an_expiry_leaves_the_first_one_its_lock() {
    let nodes = Nodes::start(1).await;
    let (ours, theirs) = (user(&nodes).await, other(&nodes).await);
    let held = reader(&theirs).await;
    set_rules(&nodes, "-pexpire").await;
    ours.acquire(LockRequest::shared(KEY).ttl(TTL)).await.unwrap_err();
    assert_all_expire(nodes[0].inspect()).await;
    held.extend().await.unwrap();
    held.release().await.unwrap();
    nodes.assert_empty(PATIENCE).await;
}

#[tokio::test]
async fn downgrade_without_a_permission_keeps_the_lock() {
    for missing in ["-pexpire", "-zadd"] {
        let nodes = Nodes::start(1).await;
        let (ours, theirs) = (user(&nodes).await, other(&nodes).await);
        let held = ours.acquire(LockRequest::new(KEY).ttl(TTL)).await.unwrap();
        set_rules(&nodes, missing).await;
        held.downgrade();
        let _refused = held.extend().await;
        assert!(theirs.try_acquire(KEY).await.unwrap_err().is_contended(), "{missing}");
        assert!(held.is_held());
        set_rules(&nodes, "+@all").await;
        held.release().await.unwrap();
        nodes.assert_empty(PATIENCE).await;
    }
}

/// Every kind that can be held by a user whose queues are forbidden afterwards is released even so.
#[tokio::test]
async fn every_kind_of_lock_is_released_after_its_queue_was_forbidden() {
    let nodes = Nodes::start(1).await;
    let theirs = other(&nodes).await;
    for (request, has_readers) in
        requests().into_iter().map(|request| (request, false)).chain([(requests()[1].clone(), true)])
    {
        let shown = format!("{request:?}");
        let manager = user(&nodes).await;
        let guard = manager.acquire(request).await.unwrap();
        let other = if has_readers { Some(reader(&theirs).await) } else { None };
        // The braces of the tree of a path belong to the path itself.
        set_rules(&nodes, "resetkeys").await;
        set_rules(&nodes, "~order:*").await;
        set_rules(&nodes, "~/{order}*").await;
        set_rules(&nodes, "~redlock:*").await;
        // Several readers can be extended only with their queue.
        assert_eq!(guard.extend().await.is_err(), has_readers, "{shown}");
        assert!(guard.is_held(), "{shown}");
        guard.release().await.unwrap_or_else(|error| panic!("{shown}: {error}"));
        if let Some(other) = other {
            other.extend().await.unwrap();
            other.release().await.unwrap();
        }
        assert!(manager.shutdown().await, "{shown}: {:?}", manager.stats().releases);
        nodes.assert_empty(PATIENCE).await;
    }
}

/// A waiter in the forbidden queue is not woken, and takes the lock when it asks again.
#[tokio::test]
async fn waiter_in_a_queue_that_was_forbidden_takes_the_released_lock() {
    let nodes = Nodes::start(1).await;
    let (ours, theirs) = (user(&nodes).await, other(&nodes).await);
    let held = ours.acquire(LockRequest::new(KEY).ttl(TTL)).await.unwrap();
    let call = waiting(&theirs, LockRequest::new(KEY).wait(PATIENCE).ttl(TTL));
    wait_until_queued(&nodes, KEY, 1).await;
    set_rules(&nodes, "resetkeys").await;
    set_rules(&nodes, "~order:*").await;
    held.extend().await.unwrap();
    held.release().await.unwrap();
    call.await.unwrap().unwrap().release().await.unwrap();
    nodes.assert_empty(PATIENCE).await;
}

/// An extension that names only the lock takes no key of another program, whatever the value is.
#[tokio::test]
async fn key_of_another_program_is_kept_after_the_queue_was_forbidden() {
    let nodes = Nodes::start(1).await;
    let manager = user(&nodes).await;
    for value in ["", "another program", "+"] {
        let held = manager.acquire(LockRequest::new(KEY).ttl(TTL)).await.unwrap();
        set_rules(&nodes, "resetkeys").await;
        set_rules(&nodes, "~order:*").await;
        nodes[0].inspect().command::<()>(&["SET", KEY, value]).await;
        let error = held.extend().await.unwrap_err();
        assert!(matches!(error, LockError::Lost { .. }), "{value:?}: {error:?}");
        drop(held);
        set_rules(&nodes, "~*").await;
        let left: String = nodes[0].inspect().command(&["GET", KEY]).await;
        assert_eq!(left, value);
        nodes[0].inspect().command::<()>(&["DEL", KEY]).await;
    }
    assert!(manager.shutdown().await);
    nodes.assert_empty(PATIENCE).await;
}
