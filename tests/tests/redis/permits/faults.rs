//! Permits, with nodes and processes that are frozen, killed, cut off or restarted empty (defect 23 of peers).

use super::entering::entered_everywhere;
use super::{KEY, TTL, brief, permit};
use crate::support::{BRIEF, assert_nothing_left, builder};
use crate::waiters::{assert_all_gone, obtained, waiting};
use redlock_runtime::{LockGuard, Wait};
use redlock_tests::{Nodes, PATIENCE, RedisServer, eventually, eventually_eq};
use std::env;
use std::process::Stdio;
use tokio::process::Command;
use tokio::time::sleep;

/// Variable with the addresses of the nodes, for the second process.
const TOLD: &str = "REDLOCK_TESTS_PERMITS";

/// Returns the remaining time of the entries at a node, the longest first.
async fn entries(node: &RedisServer) -> Vec<u64> {
    let shares = node.inspect().shares(KEY).await;
    shares.into_iter().map(|(_, left)| u64::try_from(left).unwrap_or(0)).collect()
}

#[tokio::test]
async fn permit_waiter_killed_while_waiting_keeps_no_permit() {
    let long = 2 * PATIENCE;
    if let Ok(urls) = env::var(TOLD) {
        let manager = builder(urls.split(',')).default_ttl(long).build().unwrap();
        let _guard = manager.acquire(permit(1)).await;
        return;
    }
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let ours = brief(&nodes).await;
        let held = entered_everywhere(&ours, &nodes, permit(1)).await;
        let mut process = Command::new(env::current_exe().unwrap());
        let test = "permits::faults::permit_waiter_killed_while_waiting_keeps_no_permit";
        process.args(["--exact", test]).env(TOLD, nodes.urls().join(","));
        let mut process = process.stdout(Stdio::null()).kill_on_drop(true).spawn().unwrap();
        for node in nodes.iter() {
            // The entry must not outlive the admission lock, which lasts for five seconds.
            let is_brief = async || match entries(node).await.as_slice() {
                [longest, _] if *longest <= 5000 => Ok(()),
                entries => Err(entries.to_vec()),
            };
            eventually(PATIENCE, "it waits, with an entry that ends soon", is_brief).await;
        }
        process.kill().await.unwrap();
        drop(held);
        drop(obtained(waiting(&ours, permit(1))).await);
        nodes.assert_empty(PATIENCE).await;
        assert_nothing_left(&ours, &nodes).await;
    }
}

#[tokio::test]
async fn permit_of_a_killed_process_is_free_after_its_ttl() {
    // Redisson #2045 and Curator 595: the permit never came back.
    if let Ok(urls) = env::var(TOLD) {
        let manager = builder(urls.split(',')).node_timeout(BRIEF).default_ttl(TTL).build().unwrap();
        let _guard = manager.acquire(permit(2)).await;
        sleep(3 * PATIENCE).await;
    }
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let ours = brief(&nodes).await;
        let held = ours.acquire(permit(2)).await.unwrap();
        let mut process = Command::new(env::current_exe().unwrap());
        let test = "permits::faults::permit_of_a_killed_process_is_free_after_its_ttl";
        process.args(["--exact", test]).env(TOLD, nodes.urls().join(","));
        let mut process = process.stdout(Stdio::null()).kill_on_drop(true).spawn().unwrap();
        // Checks a majority only: the process enters at the nodes to which it is connected.
        eventually(PATIENCE, "it has a permit", async || {
            let mut entered = 0;
            for node in nodes.iter() {
                entered += usize::from(node.inspect().share_count(KEY).await == 2);
            }
            if entered > size / 2 { Ok(()) } else { Err(entered) }
        })
        .await;
        let call = waiting(&ours, permit(2));
        process.kill().await.unwrap();
        // No message announces the end of a lease.
        drop((obtained(call).await, held));
        assert_all_gone(&ours, &nodes).await;
    }
}

#[tokio::test]
async fn permits_are_granted_and_renewed_with_a_frozen_minority() {
    for (size, frozen) in [(3, 1), (5, 2)] {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = [brief(&nodes).await, brief(&nodes).await];
        let one = ours.acquire(permit(2)).await.unwrap();
        nodes[..frozen].iter().for_each(RedisServer::freeze);
        let two = theirs.acquire(permit(2)).await.unwrap();
        assert!(theirs.try_acquire(permit(2).wait(Wait::None)).await.is_err(), "{size} nodes");
        sleep(3 * TTL).await;
        assert!([&one, &two].into_iter().all(LockGuard::is_held), "{size} nodes");
        let third = waiting(&ours, permit(2));
        drop(one);
        drop((obtained(third).await, two));
        nodes[..frozen].iter().for_each(RedisServer::thaw);
        nodes.assert_empty(PATIENCE).await;
        assert_nothing_left(&ours, &nodes).await;
        assert_nothing_left(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn permits_and_their_limit_survive_a_flushed_node() {
    for size in [3, 5] {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = [brief(&nodes).await, brief(&nodes).await];
        let first = entered_everywhere(&ours, &nodes, permit(2)).await;
        let held = [first, theirs.acquire(permit(2)).await.unwrap()];
        let has_both = async || {
            let mut having = 0;
            for node in nodes.iter() {
                having += usize::from(node.inspect().share_count(KEY).await == 2);
            }
            having
        };
        eventually_eq(PATIENCE, "every node knows both", size, has_both).await;
        nodes[0].inspect().command::<()>(&["FLUSHALL"]).await;
        for manager in [&ours, &theirs] {
            let error = manager.try_acquire(permit(2).wait(Wait::None)).await.unwrap_err();
            assert!(error.is_contended(), "{size} nodes: {error:?}");
        }
        let third = waiting(&ours, permit(2));
        sleep(3 * TTL).await;
        assert!(held.iter().all(LockGuard::is_held) && !third.is_finished(), "{size} nodes");
        drop(held);
        drop(obtained(third).await);
        assert_all_gone(&ours, &nodes).await;
        assert_all_gone(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn permit_is_lost_on_a_frozen_majority_and_stays_lost() {
    let nodes = Nodes::start(3).await;
    let manager = brief(&nodes).await;
    let held = manager.acquire(permit(1)).await.unwrap();
    nodes[..2].iter().for_each(RedisServer::freeze);
    eventually_eq(PATIENCE, "as it should be", false, || async { held.is_held() }).await;
    nodes[..2].iter().for_each(RedisServer::thaw);
    sleep(TTL).await;
    assert!(!held.is_held(), "others may have entered meanwhile");
    drop(held);
    nodes.assert_empty(PATIENCE).await;
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn lost_scripts_are_reloaded() {
    let nodes = Nodes::start(3).await;
    let manager = brief(&nodes).await;
    let held = manager.acquire(permit(2)).await.unwrap();
    for node in nodes.iter() {
        node.inspect().command::<()>(&["SCRIPT", "FLUSH"]).await;
    }
    manager.acquire(permit(2)).await.unwrap().release().await.unwrap();
    held.release().await.unwrap();
    assert_nothing_left(&manager, &nodes).await;
}
