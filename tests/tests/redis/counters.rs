//! The counters of the nodes, which may differ, expire or be lost.

use crate::fencing::{
    COUNTER, KEY, LARGEST, assert_only_counters_left, calls, counter, number, token, wait_until_free,
};
use crate::support::{barrier, manager};
use redlock_tests::{Nodes, PATIENCE, RedisServer, eventually_eq};

const DAY: i64 = 24 * 3600 * 1000;

async fn preset(node: &RedisServer, number: &str) {
    let counter = format!("00000000-0000-7000-8000-000000000000 {number}");
    node.inspect().command::<()>(&["SET", COUNTER, &counter]).await;
}

async fn are_alike(nodes: &Nodes) -> bool {
    let first = counter(&nodes[0]).await;
    for node in nodes.iter() {
        if counter(node).await != first {
            return false;
        }
    }
    true
}

#[tokio::test]
async fn a_node_without_its_data_is_made_equal_to_the_others() {
    let nodes = Nodes::start(3).await;
    let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
    for node in nodes.iter() {
        preset(node, "1000").await;
    }
    let before = token(&ours).await;
    eventually_eq(PATIENCE, "the last node has drawn, too", 1001, async || counter(&nodes[0]).await).await;
    nodes[0].inspect().flush_all().await;
    assert_eq!(number(token(&ours).await), number(before) + 1);
    eventually_eq(PATIENCE, "the node counts with the others", 1002, async || counter(&nodes[0]).await).await;
    // Another process does not know the number, and learns it from the two nodes that do.
    nodes[1].inspect().flush_all().await;
    assert!(number(token(&theirs).await) > 1002);
}

#[tokio::test]
async fn counters_that_differ_cost_one_round_trip_more_until_they_are_alike() {
    const MOST_TRIES: usize = 20;
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    for (node, number) in nodes.iter().zip(["5", "9", "7"]) {
        preset(node, number).await;
    }
    let cost = async || {
        let before = calls(&nodes, "evalsha").await;
        let guard = manager.acquire_fenced(KEY).await.unwrap();
        let acquired = calls(&nodes, "evalsha").await;
        let token = guard.fencing_token();
        guard.release().await.unwrap();
        wait_until_free(&nodes).await;
        (number(token), acquired - before)
    };
    let first = cost().await;
    // The node that is ahead is heard of at once, or in the round that raises the others, or too late.
    assert!([(10, 6), (10, 9), (8, 6)].contains(&first), "{first:?}");
    let mut numbers = vec![first.0];
    while !are_alike(&nodes).await {
        let (number, commands) = cost().await;
        assert!([3, 6, 9].contains(&commands), "{number} by {commands} commands");
        numbers.push(number);
        assert!(numbers.len() < MOST_TRIES, "never alike: {numbers:?}");
    }
    for _ in 0..3 {
        let (number, commands) = cost().await;
        assert_eq!(commands, 3, "one command for each node");
        numbers.push(number);
    }
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    assert_only_counters_left(&manager, &nodes).await;
}

#[tokio::test]
async fn a_counter_that_has_expired_starts_again_above_all_others() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let before = token(&manager).await;
    barrier(&nodes).await;
    for node in nodes.iter() {
        let left = node.inspect().pttl(COUNTER).await;
        assert!((30 * DAY..=31 * DAY).contains(&left), "{left} ms");
        assert_eq!(node.inspect().pttl(LARGEST).await, -1);
        node.inspect().command::<()>(&["SET", LARGEST, "1000"]).await;
        node.inspect().command::<()>(&["PEXPIRE", COUNTER, "1"]).await;
        eventually_eq(PATIENCE, "the counter is gone", 0, async || counter(node).await).await;
    }
    let after = token(&manager).await;
    assert!(number(before) < 1000 && number(after) == 1001, "{before} {after}");
}
