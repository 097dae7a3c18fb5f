//! Dead connections that are still open, because a machine between client and server has forgotten them. Also slow servers.

use crate::support::{GENEROUS, assert_nothing_left, builder, connected, manager_through, wait_until_queued};
use crate::waiters::{obtained, patient, waiting};
use redlock_runtime::{LockManager, LockRequest, Wait};
use redlock_tests::{Cluster, FakeServer, Nodes, PATIENCE, Proxy, RedisServer, eventually, eventually_eq};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

const KEY: &str = "order:7";

/// Short enough that renewals come soon, and long enough to make up for the renewals of a forgotten connection.
const TTL: Duration = Duration::from_secs(9);

async fn works_again(manager: &LockManager) {
    eventually(PATIENCE, "it works again", async || {
        let guard = manager.try_acquire("order:8").await.map_err(|error| error.to_string())?;
        guard.release().await.map_err(|error| error.to_string())
    })
    .await;
}

/// Returns the ids of all connections that managers have to the `server`.
async fn connections(server: &RedisServer) -> Vec<String> {
    let clients = server.inspect().clients().await;
    let of_managers = clients.iter().filter(|client| client.contains("name=redlock-"));
    of_managers.filter_map(|client| client.split(' ').next().map(str::to_owned)).collect()
}

/// Returns the number of connections to the `server` that are subscribed to a channel.
async fn subscribers(server: &RedisServer) -> usize {
    server.inspect().clients().await.iter().filter(|client| client.contains(" sub=1 ")).count()
}

#[tokio::test]
async fn dead_connection_is_replaced_and_held_locks_stay_held() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let proxies = nodes.proxied().await;
        let manager = manager_through(&proxies, &nodes).await;
        let held = manager.acquire(KEY).await.unwrap();
        proxies.iter().for_each(Proxy::forget);
        works_again(&manager).await;
        held.extend().await.unwrap();
        held.release().await.unwrap();
        assert_nothing_left(&manager, &nodes).await;
    }
}

/// Only the renewal shows that the connection is dead.
#[tokio::test]
async fn lock_is_renewed_after_its_connection_dies_silently() {
    let nodes = Nodes::start(1).await;
    let proxies = nodes.proxied().await;
    let manager = LockManager::builder().node(proxies[0].url()).build().unwrap();
    let held = manager.acquire(LockRequest::new(KEY).ttl(TTL)).await.unwrap();
    proxies[0].forget();
    let last = AtomicI64::new(nodes[0].inspect().pttl(KEY).await);
    eventually(PATIENCE, "the lock is renewed", async || {
        let left = nodes[0].inspect().pttl(KEY).await;
        if left > last.swap(left, Ordering::Relaxed) { Ok(()) } else { Err(left) }
    })
    .await;
    held.ensure_held().unwrap();
    held.release().await.unwrap();
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn release_sent_on_a_dead_connection_is_retried() {
    let nodes = Nodes::start(1).await;
    let proxies = nodes.proxied().await;
    let manager = manager_through(&proxies, &nodes).await;
    let held = manager.acquire(KEY).await.unwrap();
    proxies[0].forget();
    drop(held);
    eventually_eq(PATIENCE, "the key is gone", None, async || nodes[0].inspect().get(KEY).await).await;
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn dead_notification_connection_is_replaced() {
    let nodes = Nodes::start_with(1, |_, builder| builder.without_command("HELLO")).await;
    let proxies = nodes.proxied().await;
    let manager = manager_through(&proxies, &nodes).await;
    // Opens the channels.
    manager.ready().await.unwrap();
    eventually_eq(PATIENCE, "it is subscribed", 1, async || subscribers(&nodes[0]).await).await;
    proxies[0].forget();
    // The server does not know that the first one is dead.
    eventually_eq(PATIENCE, "it is subscribed again", 2, async || subscribers(&nodes[0]).await).await;
    works_again(&manager).await;
    let other = connected(builder(nodes.urls()), &nodes).await;
    let held = other.acquire(KEY).await.unwrap();
    let call = waiting(&manager, patient(KEY));
    wait_until_queued(&nodes, KEY, 1).await;
    held.release().await.unwrap();
    obtained(call).await.release().await.unwrap();
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn dead_connection_to_a_cluster_member_is_replaced() {
    let cluster = Cluster::start(1, 0).await;
    let proxy = Proxy::to(cluster.member(0)).await;
    let port = proxy.address().port().to_string();
    cluster.member(0).inspect().command::<()>(&["CONFIG", "SET", "cluster-announce-port", &port]).await;
    let manager = builder([proxy.url().replacen("redis", "redis+cluster", 1)]).build().unwrap();
    eventually(PATIENCE, "it is ready", async || manager.ready().await).await;
    let held = manager.acquire(KEY).await.unwrap();
    proxy.forget();
    works_again(&manager).await;
    held.extend().await.unwrap();
    held.release().await.unwrap();
    assert!(manager.shutdown().await);
}

/// The server answers on no connection, so the first one is not to blame.
#[tokio::test]
async fn liveness_checks_keep_the_connection_to_a_frozen_server() {
    let nodes = Nodes::start(1).await;
    let proxies = nodes.proxied().await;
    let manager = connected(builder([proxies[0].url()]).node_timeout(GENEROUS), &nodes).await;
    let held = manager.acquire(KEY).await.unwrap();
    let before = connections(&nodes[0]).await;
    let accepted = proxies[0].traffic().accepted;
    nodes[0].freeze();
    // Without a limit: the server is frozen for longer than the longest silence.
    let call = waiting(&manager, LockRequest::new("order:8").wait(Wait::Forever));
    proxies[0].wait_until("it was checked twice", |traffic| traffic.accepted >= accepted + 2).await;
    nodes[0].thaw();
    obtained(call).await.release().await.unwrap();
    held.extend().await.unwrap();
    assert_eq!(connections(&nodes[0]).await, before);
    held.release().await.unwrap();
    assert_nothing_left(&manager, &nodes).await;
}

/// An address leads to another server for new connections. The grants of the previous server are void.
#[tokio::test]
async fn lock_is_lost_if_another_server_takes_over_the_address() {
    let nodes = Nodes::start(2).await;
    let proxy = Proxy::to(&nodes[0]).await;
    let manager = builder([proxy.url()]).build().unwrap();
    let held = manager.acquire(KEY).await.unwrap();
    proxy.forget();
    proxy.redirect_new_connections(&nodes[1]);
    works_again(&manager).await;
    eventually_eq(PATIENCE, "the lock is lost", false, async || held.is_held()).await;
    assert_eq!(nodes[1].inspect().get(KEY).await, None);
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

/// Answers as a server does that grants every lock.
fn granted(command: &str) -> String {
    let words: Vec<_> = command.split(' ').collect();
    match words[..] {
        ["HELLO", ..] => "%1\r\n$5\r\nproto\r\n:3\r\n".to_owned(),
        // All scripts are stored.
        ["SCRIPT", "EXISTS", ref digests @ ..] => format!("*{}\r\n{}", digests.len(), ":1\r\n".repeat(digests.len())),
        ["INFO", ..] => bulk("redis_version:7.2.0\r\nrun_id:1\r\nuptime_in_seconds:99\r\nrole:master\r\n"),
        ["CONFIG", ..] => "*0\r\n".to_owned(),
        ["TIME"] => format!("*2\r\n{}{}", bulk("1800000000"), bulk("0")),
        ["EVALSHA" | "EVAL", ..] => ":1\r\n".to_owned(),
        ["PING"] => "+PONG\r\n".to_owned(),
        _ => "+OK\r\n".to_owned(),
    }
}

/// The server sees three connections: a proxy forgets the first, the second checks it, and the third replaces it.
#[tokio::test]
async fn dead_connection_is_closed_before_its_successor_is_used_and_the_check_sends_no_scripts() {
    let is_forgotten = Arc::new(AtomicBool::new(false));
    let is_silent = Arc::clone(&is_forgotten);
    let server = FakeServer::start_numbered(move |client, command| {
        if client == 0 && is_silent.load(Ordering::SeqCst) { String::new() } else { granted(command) }
    })
    .await;
    let url = server.url().replace("redis://", "redis://alice:w0nder@");
    let manager = builder([url]).build().unwrap();
    manager.acquire(KEY).await.unwrap().release().await.unwrap();
    is_forgotten.store(true, Ordering::SeqCst);
    works_again(&manager).await;
    let commands = server.commands();
    let of = |client: usize| commands.iter().filter(move |command| command.client == client);
    let mut kinds: Vec<_> = of(1).map(|command| command.command.split(' ').next().unwrap()).collect();
    // The client crate reports its name and its version.
    kinds.dedup();
    assert_eq!(kinds, ["AUTH", "CLIENT", "INFO", "PING"], "{:#?}", of(1).collect::<Vec<_>>());
    assert!(of(1).all(|command| command.open.contains(&0)), "the check leaves the first connection open");
    assert!(of(2).any(|command| command.command.starts_with("SET ")), "the third connection takes locks");
    assert!(of(2).all(|command| !command.open.contains(&0)), "{:#?}", of(2).collect::<Vec<_>>());
}
