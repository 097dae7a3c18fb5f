//! Several keys, with nodes that are frozen, killed or restarted empty.

use super::{TTL, all, brief, place};
use crate::support::{BRIEF, assert_nothing_left, builder, connected, known_everywhere, majority};
use crate::waiters::{assert_all_gone, obtained, waiting};
use redlock_runtime::{LockError, LockGuard, LockPart, LockRequest, LossCause, Wait};
use redlock_tests::{Nodes, PATIENCE, RedisServer};
use std::time::Instant;
use tokio::time::{sleep, timeout};

#[tokio::test]
async fn lock_for_several_keys_survives_a_frozen_minority() {
    for (size, frozen) in [(3, 1), (5, 2)] {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = [brief(&nodes).await, brief(&nodes).await];
        let held = ours.acquire(all(["a", "b"])).await.unwrap();
        nodes[..frozen].iter().for_each(RedisServer::freeze);
        let calls = [waiting(&theirs, all(["b", "c"])), waiting(&ours, all(["c", "a"]))];
        sleep(2 * TTL).await;
        assert!(held.is_held() && calls.iter().all(|call| !call.is_finished()));
        held.release().await.unwrap();
        let [one, other] = calls;
        let work = async |call| obtained(call).await.release().await.unwrap();
        tokio::join!(work(one), work(other));
        nodes[..frozen].iter().for_each(RedisServer::thaw);
        assert_all_gone(&ours, &nodes).await;
        assert_all_gone(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn lock_for_a_path_is_lost_on_a_frozen_majority() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let manager = brief(&nodes).await;
        let held = manager.acquire(place("/A/C")).await.unwrap();
        nodes[..majority(size)].iter().for_each(RedisServer::freeze);
        let error = timeout(PATIENCE, held.lost()).await.expect("its lease ends");
        let LockError::Lost { cause, .. } = error else { panic!("{error:?}") };
        assert!(matches!(cause, LossCause::NotRenewed { .. }), "{cause:?}");
        nodes[..majority(size)].iter().for_each(RedisServer::thaw);
        drop(held);
        nodes.assert_empty(PATIENCE).await;
        assert_nothing_left(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn vote_of_a_flushed_node_is_restored_for_every_key() {
    let nodes = Nodes::start(3).await;
    let manager = brief(&nodes).await;
    let held = manager.acquire(all(["a", "b"])).await.unwrap();
    nodes[0].inspect().flush_all().await;
    redlock_tests::eventually_eq(PATIENCE, "it has both again", true, async || {
        let [a, b] = [nodes[0].inspect().get("a").await, nodes[0].inspect().get("b").await];
        [a, b].iter().all(|value| value.as_deref() == Some(held.token().as_str()))
    })
    .await;
    assert!(held.is_held());
    held.release().await.unwrap();
    assert_all_gone(&manager, &nodes).await;
}

#[tokio::test]
async fn lock_for_several_keys_survives_script_flushes() {
    let nodes = Nodes::start(3).await;
    let manager = brief(&nodes).await;
    for _ in 0..3 {
        nodes.flush_scripts().await;
        let held = manager.acquire(all(["a", "b"])).await.unwrap();
        nodes.flush_scripts().await;
        held.extend().await.unwrap();
        let call = waiting(&manager, place("/A/C"));
        nodes.flush_scripts().await;
        held.release().await.unwrap();
        obtained(call).await.release().await.unwrap();
    }
    assert_all_gone(&manager, &nodes).await;
}

/// Held request, and requests that it excludes. The last of these is also tried by a waiting call.
type Kind = (fn() -> LockRequest, fn() -> Vec<LockRequest>);

const KINDS: [Kind; 3] = [
    (|| all(["a", "b"]), || vec!["a".into(), "b".into(), all(["x", "b"])]),
    (|| all([LockPart::shared("c"), "d".into()]), || vec!["c".into(), LockRequest::shared("d"), all(["c", "y"])]),
    (|| place("/A/C"), || vec![LockRequest::path("/A/C/D"), LockRequest::path("/A"), place("/A/C")]),
];

/// Holds several keys and a path while `strike` hits one of several nodes. Checks that the holders and the excluded calls see no
/// difference.
async fn are_held_although(strike: impl AsyncFn(&RedisServer)) {
    for size in [3, 5] {
        let nodes = Nodes::start(size).await;
        // Short, because an abstaining node waits for the longest ttl.
        let brief = || builder(nodes.urls()).node_timeout(BRIEF).default_ttl(TTL).tuning(|tuning| tuning.max_ttl(TTL));
        let (ours, theirs) = (connected(brief(), &nodes).await, connected(brief(), &nodes).await);
        let mut held = Vec::new();
        for (request, _) in KINDS {
            held.push(known_everywhere(&ours, &nodes, request()).await);
        }
        strike(&nodes[0]).await;
        let calls = KINDS.map(|(_, others)| waiting(&theirs, others().pop().unwrap()));
        let begun = Instant::now();
        while begun.elapsed() < 3 * TTL {
            for other in KINDS.into_iter().flat_map(|(_, others)| others()) {
                let shown = format!("{other:?} on {size} nodes");
                theirs.acquire(other.wait(Wait::None)).await.expect_err(&shown);
            }
            assert!(held.iter().all(LockGuard::is_held), "{size} nodes");
            assert!(calls.iter().all(|call| !call.is_finished()), "{size} nodes");
            sleep(TTL / 20).await;
        }
        if !nodes[0].is_running() {
            nodes[0].restart_empty().await;
        }
        held.into_iter().for_each(drop);
        for call in calls {
            obtained(call).await.release().await.unwrap();
        }
        assert_all_gone(&ours, &nodes).await;
        assert_all_gone(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn several_keys_stay_held_after_a_node_is_killed() {
    // A manager that needs every node for the renewal of several keys, or that gives up because one is gone, would lose them.
    are_held_although(async |node| node.kill()).await;
}

#[tokio::test]
async fn several_keys_stay_held_after_a_node_is_flushed() {
    // A manager that takes "not yours" of one node for the loss would lose them.
    are_held_although(async |node| node.inspect().flush_all().await).await;
}

#[tokio::test]
async fn several_keys_stay_held_after_a_node_restarts_empty() {
    // A manager that takes an abstention for a refusal would count too few votes.
    are_held_although(async |node| node.restart_empty().await).await;
}
