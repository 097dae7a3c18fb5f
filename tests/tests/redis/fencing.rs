//! Fencing tokens are unique and increasing, whatever happens to a minority of the nodes (defect 26 of peers).

use crate::support::{SIZES, barrier, causes, manager, wait_until_queued};
use redlock_runtime::{FencingToken, LockError, LockManager, LockRequest, NodeError};
use redlock_tests::{Nodes, PATIENCE, RedisServer, eventually, eventually_eq};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;

pub(crate) const KEY: &str = "order:7";
/// Register in the slot of the key.
pub(crate) const REGISTER: &str = "redlock:f:{4438}";

fn request() -> LockRequest {
    LockRequest::new(KEY).wait(PATIENCE)
}

/// Returns the ballot that the nodes have accepted for a token: its upper bits.
pub(crate) fn number(token: FencingToken) -> u64 {
    token.as_u64() >> 14
}

pub(crate) async fn token(manager: &LockManager) -> FencingToken {
    token_of(manager, request()).await
}

pub(crate) async fn token_of(manager: &LockManager, request: impl Into<LockRequest>) -> FencingToken {
    let guard = manager.acquire(request.into().fencing()).await.unwrap();
    let token = guard.fencing_token();
    guard.release().await.unwrap();
    token
}

/// Returns the largest ballot that `node` has accepted, 0 for none.
pub(crate) async fn register(node: &RedisServer) -> u64 {
    let score: Option<String> = node.inspect().command(&["ZSCORE", REGISTER, "n"]).await;
    score.map_or(0, |score| score.parse().expect("a whole number"))
}

/// Waits until the lock is free everywhere. A majority confirms a release, and the other nodes follow later.
pub(crate) async fn wait_until_free(nodes: &Nodes) {
    for node in nodes.iter() {
        eventually_eq(PATIENCE, "the lock is free", None, async || node.inspect().get(KEY).await).await;
    }
}

pub(crate) async fn calls(nodes: &Nodes, command: &str) -> u64 {
    barrier(nodes).await;
    let mut calls = 0;
    for node in nodes.iter() {
        calls += node.inspect().calls(command).await;
    }
    calls
}

/// Closes `manager`, and checks that only registers are left.
pub(crate) async fn assert_only_registers_left(manager: &LockManager, nodes: &Nodes) {
    manager.shutdown().await;
    barrier(nodes).await;
    let left = nodes.contents().await;
    let mut keys = left.values().flat_map(|keys| keys.keys());
    assert!(keys.all(|key| key.starts_with("redlock:f:{")), "left behind: {left:?}");
}

/// All tokens, in the order of their holders.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<FencingToken>>>);

impl Seen {
    fn add(&self, token: FencingToken) {
        self.0.lock().unwrap().push(token);
    }

    fn assert_increasing(&self, least: usize) {
        let seen = self.0.lock().unwrap();
        assert!(seen.len() >= least, "only {}", seen.len());
        assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
    }

    /// Runs several simultaneous calls of each of `managers`, `turns` times each.
    async fn contend(&self, managers: &[LockManager], turns: usize) {
        let mut contending = JoinSet::new();
        for manager in managers.iter().flat_map(|manager| [manager, manager]) {
            let (manager, seen) = (manager.clone(), self.clone());
            contending.spawn(async move {
                for _ in 0..turns {
                    let body = async |guard: &redlock_runtime::FencedGuard| {
                        seen.add(guard.fencing_token());
                        tokio::task::yield_now().await;
                        Ok::<_, LockError>(())
                    };
                    manager.with_lock(request().fencing(), body).await.unwrap();
                }
            });
        }
        contending.join_all().await;
    }
}

#[tokio::test]
async fn fencing_tokens_increase_under_contention() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let managers = [manager(&nodes).await, manager(&nodes).await, manager(&nodes).await];
        let seen = Seen::default();
        seen.contend(&managers, 20).await;
        seen.assert_increasing(120);
        for manager in &managers {
            assert_only_registers_left(manager, &nodes).await;
        }
    }
}

#[tokio::test]
async fn fencing_tokens_increase_after_a_minority_loses_its_data() {
    for size in [3, 5] {
        let nodes = Nodes::start(size).await;
        let managers = [manager(&nodes).await, manager(&nodes).await];
        let seen = Seen::default();
        seen.contend(&managers, 5).await;
        let minority = size / 2;
        nodes[..minority].iter().for_each(RedisServer::kill);
        seen.contend(&managers, 5).await;
        for node in &nodes[..minority] {
            node.restart_empty().await;
        }
        seen.contend(&managers, 5).await;
        seen.assert_increasing(60);
    }
}

#[tokio::test]
async fn write_with_a_stale_fencing_token_is_rejected() {
    let nodes = Nodes::start(3).await;
    let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
    let resource = RedisServer::start().await;
    let write = async |token: FencingToken, value: &str| -> i64 {
        let (script, token) = (redlock_runtime::FencedSet::SCRIPT, token.to_string());
        resource.inspect().command(&["EVAL", script, "2", "state", "fence", &token, value]).await
    };
    let stale = ours.acquire(request().without_renewal().fencing()).await.unwrap();
    assert_eq!(write(stale.fencing_token(), "first").await, 1);
    for node in nodes.iter() {
        // The lease ends early, without the knowledge of the holder.
        node.inspect().command::<()>(&["PEXPIRE", KEY, "1"]).await;
    }
    let later = theirs.acquire(request().fencing()).await.unwrap();
    assert!(stale.fencing_token() < later.fencing_token());
    assert_eq!(write(later.fencing_token(), "second").await, 1);
    assert_eq!(write(stale.fencing_token(), "too late").await, 0);
    assert_eq!(write(later.fencing_token(), "third").await, 1, "the latest may write again");
    assert_eq!(resource.inspect().get("state").await.as_deref(), Some("third"));
}

#[tokio::test]
async fn fencing_tokens_of_local_hand_offs_increase_without_a_command() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let manager = manager(&nodes).await;
        let held = manager.acquire(request().fencing()).await.unwrap();
        let first = held.fencing_token();
        let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(manager.acquire(request().fencing()))).collect();
        for next in &mut waiting {
            assert!(crate::support::polled(next.as_mut(), 1).await.is_none());
        }
        let before = calls(&nodes, "evalsha").await;
        let mut guard = held;
        for (next, passes) in waiting.into_iter().zip(1..) {
            drop(guard);
            guard = next.await.unwrap();
            assert_eq!(guard.fencing_token().as_u64(), first.as_u64() + passes);
        }
        assert_eq!(calls(&nodes, "evalsha").await, before);
        drop(guard);
        assert!(number(token(&manager).await) > number(first));
        assert_only_registers_left(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn fenced_call_gets_a_token_for_a_lock_handed_off_by_an_unfenced_call() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let before = token(&manager).await;
    let held = manager.acquire(request()).await.unwrap();
    let mut waiting = Box::pin(manager.acquire(request().fencing()));
    assert!(crate::support::polled(waiting.as_mut(), 1).await.is_none());
    let owner = *held.token();
    drop(held);
    let guard = waiting.await.unwrap();
    assert_eq!(*guard.token(), owner);
    assert!(guard.fencing_token() > before);
    drop(guard);
    assert_only_registers_left(&manager, &nodes).await;
}

#[tokio::test]
async fn queued_call_gets_its_fencing_token_without_an_extra_round() {
    const MOST_TRIES: usize = 10;
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
        let mut costs = Vec::new();
        // The release and the extension of the claim at each node, and no round trip for the number. A waiting call asks again every
        // second,
        // which may fall into one try and hardly into all of them.
        while costs.len() < MOST_TRIES && !costs.contains(&(2 * size as u64)) {
            let held = theirs.acquire(request().fencing()).await.unwrap();
            let ours = ours.clone();
            let waiting = tokio::spawn(async move { ours.acquire(request().fencing()).await });
            wait_until_queued(&nodes, KEY, 1).await;
            let before = calls(&nodes, "evalsha").await;
            held.release().await.unwrap();
            let guard = waiting.await.unwrap().unwrap();
            assert!(held.fencing_token() < guard.fencing_token());
            costs.push(calls(&nodes, "evalsha").await - before);
            guard.release().await.unwrap();
            wait_until_free(&nodes).await;
        }
        assert!(costs.len() < MOST_TRIES, "{costs:?} commands on {size} nodes");
    }
}

#[tokio::test]
async fn renewal_and_extension_do_not_raise_the_fencing_number() {
    // Defect 26: reentry and renewal bump the number.
    let nodes = Nodes::start(1).await;
    // With a shorter ttl, the node timeout would be too short for a busy machine.
    let manager = LockManager::builder().nodes(nodes.urls()).node_timeout(Duration::from_secs(2)).build().unwrap();
    let guard = manager.acquire(LockRequest::new(KEY).ttl(Duration::from_secs(6)).fencing()).await.unwrap();
    let accepted = register(&nodes[0]).await;
    for _ in 0..3 {
        guard.extend().await.unwrap();
    }
    let before = nodes[0].inspect().calls("evalsha").await;
    eventually(PATIENCE, "it is renewed twice", async || {
        let calls = nodes[0].inspect().calls("evalsha").await;
        if calls >= before + 2 { Ok(()) } else { Err(calls) }
    })
    .await;
    assert_eq!((register(&nodes[0]).await, number(guard.fencing_token())), (accepted, accepted));
    guard.release().await.unwrap();
    assert!(number(token(&manager).await) > accepted);
}

#[tokio::test]
async fn lock_is_released_if_no_fencing_number_can_be_granted() {
    // Another key has the name of the register, or the register has its largest value. It must not change.
    let table = [
        (&["SADD", REGISTER, "x"][..], "set"),
        (&["SET", REGISTER, "x"], "string"),
        (&["ZADD", REGISTER, "562949953421312", "n"], "zset"),
        (&["ZADD", REGISTER, "inf", "n"], "zset"),
        (&["RPUSH", REGISTER, "x"], "list"),
    ];
    for (foreign, kind) in table {
        let nodes = Nodes::start(3).await;
        let manager = manager(&nodes).await;
        for (node, is_enough) in nodes[..2].iter().zip([true, false]) {
            node.inspect().command::<()>(&["DEL", REGISTER]).await;
            node.inspect().command::<()>(foreign).await;
            match manager.try_acquire(LockRequest::new(KEY).fencing()).await {
                Ok(guard) => assert!(is_enough && guard.release().await.is_ok(), "{foreign:?}"),
                Err(error) => {
                    let without = |(_, cause): &(&str, &NodeError)| **cause == NodeError::FencingUnavailable;
                    let unnumbered = causes(&error).iter().filter(|cause| without(cause)).count();
                    assert!(!is_enough && unnumbered >= 2, "{foreign:?}: {error}");
                }
            }
            assert_eq!(node.inspect().command::<String>(&["TYPE", REGISTER]).await, kind);
        }
        manager.try_acquire(LockRequest::new("order:8").fencing()).await.unwrap().release().await.unwrap();
        manager.try_acquire(KEY).await.unwrap().release().await.unwrap();
        assert_only_registers_left(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn fenced_call_without_permission_for_registers_fails_and_leaves_no_lock() {
    let nodes = Nodes::start(1).await;
    let node = nodes[0].inspect();
    node.command::<()>(&["ACL", "SETUSER", "limited", "on", ">secret", "~{*", "~order:*", "~warm-up", "&*", "+@all"])
        .await;
    let url = nodes[0].url().replace("redis://", "redis://limited:secret@");
    let manager = crate::support::connected(crate::support::builder([url]), &nodes).await;
    let error = manager.try_acquire(LockRequest::new(KEY).fencing()).await.unwrap_err();
    // Redis: "one of the keys used as arguments"; Valkey: "a key".
    assert!(error.to_string().contains(" key"), "{error}");
    crate::support::assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn fenced_call_fails_without_a_quorum_and_releases_the_lock() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    nodes[..2].iter().for_each(RedisServer::kill);
    eventually(PATIENCE, "the nodes are missed", async || {
        match manager.try_acquire(LockRequest::new(KEY).fencing()).await {
            Err(LockError::NoQuorum { .. }) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    eventually_eq(PATIENCE, "the lock is given back", None, async || nodes[2].inspect().get(KEY).await).await;
}

#[tokio::test]
async fn fenced_try_at_a_held_lock_is_contended_and_does_not_queue() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
        let held = crate::support::acquired_everywhere(&theirs, &nodes, KEY).await;
        let error = ours.try_acquire(LockRequest::new(KEY).fencing()).await.unwrap_err();
        assert!(error.is_contended(), "{error}");
        barrier(&nodes).await;
        assert_eq!(nodes[0].inspect().get("{order:7}:q").await, None);
        held.release().await.unwrap();
        token(&ours).await;
        assert_only_registers_left(&ours, &nodes).await;
    }
}

#[tokio::test]
async fn fenced_call_reloads_scripts_after_a_script_flush() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let before = token(&manager).await;
    nodes.flush_scripts().await;
    assert!(before < token(&manager).await);
    assert_only_registers_left(&manager, &nodes).await;
}
