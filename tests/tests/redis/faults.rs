//! Nodes that freeze, refuse, die and come back empty.

use crate::support::{
    BRIEF, GENEROUS, acquired_everywhere, assert_nothing_left, builder, causes, connected, holders, manager_through,
    wait_until_all_vote,
};
use redlock_runtime::{LockError, LockManager, LockRequest, NodeError, Wait};
use redlock_tests::{Flow, Nodes, PATIENCE, Proxy, RedisServer, eventually};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const KEY: &str = "order:7";

#[derive(Clone, Copy, Debug)]
enum Fault {
    Frozen,
    /// Connections are cut, and new ones are refused.
    Refused,
    Killed,
    RestartedEmpty,
}

impl Fault {
    const ALL: [Self; 4] = [Self::Frozen, Self::Refused, Self::Killed, Self::RestartedEmpty];

    async fn strike(self, node: &RedisServer, proxy: &Proxy) {
        match self {
            Self::Frozen => node.freeze(),
            Self::Refused => {
                proxy.refuse(true).await;
                proxy.cut().await;
            }
            Self::Killed => node.kill(),
            Self::RestartedEmpty => node.restart_empty().await,
        }
    }

    async fn heal(self, node: &RedisServer, proxy: &Proxy) {
        match self {
            Self::Frozen => node.thaw(),
            Self::Refused => proxy.refuse(false).await,
            Self::Killed => node.restart_empty().await,
            Self::RestartedEmpty => {}
        }
    }
}

/// Holds a lock on five nodes behind proxies, while `count` of them suffer `fault`.
async fn minority_fails_while_held(fault: Fault, count: usize) {
    println!("{fault:?}: {count} of 5");
    let nodes = Nodes::start(5).await;
    let proxies = nodes.proxied().await;
    let (ours, theirs) = (manager_through(&proxies, &nodes).await, manager_through(&proxies, &nodes).await);
    let guard = acquired_everywhere(&ours, &nodes, KEY).await;
    for i in 0..count {
        fault.strike(&nodes[i], &proxies[i]).await;
    }
    assert!(guard.is_held());
    let error = theirs.try_acquire(KEY).await.unwrap_err();
    assert!(error.is_contended(), "{error}");
    guard.extend().await.unwrap();
    guard.release().await.unwrap();
    let again = theirs.acquire(KEY).await.unwrap();
    drop(again);
    for i in 0..count {
        fault.heal(&nodes[i], &proxies[i]).await;
    }
    assert!(theirs.shutdown().await, "a release was not answered");
    assert_nothing_left(&ours, &nodes).await;
}

#[tokio::test]
async fn lock_survives_one_failing_node_of_five() {
    for fault in Fault::ALL {
        minority_fails_while_held(fault, 1).await;
    }
}

#[tokio::test]
async fn lock_survives_two_failing_nodes_of_five() {
    for fault in Fault::ALL {
        minority_fails_while_held(fault, 2).await;
    }
}

#[tokio::test]
async fn unreachable_minority_does_not_delay_calls_for_different_keys() {
    // Defects 1 and 2: connecting to a dead node under a lock that all callers need, one after the other.
    let nodes = Nodes::start(5).await;
    nodes[0].freeze();
    nodes[1].kill();
    let manager = builder(nodes.urls()).build().unwrap();
    let mut calls = JoinSet::new();
    for i in 0..8 {
        let manager = manager.clone();
        calls.spawn(async move { manager.acquire(i.to_string()).await.unwrap().release().await.unwrap() });
    }
    tokio::time::timeout(GENEROUS, calls.join_all()).await.expect("no call waits for a node");
    nodes[0].thaw();
    nodes[1].restart_empty().await;
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn frozen_minority_adds_no_latency() {
    // Defect 1: one node timeout for each acquisition, because of a wait for the slowest node.
    for (size, frozen) in [(3, 1), (5, 2)] {
        let nodes = Nodes::start(size).await;
        let manager = crate::support::manager(&nodes).await;
        nodes[..frozen].iter().for_each(RedisServer::freeze);
        for i in 0..50 {
            let rounds = async {
                let guard = manager.acquire(format!("order:{i}")).await.unwrap();
                guard.extend().await.unwrap();
                guard.release().await.unwrap();
            };
            // None of the three rounds has waited for the node timeout.
            tokio::time::timeout(GENEROUS / 2, rounds).await.expect("no round waits for the frozen nodes");
        }
        nodes[..frozen].iter().for_each(RedisServer::thaw);
        assert_nothing_left(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn frozen_majority_is_a_clear_error_within_the_wait() {
    // Defect 7: a wait that does not cover I/O. The node timeout is far longer than the wait here.
    for (size, frozen) in [(1, 1), (3, 2), (5, 3)] {
        let nodes = Nodes::start(size).await;
        let manager = crate::support::manager(&nodes).await;
        nodes[..frozen].iter().for_each(RedisServer::freeze);
        let wait = Duration::from_millis(200);
        let begun = Instant::now();
        let error = manager.acquire(LockRequest::new(KEY).wait(wait)).await.unwrap_err();
        assert!((wait / 2..GENEROUS).contains(&begun.elapsed()), "{:?}", begun.elapsed());
        let silent: Vec<_> = nodes[..frozen].iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
        let causes = causes(&error);
        // On a busy machine, the other nodes may be late as well.
        let is_named = |silent: &String| causes.iter().any(|(node, _)| node == silent);
        assert!(silent.iter().all(is_named), "{error}");
        assert!(causes.iter().all(|(_, cause)| matches!(cause, NodeError::TimedOut(_))), "{error}");
        assert!(error.to_string().starts_with("no quorum for \"order:7\""), "{error}");
        nodes[..frozen].iter().for_each(RedisServer::thaw);
        assert_nothing_left(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn unreachable_server_ends_the_call_before_the_wait_is_over() {
    for fault in [Fault::Frozen, Fault::Refused, Fault::Killed] {
        let nodes = Nodes::start(1).await;
        let proxies = nodes.proxied().await;
        let manager = connected(builder([proxies[0].url()]).node_timeout(BRIEF), &nodes).await;
        fault.strike(&nodes[0], &proxies[0]).await;
        let acquiring = manager.acquire(LockRequest::new(KEY).wait(3 * PATIENCE));
        let outcome = tokio::time::timeout(PATIENCE, acquiring).await.expect("long before the end of the wait");
        let error = outcome.unwrap_err();
        assert!(matches!(error, LockError::NoQuorum { .. }), "{fault:?}: {error:?}");
        fault.heal(&nodes[0], &proxies[0]).await;
        assert_nothing_left(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn no_quorum_error_names_each_node_and_its_cause() {
    let nodes = Nodes::start(3).await;
    let proxy = Proxy::to(&nodes[1]).await;
    let urls = [nodes[0].url(), proxy.url(), nodes[2].url()];
    let manager = connected(builder(urls).node_timeout(BRIEF), &nodes).await;
    let accepted = proxy.traffic().accepted;
    nodes[1].kill();
    proxy.wait_until("the manager connects again", |traffic| traffic.accepted > accepted).await;
    nodes[0].freeze();
    let error = manager.try_acquire(KEY).await.unwrap_err();
    let message = error.to_string();
    let expected = [
        "2 of 3 nodes needed, 1 agreed".to_owned(),
        format!("127.0.0.1:{}: no answer within 1s", nodes[0].port()),
        format!("{}: not connected: ", proxy.address()),
    ];
    assert!(expected.iter().all(|part| message.contains(part)), "{message}");
    nodes[0].thaw();
    nodes[1].restart_empty().await;
    wait_until_all_vote(&manager, &nodes).await;
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn contention_is_reported_even_if_the_last_reply_decides_it() {
    let nodes = Nodes::start(3).await;
    let proxies = nodes.proxied().await;
    let manager = manager_through(&proxies, &nodes).await;
    let accepted = proxies[0].traffic().accepted;
    nodes[0].kill();
    proxies[0].wait_until("the manager connects again", |traffic| traffic.accepted > accepted).await;
    for node in &nodes[1..] {
        node.inspect().command::<()>(&["SET", KEY, "another", "PX", "60000"]).await;
    }
    let before = proxies[2].traffic().replies.received;
    proxies[2].replies(Flow::Hold);
    let trying = tokio::spawn({
        let manager = manager.clone();
        async move { manager.try_acquire(KEY).await }
    });
    proxies[2].wait_until("the last answer is held", |traffic| traffic.replies.received > before).await;
    // The other answers have arrived before. Each round trip gives the manager time to decide too early.
    for _ in 0..20 {
        crate::support::barrier(&nodes).await;
    }
    proxies[2].pass();
    let error = trying.await.unwrap().unwrap_err();
    assert!(matches!(error, LockError::Contended { .. }), "{error:?}");
}

async fn wait_until_refused_as_stalled(manager: &LockManager) {
    eventually(PATIENCE, "the node is known to be stalled", async || {
        let error = manager.try_acquire(KEY).await.unwrap_err();
        let is_stalled = matches!(causes(&error)[..], [(_, NodeError::Stalled(_))]);
        if is_stalled { Ok(()) } else { Err(error) }
    })
    .await;
}

#[tokio::test]
async fn stalled_node_receives_no_commands_until_it_answers_again() {
    let nodes = Nodes::start(1).await;
    let proxies = nodes.proxied().await;
    let manager = connected(builder([proxies[0].url()]).node_timeout(BRIEF), &nodes).await;
    nodes[0].freeze();
    wait_until_refused_as_stalled(&manager).await;
    // A second connection, which checks the silent one, sends bytes as well.
    let commands = || manager.stats().nodes[0].commands;
    let before = commands();
    for _ in 0..20 {
        let error = manager.try_acquire(KEY).await.unwrap_err();
        assert!(matches!(error, LockError::NoQuorum { .. }), "{error:?}");
    }
    assert_eq!(commands(), before, "a refusal sends nothing");
    nodes[0].thaw();
    wait_until_all_vote(&manager, &nodes).await;
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn waiter_acquires_after_the_only_node_restarts() {
    let nodes = Nodes::start(1).await;
    let manager = crate::support::manager(&nodes).await;
    nodes[0].kill();
    let waiting = tokio::spawn({
        let manager = manager.clone();
        async move { manager.acquire(LockRequest::new(KEY).wait(Wait::Forever)).await }
    });
    // A call with a time limit has given up on the server after this time.
    let error = manager.acquire(LockRequest::new(KEY).wait(PATIENCE)).await.unwrap_err();
    assert!(matches!(causes(&error)[..], [(_, NodeError::Unreachable(_))]), "{error:?}");
    assert!(!waiting.is_finished());
    nodes[0].restart_empty().await;
    let guard = tokio::time::timeout(PATIENCE, waiting).await.unwrap().unwrap().unwrap();
    assert_eq!(holders(&nodes, &guard).await, 1);
    drop(guard);
    assert_nothing_left(&manager, &nodes).await;
}
