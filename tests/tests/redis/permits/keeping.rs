//! Lost votes of a permit are won back: a held permit stays held while nodes fail one after the other.

use super::entering::{entered_everywhere, wait_until_in_line};
use super::waiting::wait_until_in_admission;
use super::{KEY, TTL, brief, permit};
use crate::support::{BRIEF, assert_nothing_left, builder, connected, majority};
use crate::waiters::{assert_all_gone, obtained, waiting};
use redlock_runtime::{LockError, LockGuard, LockManager, Wait};
use redlock_tests::{Nodes, PATIENCE, Proxy, RedisServer, eventually_eq};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Returns a manager for which emptied nodes abstain for one short `max_ttl`.
async fn forgiving(nodes: &Nodes) -> LockManager {
    connected(builder(nodes.urls()).node_timeout(TTL / 4).default_ttl(TTL).tuning(|tuning| tuning.max_ttl(TTL)), nodes)
        .await
}

/// Returns `true` if the node knows the permit of `guard`.
async fn is_there(node: &RedisServer, guard: &LockGuard) -> bool {
    node.inspect().shares(KEY).await.iter().any(|(token, _)| token == guard.token().as_str())
}

async fn wait_until_everywhere(nodes: &Nodes, guards: &[&LockGuard]) {
    eventually_eq(PATIENCE, "each node knows the permits", nodes.len() * guards.len(), async || {
        let mut known = 0;
        for node in nodes.iter() {
            for guard in guards {
                known += usize::from(is_there(node, guard).await);
            }
        }
        known
    })
    .await;
}

/// Fails in two cases. If a lost permit is not requested again, the second restart takes the majority.
/// If a restored permit is invisible to others, a third call is admitted.
#[tokio::test]
async fn permits_survive_nodes_that_restart_empty_one_by_one() {
    let nodes = Nodes::start(3).await;
    let (ours, theirs) = (forgiving(&nodes).await, forgiving(&nodes).await);
    let mine = ours.acquire(permit(2)).await.unwrap();
    let other = theirs.acquire(permit(2)).await.unwrap();
    wait_until_everywhere(&nodes, &[&mine, &other]).await;
    for node in nodes.iter() {
        node.restart_empty().await;
        // The node abstains for one `max_ttl`, and has the permits again afterwards.
        sleep(2 * TTL).await;
        wait_until_everywhere(&nodes, &[&mine, &other]).await;
        let refused = theirs.try_acquire(permit(2).wait(Wait::None)).await;
        assert!(matches!(refused, Err(LockError::Contended { .. })), "{refused:?}");
    }
    for guard in [mine, other] {
        guard.ensure_held().unwrap();
        guard.release().await.unwrap();
    }
    assert!(theirs.shutdown().await);
    assert_nothing_left(&ours, &nodes).await;
}

/// Fails if the returning holder overtakes the present holder of the admission lock, or is forgotten behind it.
#[tokio::test]
async fn lost_permit_vote_is_restored_after_earlier_waiters_have_left() {
    let nodes = Nodes::start(3).await;
    let (ours, theirs) = (forgiving(&nodes).await, forgiving(&nodes).await);
    let mine = ours.acquire(permit(1)).await.unwrap();
    wait_until_everywhere(&nodes, &[&mine]).await;
    let waiting = tokio::spawn({
        let wait = Wait::For(Duration::from_secs(6));
        async move { theirs.acquire(permit(1).wait(wait)).await.map(drop) }
    });
    wait_until_in_admission(&nodes).await;
    nodes[0].restart_empty().await;
    let refused = waiting.await.unwrap();
    assert!(matches!(refused, Err(LockError::TimedOut { .. })), "{refused:?}");
    wait_until_everywhere(&nodes, &[&mine]).await;
    nodes[1].kill();
    sleep(3 * TTL).await;
    mine.ensure_held().unwrap();
}

/// Fails if the returning holder queues behind calls that arrived after its permit. With constant waiting calls, it would never get its
/// turn.
#[tokio::test]
async fn lost_permit_vote_is_restored_before_later_waiters_enter() {
    let nodes = Nodes::start(3).await;
    let (ours, first, second) = (forgiving(&nodes).await, forgiving(&nodes).await, forgiving(&nodes).await);
    let mine = ours.acquire(permit(1)).await.unwrap();
    wait_until_everywhere(&nodes, &[&mine]).await;
    let stands = tokio::spawn(async move { first.acquire(permit(1).wait(Wait::For(3 * TTL))).await.map(drop) });
    wait_until_in_admission(&nodes).await;
    let waits = tokio::spawn(async move { second.acquire(permit(1).wait(Wait::Forever)).await.map(drop) });
    wait_until_in_line(&nodes, 1).await;
    nodes[0].restart_empty().await;
    // This call holds the admission lock until it gives up.
    let refused = stands.await.unwrap();
    assert!(matches!(refused, Err(LockError::TimedOut { .. })), "{refused:?}");
    wait_until_everywhere(&nodes, &[&mine]).await;
    assert!(!waits.is_finished(), "there is one permit");
    mine.release().await.unwrap();
    waits.await.unwrap().unwrap();
}

/// Deletes a permit at most nodes, one of which does not answer its process, and lets another call acquire it. The first call must lose
/// it.
async fn check_exclusion(size: usize) {
    let nodes = Nodes::start(size).await;
    let (proxies, theirs) = (nodes.proxied().await, brief(&nodes).await);
    let ours = connected(builder(proxies.iter().map(Proxy::url)).node_timeout(BRIEF).default_ttl(TTL), &nodes).await;
    let held = entered_everywhere(&ours, &nodes, permit(1)).await;
    // The last node counts until its lease there is over.
    proxies[size - 1].hold();
    for node in nodes[..majority(size) - 1].iter().chain([&nodes[size - 1]]) {
        node.inspect().command::<usize>(&["DEL", KEY]).await;
    }
    let other = obtained(waiting(&theirs, permit(1))).await;
    let lost = timeout(PATIENCE, held.lost()).await;
    assert!(matches!(lost, Ok(LockError::Lost { .. })), "{size} nodes: {lost:?} beside another one");
    other.ensure_held().unwrap();
    proxies.iter().for_each(Proxy::pass);
    drop((held, other));
    assert_all_gone(&ours, &nodes).await;
    assert_all_gone(&theirs, &nodes).await;
}

#[tokio::test]
async fn deleted_permit_is_not_restored_after_its_reassignment() {
    // A holder that takes silence for a vote would ask the nodes that lost its permit for a new one, and would have a majority again.
    tokio::join!(check_exclusion(3), check_exclusion(5));
}
