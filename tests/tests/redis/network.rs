//! Lost, late and cut: effects of the network on a command and its answer (defects 4, 5 and 14 of peers).

use crate::support::{
    BRIEF, GENEROUS, asked, assert_nothing_left, builder, causes, connected, holders, manager_through,
    wait_until_all_vote, wait_until_asked,
};
use redlock_runtime::{LockError, LockManager, LockRequest, NodeError};
use redlock_tests::{Flow, Nodes, PATIENCE, Proxy, eventually, eventually_eq};
use std::time::Duration;
use tokio::task::JoinHandle;

const KEY: &str = "order:7";

struct Scene {
    nodes: Nodes,
    proxies: Vec<Proxy>,
    manager: LockManager,
}

/// Returns one node behind a proxy.
async fn scene() -> Scene {
    let nodes = Nodes::start(1).await;
    let proxies = nodes.proxied().await;
    let manager = manager_through(&proxies, &nodes).await;
    Scene { nodes, proxies, manager }
}

impl Scene {
    fn proxy(&self) -> &Proxy {
        &self.proxies[0]
    }

    fn acquire(&self) -> JoinHandle<Result<(), LockError>> {
        let manager = self.manager.clone();
        tokio::spawn(async move { manager.acquire(LockRequest::new(KEY).wait(PATIENCE)).await?.release().await })
    }

    async fn wait_until_key_exists(&self) {
        eventually(PATIENCE, "the key is set", async || self.nodes[0].inspect().get(KEY).await.ok_or("no key")).await;
    }

    /// Breaks the connection with everything on it. A new connection works.
    async fn reconnect(&self) {
        self.proxy().cut().await;
        self.proxy().pass();
    }

    /// Returns the number of deletions: one for each release of a held lock. Each connection asks if the user may run `DEL`
    /// and `ZPOPMIN`, which no lock here needs.
    async fn deletions(&self) -> u64 {
        let inspector = self.nodes[0].inspect();
        inspector.calls("del").await - inspector.calls("zpopmin").await
    }
}

#[tokio::test]
async fn release_lost_with_its_connection_is_retried() {
    let scene = scene().await;
    let guard = scene.manager.acquire(KEY).await.unwrap();
    scene.proxy().drop_requests();
    drop(guard);
    scene.proxy().wait_until("the release is lost", |traffic| traffic.requests.dropped > 0).await;
    scene.wait_until_key_exists().await;
    scene.reconnect().await;
    eventually_eq(PATIENCE, "the key is gone", None, async || scene.nodes[0].inspect().get(KEY).await).await;
    assert_nothing_left(&scene.manager, &scene.nodes).await;
    assert!(scene.manager.stats().releases.retried >= 1, "{:?}", scene.manager.stats().releases);
}

#[tokio::test]
async fn release_with_a_lost_reply_is_not_counted_as_lost() {
    let scene = scene().await;
    let guard = scene.manager.acquire(KEY).await.unwrap();
    let deletions = scene.deletions().await;
    scene.proxy().drop_replies();
    drop(guard);
    scene.proxy().wait_until("the answer is lost", |traffic| traffic.replies.dropped > 0).await;
    assert_eq!(scene.deletions().await, deletions + 1);
    scene.reconnect().await;
    assert_nothing_left(&scene.manager, &scene.nodes).await;
    assert_eq!(scene.deletions().await, deletions + 1, "sent again, it finds nothing");
    let stats = scene.manager.stats().releases;
    assert!(stats.retried >= 1, "{stats:?}");
    assert_eq!((stats.not_owner, stats.abandoned), (0, 0), "{stats:?}");
}

#[tokio::test]
async fn dropped_acquisition_with_lost_reply_and_release_leaves_no_keys() {
    let scene = scene().await;
    scene.proxy().drop_replies();
    let acquiring = scene.acquire();
    scene.wait_until_key_exists().await;
    scene.proxy().drop_requests();
    acquiring.abort();
    assert!(acquiring.await.unwrap_err().is_cancelled());
    scene.proxy().wait_until("the release is lost", |traffic| traffic.requests.dropped > 0).await;
    scene.wait_until_key_exists().await;
    scene.reconnect().await;
    assert_nothing_left(&scene.manager, &scene.nodes).await;
}

#[tokio::test]
async fn acquire_after_a_lost_reply_recognizes_its_own_key() {
    // Defect 5: the next try meets the key of the first one, and waits for its own ttl.
    let scene = scene().await;
    scene.proxy().drop_replies();
    let acquiring = scene.acquire();
    scene.wait_until_key_exists().await;
    scene.reconnect().await;
    // The ttl is 30 s, which is longer than the harness waits.
    tokio::time::timeout(PATIENCE, acquiring).await.unwrap().unwrap().unwrap();
    assert_nothing_left(&scene.manager, &scene.nodes).await;
}

#[tokio::test]
async fn lock_is_released_after_its_connection_was_cut() {
    let scene = scene().await;
    let guard = scene.manager.acquire(KEY).await.unwrap();
    scene.proxy().cut().await;
    assert!(guard.is_held(), "a lease does not depend on a connection");
    drop(guard);
    assert_nothing_left(&scene.manager, &scene.nodes).await;
}

#[tokio::test]
async fn lock_is_held_and_extended_across_a_reconnect() {
    let scene = scene().await;
    let guard = scene.manager.acquire(KEY).await.unwrap();
    scene.proxy().cut().await;
    eventually(PATIENCE, "the lease is extended", async || guard.extend().await).await;
    assert_eq!(holders(&scene.nodes, &guard).await, 1);
    guard.release().await.unwrap();
    assert_nothing_left(&scene.manager, &scene.nodes).await;
}

#[tokio::test]
async fn command_executed_late_is_followed_by_its_release() {
    // Defect 4: the server executes a command that timed out at the client.
    let nodes = Nodes::start(1).await;
    let proxies = nodes.proxied().await;
    let manager = connected(builder([proxies[0].url()]).node_timeout(BRIEF), &nodes).await;
    let (inspect, proxy) = (nodes[0].inspect(), &proxies[0]);
    let (sets, deletions, before) = (inspect.calls("set").await, inspect.calls("del").await, asked(&proxies));
    proxy.requests(Flow::Hold);
    let error = manager.try_acquire(KEY).await.unwrap_err();
    assert!(matches!(causes(&error)[..], [(_, NodeError::TimedOut(_))]), "{error:?}");
    wait_until_asked(&proxies, &before).await;
    assert_eq!(inspect.calls("set").await, sets, "not executed yet");
    proxy.pass();
    assert_nothing_left(&manager, &nodes).await;
    let executed = (inspect.calls("set").await - sets, inspect.calls("del").await - deletions);
    assert_eq!(executed, (1, 1), "set late, and deleted");
}

#[tokio::test]
async fn lease_validity_starts_when_the_command_is_sent() {
    // Defect 14: a lease that counts from the answer would outlive the key by the time of the answer.
    let scene = scene().await;
    let late = Duration::from_millis(200);
    scene.proxy().replies(Flow::Delay(late));
    let guard = scene.manager.acquire(KEY).await.unwrap();
    assert!(guard.remaining() + late <= guard.ttl().mul_f64(0.99), "{guard:?}");
    guard.extend().await.unwrap();
    assert!(guard.remaining() + late <= guard.ttl().mul_f64(0.99), "{guard:?}");
    guard.release().await.unwrap();
    assert_nothing_left(&scene.manager, &scene.nodes).await;
}

#[tokio::test]
async fn reply_too_late_for_a_useful_lease_is_rejected() {
    // Defects 6 and 8: the body starts with an expired, or nearly expired, lease.
    let nodes = Nodes::start(1).await;
    let proxies = nodes.proxied().await;
    let manager =
        builder([proxies[0].url()]).node_timeout(Duration::from_millis(490)).tuning(|tuning| tuning.drift_factor(0.5));
    let manager = connected(manager.default_ttl(Duration::from_secs(1)), &nodes).await;
    // 498 ms of the ttl are provable, and less than a twentieth of the ttl is not useful.
    proxies[0].replies(Flow::Delay(Duration::from_millis(470)));
    let error = manager.try_acquire(KEY).await.unwrap_err();
    let [(_, cause)] = causes(&error)[..] else { panic!("{error}") };
    // On a busy machine, the answer comes even later.
    assert!(matches!(cause, NodeError::TooLate | NodeError::TimedOut(_)), "{error}");
    proxies[0].pass();
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn slow_minority_does_not_delay_the_acquisition() {
    let nodes = Nodes::start(3).await;
    let proxies = nodes.proxied().await;
    let manager = manager_through(&proxies, &nodes).await;
    proxies[2].replies(Flow::Hold);
    let guard = tokio::time::timeout(GENEROUS, manager.acquire(KEY)).await.unwrap().unwrap();
    // The late vote counts from its arrival: it is extended and released like the others.
    proxies[2].pass();
    eventually_eq(PATIENCE, "all three hold the lock", 3, async || holders(&nodes, &guard).await).await;
    guard.release().await.unwrap();
    wait_until_all_vote(&manager, &nodes).await;
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn vote_with_a_lost_reply_is_released_after_its_node_was_down() {
    let nodes = Nodes::start(3).await;
    let proxies = nodes.proxied().await;
    let manager = manager_through(&proxies, &nodes).await;
    let broken = &proxies[2];
    broken.drop_replies();
    let guard = manager.acquire(KEY).await.unwrap();
    eventually_eq(PATIENCE, "all three hold the lock", 3, async || holders(&nodes, &guard).await).await;
    broken.refuse(true).await;
    broken.cut().await;
    // Twice: the first may still meet the old connection.
    for _ in 0..2 {
        guard.extend().await.unwrap();
    }
    drop(guard);
    broken.pass();
    broken.refuse(false).await;
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn vote_without_a_reply_is_released_after_its_node_stalled() {
    let nodes = Nodes::start(3).await;
    let proxies = nodes.proxied().await;
    let manager = manager_through(&proxies, &nodes).await;
    nodes[2].freeze();
    let before = asked(&proxies);
    let guard = manager.acquire(KEY).await.unwrap();
    wait_until_asked(&proxies, &before).await;
    // The release of another lock stays unanswered until the node is stalled. After that, it receives no more commands.
    drop(manager.acquire("another").await.unwrap());
    eventually(PATIENCE, "the node is known to be stalled", async || {
        guard.extend().await.unwrap();
        let before = proxies[2].traffic().requests.received;
        guard.extend().await.unwrap();
        // Time for the command to arrive, if one was sent.
        nodes[0].inspect().command::<()>(&["PING"]).await;
        if proxies[2].traffic().requests.received == before { Ok(()) } else { Err(before) }
    })
    .await;
    drop(guard);
    nodes[2].thaw();
    assert_nothing_left(&manager, &nodes).await;
}
