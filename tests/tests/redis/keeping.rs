//! Lost votes are won back: a held lock stays held while nodes fail one after the other.

use crate::support::{BRIEF, acquired_everywhere, assert_nothing_left, builder, connected, holders};
use redlock_runtime::{LockManager, LockManagerBuilder, LockRequest, Wait};
use redlock_tests::{Nodes, PATIENCE, Proxy, RedisServer, eventually, eventually_eq};
use std::time::Duration;

const KEY: &str = "order:7";
/// Short enough for several leases to pass.
const TTL: Duration = Duration::from_secs(2);
/// Long enough that no renewal is due during a test.
const LONG: Duration = Duration::from_secs(60);

fn brief(urls: impl IntoIterator<Item = String>) -> LockManagerBuilder {
    builder(urls).default_ttl(TTL).tuning(|tuning| tuning.max_ttl(TTL)).node_timeout(TTL / 4)
}

async fn wait_until_everywhere(nodes: &Nodes, guard: &redlock_runtime::LockGuard, many: usize) {
    eventually_eq(PATIENCE, "the lock is on every node that is there", many, async || holders(nodes, guard).await)
        .await;
}

#[tokio::test]
async fn lock_survives_nodes_that_restart_empty_one_by_one() {
    let nodes = Nodes::start(3).await;
    let (ours, theirs) = (connected(brief(nodes.urls()), &nodes).await, connected(brief(nodes.urls()), &nodes).await);
    let guard = acquired_everywhere(&ours, &nodes, KEY).await;
    let waiting = tokio::spawn(async move { theirs.acquire(LockRequest::new(KEY).wait(Wait::Forever)).await });
    for node in nodes.iter() {
        node.restart_empty().await;
        // The node abstains for one `max_ttl`, and has the lock again afterwards.
        tokio::time::sleep(2 * TTL).await;
        wait_until_everywhere(&nodes, &guard, 3).await;
        guard.ensure_held().unwrap();
    }
    guard.release().await.unwrap();
    waiting.await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn vote_of_a_node_down_at_the_acquisition_is_won_later() {
    for size in [3, 5] {
        for gone in [0, size - 2] {
            let nodes = Nodes::start(size).await;
            let manager = connected(brief(nodes.urls()), &nodes).await;
            nodes[size - 1].kill();
            let guard = manager.acquire(LockRequest::new(KEY)).await.unwrap();
            nodes[size - 1].restart_empty().await;
            // The node abstains for one `max_ttl`.
            tokio::time::sleep(2 * TTL).await;
            wait_until_everywhere(&nodes, &guard, size).await;
            nodes[gone].kill();
            tokio::time::sleep(2 * TTL).await;
            guard.ensure_held().unwrap();
            guard.release().await.unwrap();
        }
    }
}

#[tokio::test]
async fn waiter_yields_its_vote_to_the_holder() {
    let nodes = Nodes::start(3).await;
    let proxies = nodes.proxied().await;
    let ours = connected(brief(proxies.iter().map(Proxy::url)), &nodes).await;
    let theirs = connected(brief(nodes.urls()), &nodes).await;
    // The first manager cannot reach the third node, and the other call wins its vote.
    proxies[2].refuse(true).await;
    proxies[2].cut().await;
    let guard = ours.acquire(LockRequest::new(KEY)).await.unwrap();
    let waiting = tokio::spawn(async move { theirs.acquire(LockRequest::new(KEY).wait(Wait::Forever)).await });
    eventually(PATIENCE, "the other call has the third node", async || {
        nodes[2].inspect().get(KEY).await.map(|_| ()).ok_or("nobody has it")
    })
    .await;
    proxies[2].refuse(false).await;
    wait_until_everywhere(&nodes, &guard, 3).await;
    nodes[0].kill();
    tokio::time::sleep(2 * TTL).await;
    guard.ensure_held().unwrap();
    guard.release().await.unwrap();
    waiting.await.unwrap().unwrap().release().await.unwrap();
}

/// Returns a manager of a single node without periodic commands.
async fn alone(node: &RedisServer) -> LockManager {
    let manager = builder([node.url()]).default_ttl(LONG).node_timeout(BRIEF).build().unwrap();
    manager.ready().await.unwrap();
    manager
}

#[tokio::test]
async fn holder_is_lost_at_once_when_the_server_restarts_empty() {
    for renews in [true, false] {
        let node = RedisServer::start().await;
        let manager = alone(&node).await;
        let request = LockRequest::new(KEY);
        let guard = manager.acquire(if renews { request } else { request.without_renewal() }).await.unwrap();
        node.restart_empty().await;
        // Long before the next renewal, which is due after twenty seconds.
        eventually(PATIENCE, "the owner knows", async || if guard.is_held() { Err("it is held") } else { Ok(()) })
            .await;
    }
}

#[tokio::test]
async fn holder_is_lost_at_once_after_a_restart_with_a_pending_reply() {
    let node = RedisServer::start().await;
    let manager = alone(&node).await;
    let guard = manager.acquire(LockRequest::new(KEY)).await.unwrap();
    node.freeze();
    let extension = guard.extend().await;
    assert!(extension.is_err() && guard.is_held(), "{extension:?}");
    node.restart_empty().await;
    eventually(PATIENCE, "the owner knows", async || if guard.is_held() { Err("it is held") } else { Ok(()) }).await;
}

#[tokio::test]
async fn lock_is_renewed_over_an_intermittent_connection() {
    // The node is away for longer than it is there, repeatedly, for longer than a ttl.
    let nodes = Nodes::start(1).await;
    let proxies = nodes.proxied().await;
    let ttl = Duration::from_secs(6);
    let manager = connected(builder([proxies[0].url()]).default_ttl(ttl).node_timeout(BRIEF), &nodes).await;
    let guard = manager.acquire(KEY).await.unwrap();
    for _ in 0..6 {
        proxies[0].refuse(true).await;
        proxies[0].cut().await;
        tokio::time::sleep(Duration::from_millis(1200)).await;
        proxies[0].refuse(false).await;
        tokio::time::sleep(Duration::from_millis(900)).await;
        guard.ensure_held().unwrap();
    }
    guard.release().await.unwrap();
    assert_nothing_left(&manager, &nodes).await;
}
