//! Permissions for shared locks: the rules of the guide are sufficient and necessary.

use super::KEY;
use crate::support::{builder, wait_until_queued};
use crate::waiters::{Waiting, managers, obtained, patient, waiting};
use redlock_runtime::{LockError, LockGuard, LockManager, LockPart, LockRequest};
use redlock_tests::{Nodes, PATIENCE, eventually_eq};

/// Rules for every lock, and for wake-ups.
const OF_ALL: &str = "resetchannels ~config* ~{config* &redlock::* +set +get +del +pttl +pexpire +time +zadd +zcard +zcount +zpopmin \
                      +zrange +zrank +zrem +zscore +evalsha +eval +script|load +client|setname +publish +subscribe";

/// Returns a manager whose user has the rules for all locks, and these `rules`.
async fn user(nodes: &Nodes, rules: &str) -> LockManager {
    let words = ["ACL", "SETUSER", "alice", "reset", "on", ">w0nder"].into_iter();
    let words: Vec<_> = words.chain(OF_ALL.split_whitespace()).chain(rules.split_whitespace()).collect();
    nodes[0].inspect().command::<()>(&words).await;
    builder([nodes[0].url().replace("redis://", "redis://alice:w0nder@")]).build().unwrap()
}

async fn wait_for(manager: &LockManager, nodes: &Nodes, requests: &[LockRequest]) -> Vec<Waiting> {
    let mut calls = Vec::new();
    for request in requests {
        calls.push(waiting(manager, request.clone()));
        wait_until_queued(nodes, KEY, calls.len()).await;
    }
    calls
}

#[tokio::test]
async fn permissions_of_the_guide_are_sufficient_for_shared_locks() {
    let nodes = Nodes::start(1).await;
    let manager = user(&nodes, "").await;
    let guards = [
        manager.acquire(LockRequest::shared(KEY)).await.unwrap(),
        manager.try_acquire(LockRequest::shared(KEY)).await.unwrap(),
    ];
    let shared = || super::reader();
    let mut calls = wait_for(&manager, &nodes, &[patient(KEY), shared(), shared()]).await.into_iter();
    assert!(guards.iter().all(LockGuard::is_held));
    drop(guards);
    let alone = obtained(calls.next().unwrap()).await;
    alone.extend().await.unwrap();
    alone.downgrade();
    for call in calls {
        let guard = obtained(call).await;
        guard.extend().await.unwrap();
        let taken_up = manager.attach(guard.detach()).await.unwrap();
        taken_up.release().await.unwrap();
    }
    alone.release().await.unwrap();
    // Permits need no further rules.
    let permit = manager.acquire(LockRequest::new(KEY).permits(2)).await.unwrap();
    permit.extend().await.unwrap();
    permit.release().await.unwrap();
    assert!(manager.shutdown().await, "{:?}", manager.stats().releases);
    nodes.assert_empty(PATIENCE).await;
    let log: Vec<redis::Value> = nodes[0].inspect().command(&["ACL", "LOG"]).await;
    let refused = format!("{log:?}");
    // Optional commands at the start of a connection may be refused, but not these.
    assert!(!refused.contains("\"zscore\"") && !refused.contains("\"zcount\""), "{refused}");
}

async fn wait_until_there(nodes: &Nodes, name: &str) {
    let there = || async { nodes[0].inspect().command::<usize>(&["EXISTS", name]).await };
    eventually_eq(PATIENCE, name, 1, there).await;
}

#[tokio::test]
async fn permits_of_a_hash_tagged_key_need_the_admission_lock_pattern() {
    const TAGGED: &str = "config:{7}";
    const QUEUES: &str = "~{*}:q:config*";
    const TURNSTILES: &str = "~{*}:t:config*";
    let guide = include_str!("../../../../redlock-runtime/docs/guide/production/server_settings.md");
    let row = guide.lines().find(|line| line.starts_with("| permits of keys with a closing brace |")).unwrap();
    assert!(row.contains(&TURNSTILES.replace("config", "order:")), "{row}");
    let nodes = Nodes::start(1).await;
    let permit = || patient(TAGGED).permits(1);
    let [ours, theirs] = [user(&nodes, &format!("{QUEUES} {TURNSTILES}")).await, managers(&nodes, 1).await.remove(0)];
    let held = theirs.acquire(permit()).await.unwrap();
    let first = waiting(&theirs, permit());
    wait_until_there(&nodes, "{7}:t:config:{7}").await;
    let second = waiting(&ours, permit());
    wait_until_there(&nodes, "{7}:q:{7}:t:config:{7}").await;
    drop(held);
    drop(obtained(first).await);
    obtained(second).await.release().await.unwrap();
    // The remaining rules are enough for all other locks of the key.
    let restricted = user(&nodes, QUEUES).await;
    let error = restricted.acquire(permit()).await.unwrap_err();
    assert!(matches!(error, LockError::Refused { .. }), "{error:?}");
    restricted.acquire(LockRequest::shared(TAGGED)).await.unwrap().release().await.unwrap();
    restricted.acquire(TAGGED).await.unwrap().release().await.unwrap();
    for manager in [ours, theirs, restricted] {
        assert!(manager.shutdown().await, "{:?}", manager.stats().releases);
    }
    nodes.assert_empty(PATIENCE).await;
}

#[tokio::test]
async fn revoked_shared_lock_permission_keeps_held_locks() {
    let nodes = Nodes::start(1).await;
    let theirs = crate::support::manager(&nodes).await;
    let ours = user(&nodes, "").await;
    let held = ours.acquire(LockRequest::all([LockPart::shared(KEY), "config:other".into()])).await.unwrap();
    let other = theirs.acquire(super::reader()).await.unwrap();
    let inspector = nodes[0].inspect();
    for command in ["time", "zcount", "zscore"] {
        inspector.command::<()>(&["ACL", "SETUSER", "alice", &format!("-{command}")]).await;
        let error = held.extend().await.unwrap_err();
        assert!(matches!(error, LockError::Refused { .. }), "{command}: {error:?}");
        assert_eq!(inspector.share_count(KEY).await, 2, "{command}: its share, and that of the other");
        assert!(held.is_held());
        inspector.command::<()>(&["ACL", "SETUSER", "alice", &format!("+{command}")]).await;
        held.extend().await.unwrap();
    }
    inspector.command::<()>(&["ACL", "SETUSER", "alice", "-zscore"]).await;
    held.release().await.unwrap();
    other.release().await.unwrap();
    nodes.assert_empty(PATIENCE).await;
}

#[tokio::test]
async fn admission_of_readers_never_leaves_a_set_without_expiry() {
    for is_given_back in [true, false] {
        let nodes = Nodes::start(1).await;
        let ours = user(&nodes, "").await;
        let theirs = crate::support::manager(&nodes).await;
        let held = ours.acquire(KEY).await.unwrap();
        let calls = wait_for(&theirs, &nodes, &[super::reader()]).await;
        if is_given_back {
            // The server refuses a part of the release.
            let _ = held.release().await;
        } else {
            held.downgrade();
            let _ = held.extend().await;
            let shares = nodes[0].inspect().shares(KEY).await;
            let has_it = shares.iter().any(|(token, _)| token == held.token().as_str());
            assert!(has_it && held.is_held(), "it keeps its share");
        }
        assert_ne!(nodes[0].inspect().pttl(KEY).await, -1, "{is_given_back}");
        drop(held);
        for call in calls {
            obtained(call).await.release().await.unwrap();
        }
        for manager in [ours, theirs] {
            manager.shutdown().await;
        }
    }
}

#[tokio::test]
async fn downgrade_without_permission_to_remove_waiters_does_not_block_the_server() {
    let nodes = Nodes::start(1).await;
    let ours = user(&nodes, "").await;
    let theirs = crate::support::manager(&nodes).await;
    let held = ours.acquire(KEY).await.unwrap();
    let calls = wait_for(&theirs, &nodes, &[super::reader()]).await;
    nodes[0].inspect().command::<()>(&["ACL", "SETUSER", "alice", "-zrem"]).await;
    held.downgrade();
    let _ = held.extend().await;
    assert_eq!(nodes[0].inspect().command::<String>(&["PING"]).await, "PONG");
    nodes[0].inspect().command::<()>(&["ACL", "SETUSER", "alice", "+zrem"]).await;
    drop(held);
    for call in calls {
        obtained(call).await.release().await.unwrap();
    }
}
