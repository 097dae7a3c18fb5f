//! Fencing numbers as ballots: their cost, and the effect of clock steps and lost data.

use crate::fencing::{KEY, REGISTER, assert_only_registers_left, number, register, token, token_of, wait_until_free};
use crate::support::{barrier, manager};
use redlock_runtime::{LockManager, LockRequest};
use redlock_tests::{Nodes, PATIENCE, RedisServer, eventually_eq};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Key in another hash slot.
const OTHER_KEY: &str = "{user1000}.following";

const HOUR: u64 = 3_600_000 * 64;

/// Sets the register as if the ballot had been accepted.
async fn preset(node: &RedisServer, ballot: u64) {
    node.inspect().command::<()>(&["ZADD", REGISTER, &ballot.to_string(), "n"]).await;
}

/// Acquires the lock. Returns its number, and the number of scripts that each node ran for it: zero without a separate round.
async fn cost(manager: &LockManager, nodes: &Nodes) -> (u64, u64) {
    let before = nodes[0].inspect().calls("evalsha").await;
    let guard = manager.acquire(LockRequest::new(KEY).fencing()).await.unwrap();
    barrier(nodes).await;
    let rounds = nodes[0].inspect().calls("evalsha").await - before;
    let number = number(guard.fencing_token());
    guard.release().await.unwrap();
    wait_until_free(nodes).await;
    (number, rounds)
}

/// At first, a manager estimates the servers' clocks from a few slow answers. Refusals correct the estimates within some turns.
#[tokio::test]
async fn fencing_number_is_granted_in_the_round_that_acquires_the_lock() {
    for size in [1, 5] {
        let nodes = Nodes::start(size).await;
        let managers = [manager(&nodes).await, manager(&nodes).await];
        let (mut numbers, turns) = (Vec::new(), 1000);
        let before = nodes[0].inspect().calls("evalsha").await;
        for turn in 0..turns {
            let guard = managers[turn % 2].acquire(LockRequest::new(KEY).fencing()).await.unwrap();
            numbers.push(number(guard.fencing_token()));
            guard.release().await.unwrap();
        }
        barrier(&nodes).await;
        // A release is one script. Every other script is an additional round.
        let rounds = nodes[0].inspect().calls("evalsha").await - before - turns as u64;
        assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
        assert!(rounds <= turns as u64 / 20, "{rounds} of {turns} turns took a further round on {size} nodes");
    }
}

#[tokio::test]
async fn refused_fencing_number_costs_one_extra_round_once() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let first = number(token(&manager).await);
    // Simulates a server clock that was half an hour ahead.
    let ahead = first + HOUR / 2;
    for node in nodes.iter() {
        preset(node, ahead).await;
    }
    wait_until_free(&nodes).await;
    let (number, rounds) = cost(&manager, &nodes).await;
    assert!(number > ahead && rounds == 1, "{number} {rounds}");
    // The register of one slot does not affect another slot.
    let before = nodes[0].inspect().calls("evalsha").await;
    let other = manager.acquire(LockRequest::new(OTHER_KEY).fencing()).await.unwrap();
    barrier(&nodes).await;
    assert_eq!(nodes[0].inspect().calls("evalsha").await, before);
    assert!((first..ahead).contains(&self::number(other.fencing_token())));
}

#[tokio::test]
async fn emptied_node_accepts_the_fencing_number_of_the_other_nodes() {
    let nodes = Nodes::start(3).await;
    let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
    let before = token(&ours).await;
    wait_until_free(&nodes).await;
    nodes[0].inspect().flush_all().await;
    let (after, _) = cost(&theirs, &nodes).await;
    assert!(after > number(before), "{before} {after}");
    eventually_eq(PATIENCE, "the node has accepted it, too", after, async || register(&nodes[0]).await).await;
}

/// A new manager estimates the servers' clocks too low by at most the time that connecting took. Without registers, nothing corrects
/// the estimate, so its numbers are above those from before only after that time.
#[tokio::test]
async fn fencing_numbers_keep_increasing_after_all_data_is_lost() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let before = token(&manager(&nodes).await).await;
        for node in nodes.iter() {
            node.inspect().flush_all().await;
        }
        let connecting = Instant::now();
        let after_the_loss = manager(&nodes).await;
        let estimate_error = connecting.elapsed();
        // Numbers may also be ahead of the clocks by a millisecond.
        tokio::time::sleep(estimate_error + Duration::from_millis(2)).await;
        assert!(before < token(&after_the_loss).await);
    }
}

#[tokio::test]
async fn damaged_register_of_one_server_does_not_raise_other_registers() {
    let nodes = Nodes::start(3).await;
    let managers = [manager(&nodes).await, manager(&nodes).await];
    // Simulates a user with write access to the registers of one server.
    for damaged in [(1_u64 << 49) - 3, 1 << 46] {
        preset(&nodes[0], damaged).await;
        nodes[0].inspect().command::<()>(&["SET", "redlock:fence", &damaged.to_string()]).await;
        let mut numbers = Vec::new();
        for turn in 0..6 {
            numbers.push(number(token(&managers[turn % 2]).await));
            wait_until_free(&nodes).await;
        }
        assert!(numbers.is_sorted_by(|a, b| a < b) && numbers.iter().all(|number| *number < 1 << 45), "{numbers:?}");
        for node in &nodes[1..] {
            assert!(register(node).await < 1 << 45, "it was raised");
        }
    }
}

#[tokio::test]
async fn fencing_numbers_ahead_of_the_clocks_count_if_a_quorum_returns_them() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let first = number(token(&manager).await);
    wait_until_free(&nodes).await;
    // The clocks of all servers were set back by 30 days.
    for node in &nodes[..2] {
        preset(node, first + 30 * 24 * HOUR).await;
    }
    for _ in 0..3 {
        assert!(number(token(&manager).await) > first + 30 * 24 * HOUR);
        wait_until_free(&nodes).await;
    }
}

#[tokio::test]
async fn exhausted_register_fails_the_call_only_at_a_majority() {
    for full in [(1 << 49) - 1, 1 << 49, 1 << 60] {
        let nodes = Nodes::start(3).await;
        let manager = manager(&nodes).await;
        preset(&nodes[0], full).await;
        for _ in 0..3 {
            token(&manager).await;
        }
        preset(&nodes[1], full).await;
        let error = manager.acquire(LockRequest::new(KEY).fencing()).await.unwrap_err();
        assert!(error.to_string().contains("without a fencing number"), "{error}");
        assert_only_registers_left(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn fencing_registers_are_shared_by_all_keys_of_a_slot() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let mut locking = JoinSet::new();
    for task in 0..100 {
        let manager = manager.clone();
        locking.spawn(async move {
            for name in 0..200 {
                token_of(&manager, format!("order:{task}:{name}")).await;
            }
        });
    }
    locking.join_all().await;
    let keys: u64 = nodes[0].inspect().command(&["DBSIZE"]).await;
    assert!((10_000..=16_384).contains(&keys), "{keys} registers");
    assert_only_registers_left(&manager, &nodes).await;
}
