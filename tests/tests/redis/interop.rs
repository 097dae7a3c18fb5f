//! Other clients on the same key: both sides exclude each other.

use crate::support::{
    SHORT_WAIT, acquired_everywhere, assert_nothing_left, barrier, causes, manager, wait_until_queued,
};
use redlock_runtime::{LockError, LockRequest, NodeError};
use redlock_tests::{Nodes, PATIENCE, RedisServer, redis_cli};
use std::time::Duration;

const KEY: &str = "order:7";
const SET: [&str; 6] = ["SET", KEY, "their-token", "NX", "PX", "60000"];
const NIL: &str = "";

#[tokio::test]
async fn plain_set_by_redis_cli_excludes_our_lock() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let manager = manager(&nodes).await;
        for node in nodes.iter() {
            assert_eq!(redis_cli(node, &SET).await, "OK");
        }
        let error = manager.try_acquire(KEY).await.unwrap_err();
        assert!(matches!(error, LockError::Contended { .. }), "{error:?}");
        let error = manager.acquire(LockRequest::new(KEY).wait(SHORT_WAIT)).await.unwrap_err();
        assert!(
            matches!(error, LockError::TimedOut { waited, .. } if waited + Duration::from_millis(2) >= SHORT_WAIT),
            "{error:?}"
        );
        for node in nodes.iter() {
            assert_eq!(redis_cli(node, &["GET", KEY]).await, "their-token");
            assert_eq!(redis_cli(node, &["DEL", KEY]).await, "1");
        }
        manager.try_acquire(KEY).await.unwrap().release().await.unwrap();
        assert_nothing_left(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn waiter_does_not_change_the_value_of_another_client() {
    // Similar to a token: of the same length and with the same parts.
    const SIMILAR: &str = "2c1f0a8e-7f3b-4e55-9a41-d2c8b6f0e913@0f8fad5bd9cb469fa165708";
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    assert_eq!(redis_cli(&nodes[0], &["SET", KEY, SIMILAR, "NX", "PX", "60000"]).await, "OK");
    let call = tokio::spawn({
        let manager = manager.clone();
        async move { manager.acquire(LockRequest::new(KEY).wait(PATIENCE)).await }
    });
    wait_until_queued(&nodes, KEY, 1).await;
    assert_eq!(redis_cli(&nodes[0], &["GET", KEY]).await, SIMILAR);
    assert_eq!(redis_cli(&nodes[0], &["DEL", KEY]).await, "1");
    call.await.unwrap().unwrap().release().await.unwrap();
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn our_lock_excludes_a_plain_set_by_redis_cli() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let manager = manager(&nodes).await;
        let guard = acquired_everywhere(&manager, &nodes, KEY).await;
        for node in nodes.iter() {
            assert_eq!(redis_cli(node, &SET).await, NIL);
            assert_eq!(redis_cli(node, &["GET", KEY]).await, guard.token().as_str());
            assert!((1..=30_000).contains(&node.inspect().pttl(KEY).await), "it expires by itself");
        }
        guard.release().await.unwrap();
        assert_nothing_left(&manager, &nodes).await;
        for node in nodes.iter() {
            assert_eq!(redis_cli(node, &SET).await, "OK");
        }
    }
}

#[tokio::test]
async fn waiter_acquires_after_redis_cli_deletes_its_key() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    assert_eq!(redis_cli(&nodes[0], &SET).await, "OK");
    let waiting = tokio::spawn({
        let manager = manager.clone();
        async move { manager.acquire(LockRequest::new(KEY).wait(PATIENCE)).await }
    });
    assert_eq!(redis_cli(&nodes[0], &["DEL", KEY]).await, "1");
    waiting.await.unwrap().unwrap().release().await.unwrap();
    assert_nothing_left(&manager, &nodes).await;
}

async fn put_list(node: &RedisServer) {
    node.inspect().command::<()>(&["DEL", KEY]).await;
    node.inspect().command::<()>(&["RPUSH", KEY, "not", "a", "lock"]).await;
}

async fn assert_list(nodes: &Nodes) {
    barrier(nodes).await;
    for node in nodes.iter() {
        let list: Vec<String> = node.inspect().command(&["LRANGE", KEY, "0", "-1"]).await;
        assert_eq!(list, ["not", "a", "lock"]);
    }
}

#[tokio::test]
async fn key_of_another_type_is_treated_as_data_and_kept() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    for node in nodes.iter() {
        put_list(node).await;
    }
    let error = manager.try_acquire(KEY).await.unwrap_err();
    assert!(matches!(error, LockError::Refused { .. }), "{error:?}");
    assert!(causes(&error).iter().filter(|(_, cause)| **cause == NodeError::HoldsData).count() >= 2, "{error}");
    assert!(manager.shutdown().await);
    assert_list(&nodes).await;
}

#[tokio::test]
async fn lock_replaced_by_a_key_of_another_type_is_lost() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let guard = acquired_everywhere(&manager, &nodes, KEY).await;
    for node in nodes.iter() {
        put_list(node).await;
    }
    let error = guard.extend().await.unwrap_err();
    assert!(matches!(error, LockError::Lost { .. }), "extend: {error:?}");
    drop(guard);
    assert!(manager.shutdown().await);
    assert_list(&nodes).await;
}

#[tokio::test]
async fn release_of_a_lock_replaced_by_another_type_returns_lost() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let guard = acquired_everywhere(&manager, &nodes, KEY).await;
    for node in nodes.iter() {
        put_list(node).await;
    }
    let error = guard.release().await.unwrap_err();
    assert!(matches!(error, LockError::Lost { .. }), "release: {error:?}");
    assert!(manager.shutdown().await);
    assert_eq!(manager.stats().releases.not_owner, 3, "{:?}", manager.stats().releases);
    assert_list(&nodes).await;
}

/// Locks of other clients that are hashes, or that never expire. Their keys exclude us, and a call fails instead of waiting.
#[tokio::test]
async fn hash_and_string_without_expiry_are_treated_as_data() {
    let hash: &[&[&str]] = &[&["HSET", KEY, "client:1", "1"], &["PEXPIRE", KEY, "60000"]];
    let endless: &[&[&str]] = &[&["SET", KEY, "their-token", "NX"]];
    for commands in [hash, endless] {
        let nodes = Nodes::start(1).await;
        let manager = manager(&nodes).await;
        for command in commands {
            nodes[0].inspect().command::<()>(command).await;
        }
        let error = manager.acquire(KEY).await.unwrap_err();
        assert!(matches!(error, LockError::Refused { .. }), "{commands:?}: {error:?}");
        assert!(causes(&error).iter().all(|(_, cause)| **cause == NodeError::HoldsData), "{error}");
        assert!(manager.shutdown().await);
    }
}

/// A client that uses hashes receives WRONGTYPE for our lock.
#[tokio::test]
async fn hash_commands_on_our_lock_fail_with_wrongtype() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let guard = manager.acquire(KEY).await.unwrap();
    let error = nodes[0].inspect().try_command::<i64>(&["HEXISTS", KEY, "client:1"]).await.unwrap_err();
    assert!(error.to_string().contains("WRONGTYPE"), "{error}");
    guard.release().await.unwrap();
    assert_nothing_left(&manager, &nodes).await;
}

/// Clients that acquire by a script, as some do for several keys at once, and that compare before a release.
#[tokio::test]
async fn locks_by_set_scripts_and_our_locks_exclude_each_other() {
    const TAKE: &str = "if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end \
                        redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1";
    const GIVE_BACK: &str =
        "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let each = async |script: &str, expected: i64| {
        for node in nodes.iter() {
            let answer: i64 = node.inspect().command(&["EVAL", script, "1", KEY, "their-token", "60000"]).await;
            assert_eq!(answer, expected, "{script}");
        }
    };
    each(TAKE, 1).await;
    let error = manager.try_acquire(KEY).await.unwrap_err();
    assert!(matches!(error, LockError::Contended { .. }), "{error:?}");
    barrier(&nodes).await;
    each(GIVE_BACK, 1).await;
    let guard = acquired_everywhere(&manager, &nodes, KEY).await;
    each(TAKE, 0).await;
    each(GIVE_BACK, 0).await;
    guard.ensure_held().unwrap();
    guard.release().await.unwrap();
    barrier(&nodes).await;
    each(TAKE, 1).await;
    assert!(manager.shutdown().await);
}
