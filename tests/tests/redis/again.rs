//! Releases that were lost and are sent again: after a busy server, a fail-over, lost scripts, a broken connection.

use crate::support::{assert_nothing_left, barrier, manager, manager_through, many_guards};
use redlock_runtime::{LockManager, NodeError};
use redlock_tests::{Flow, Nodes, PATIENCE, Proxy, RedisServer, eventually, eventually_eq};
use tokio::task::{JoinHandle, JoinSet};

const KEY: &str = "order:7";
const MANY: usize = 200;

async fn wait_until_sent_again(manager: &LockManager, times: u64) {
    eventually(PATIENCE, "the releases are sent again", async || match manager.stats().releases {
        stats if stats.retried >= times => Ok(()),
        stats => Err(stats),
    })
    .await;
}

async fn assert_all_given_back(manager: &LockManager, nodes: &Nodes) {
    assert_nothing_left(manager, nodes).await;
    let stats = manager.stats().releases;
    assert_eq!((stats.not_owner, stats.abandoned), (0, 0), "{stats:?}");
}

/// Runs an endless script. Returns when the server refuses all other commands.
async fn keep_busy(node: &RedisServer) -> JoinHandle<()> {
    node.inspect().command::<()>(&["CONFIG", "SET", "lua-time-limit", "1"]).await;
    let connection = node.inspect_database(0);
    let script = tokio::spawn(async move {
        // The script ends with an error, because it is killed.
        connection.try_command::<()>(&["EVAL", "while true do end", "0"]).await.unwrap_err();
    });
    eventually(PATIENCE, "the server is busy", async || match node.inspect().try_command::<String>(&["PING"]).await {
        Err(error) if error.to_string().contains("BUSY") => Ok(()),
        answer => Err(answer),
    })
    .await;
    script
}

#[tokio::test]
async fn releases_denied_by_the_acl_are_retried_until_permitted() {
    let configure = |_, builder: redlock_tests::Builder| builder.password("x").user("alice", "w0nder", "~* &* +@all");
    let nodes = Nodes::start_with(1, configure).await;
    let manager = manager(&nodes).await;
    let guards = many_guards(&manager, 3).await;
    nodes[0].inspect().command::<()>(&["ACL", "SETUSER", "alice", "-evalsha", "-eval"]).await;
    drop(guards);
    wait_until_sent_again(&manager, 6).await;
    nodes[0].inspect().command::<()>(&["ACL", "SETUSER", "alice", "+evalsha", "+eval"]).await;
    assert_all_given_back(&manager, &nodes).await;
}

#[tokio::test]
async fn releases_refused_by_a_busy_server_are_retried_in_batches() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let guards = many_guards(&manager, MANY).await;
    let script = keep_busy(&nodes[0]).await;
    drop(guards);
    // Without batches, the releases would go out one by one with a pause after each, and would not finish in time.
    wait_until_sent_again(&manager, 2 * MANY as u64).await;
    nodes[0].inspect().command::<()>(&["SCRIPT", "KILL"]).await;
    script.await.unwrap();
    assert_all_given_back(&manager, &nodes).await;
}

#[tokio::test]
async fn release_refused_by_a_replica_is_retried_after_its_promotion() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let guard = manager.acquire(KEY).await.unwrap();
    nodes[0].inspect().command::<()>(&["REPLICAOF", "127.0.0.1", "1"]).await;
    drop(guard);
    let replica = Some(NodeError::Replica);
    eventually_eq(PATIENCE, "it takes no locks", replica, async || manager.check().await.nodes[0].error.clone()).await;
    assert_eq!(nodes[0].inspect().keys().await, [KEY], "it is read-only");
    nodes[0].inspect().command::<()>(&["REPLICAOF", "NO", "ONE"]).await;
    wait_until_sent_again(&manager, 1).await;
    assert_all_given_back(&manager, &nodes).await;
}

/// Performs exactly one round trip: delivers the held replies, and waits until the client has sent `bytes` because of them.
async fn round_trip(proxy: &Proxy, bytes: usize) {
    let before = proxy.traffic();
    proxy.requests(Flow::Hold);
    proxy.replies(Flow::Pass);
    let sent = |traffic: &redlock_tests::Traffic| traffic.requests.received - before.requests.received >= bytes as u64;
    proxy.wait_until("the client has sent what it can", sent).await;
    proxy.replies(Flow::Hold);
    proxy.requests(Flow::Pass);
    let answered = |traffic: &redlock_tests::Traffic| traffic.replies.received > before.replies.received;
    proxy.wait_until("the server answers", answered).await;
}

#[tokio::test]
async fn releases_after_a_script_flush_share_one_extra_round_trip() {
    let nodes = Nodes::start(1).await;
    let proxies = nodes.proxied().await;
    let manager = manager_through(&proxies, &nodes).await;
    let guards = many_guards(&manager, MANY).await;
    let before = nodes[0].inspect().calls("evalsha").await;
    proxies[0].replies(Flow::Hold);
    nodes.flush_scripts().await;
    drop(guards);
    let refused = async || nodes[0].inspect().calls("evalsha").await - before;
    eventually_eq(PATIENCE, "all are refused", MANY as u64, refused).await;
    // All of them are sent with their source, which is over 100 bytes long.
    round_trip(&proxies[0], MANY * 100).await;
    proxies[0].pass();
    assert_all_given_back(&manager, &nodes).await;
}

#[tokio::test]
async fn releases_are_retried_once_after_reconnecting_and_not_before() {
    let (nodes, other) = (Nodes::start(1).await, Nodes::start(1).await);
    let proxies = nodes.proxied().await;
    let manager = manager_through(&proxies, &nodes).await;
    let guard = manager.acquire(KEY).await.unwrap();
    let before = proxies[0].traffic().requests.received;
    proxies[0].requests(Flow::Hold);
    drop(guard);
    let mut tries = JoinSet::new();
    for i in 0..8 {
        let manager = manager.clone();
        tries.spawn(async move { manager.try_acquire(format!("another:{i}")).await.map(drop) });
    }
    let sent = |traffic: &redlock_tests::Traffic| traffic.requests.received > before + 8 * 80;
    proxies[0].wait_until("all is on the connection", sent).await;
    proxies[0].refuse(true).await;
    proxies[0].cut().await;
    tries.join_all().await;
    // Each round trip gives the client an opportunity to send.
    for _ in 0..200 {
        barrier(&other).await;
    }
    assert_eq!(manager.stats().releases.retried, 0);
    proxies[0].pass();
    proxies[0].refuse(false).await;
    assert_nothing_left(&manager, &nodes).await;
    assert!(manager.stats().releases.retried <= 9, "{:?}", manager.stats().releases);
}
