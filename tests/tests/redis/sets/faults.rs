//! Several keys, and nodes that are frozen, killed or forget.

use super::{TTL, all, brief, place};
use crate::support::{assert_nothing_left, majority};
use crate::waiters::{assert_all_gone, obtained, waiting};
use redlock_runtime::{LockError, LossCause};
use redlock_tests::{Nodes, PATIENCE, RedisServer};
use tokio::time::{sleep, timeout};

#[tokio::test]
async fn a_frozen_minority_changes_nothing() {
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
async fn the_body_is_stopped_when_a_majority_is_frozen() {
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
async fn a_node_that_forgets_is_won_back_at_every_key() {
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
async fn servers_that_lose_their_scripts_get_them_again() {
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
