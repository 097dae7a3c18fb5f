//! The proxy fails as ordered, and only then.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use redlock_tests::{Flow, PATIENCE, Proxy, RedisServer, eventually_eq};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const SET: &[u8] = b"SET k v\r\n";
const OK: &[u8] = b"+OK\r\n";

struct Link {
    server: RedisServer,
    proxy: Proxy,
    client: TcpStream,
}

async fn link() -> Link {
    let server = RedisServer::start().await;
    let proxy = Proxy::to(&server).await;
    let client = TcpStream::connect(proxy.address()).await.unwrap();
    Link { server, proxy, client }
}

async fn expect_ok(client: &mut TcpStream) {
    let mut reply = [0; OK.len()];
    tokio::time::timeout(PATIENCE, client.read_exact(&mut reply)).await.unwrap().unwrap();
    assert_eq!(reply, OK);
}

#[tokio::test]
async fn proxy_forwards_and_counts_all_bytes() {
    let Link { server: _server, proxy, mut client } = link().await;
    client.write_all(SET).await.unwrap();
    expect_ok(&mut client).await;
    let traffic = proxy.wait_until("the reply is counted", |traffic| traffic.replies.forwarded > 0).await;
    assert_eq!((traffic.accepted, traffic.live), (1, 1));
    assert_eq!((traffic.requests.received, traffic.requests.forwarded), (SET.len() as u64, SET.len() as u64));
    assert_eq!((traffic.replies.forwarded, traffic.replies.dropped), (OK.len() as u64, 0));
    drop(client);
    proxy.wait_until("the end of the client is passed on", |traffic| traffic.live == 0).await;
}

#[tokio::test]
async fn dropped_reply_leaves_the_command_executed() {
    let Link { server, proxy, mut client } = link().await;
    proxy.drop_replies();
    client.write_all(SET).await.unwrap();
    let traffic = proxy.wait_until("a reply was lost", |traffic| traffic.replies.dropped > 0).await;
    assert_eq!(traffic.replies.forwarded, 0);
    assert_eq!(server.inspect().get("k").await.as_deref(), Some("v"));
    assert_eq!(client.try_read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[tokio::test]
async fn dropped_request_never_arrives() {
    let Link { server, proxy, mut client } = link().await;
    proxy.drop_requests();
    client.write_all(SET).await.unwrap();
    proxy.wait_until("a request was lost", |traffic| traffic.requests.dropped > 0).await;
    assert_eq!(server.inspect().get("k").await, None);
}

#[tokio::test]
async fn held_bytes_are_delivered_later_without_loss() {
    let Link { server, proxy, mut client } = link().await;
    proxy.hold();
    client.write_all(SET).await.unwrap();
    proxy.wait_until("the request is held", |traffic| traffic.requests.received > 0).await;
    assert_eq!(server.inspect().get("k").await, None);
    proxy.requests(Flow::Pass);
    proxy.wait_until("the reply is held", |traffic| traffic.replies.received > 0).await;
    assert_eq!(server.inspect().get("k").await.as_deref(), Some("v"));
    assert_eq!(client.try_read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    proxy.pass();
    expect_ok(&mut client).await;
}

#[tokio::test]
async fn delay_adds_latency_without_limiting_throughput() {
    let Link { server: _server, proxy, mut client } = link().await;
    proxy.delay(Duration::from_millis(100), Duration::from_millis(50));
    let started = Instant::now();
    for _ in 0..20 {
        client.write_all(SET).await.unwrap();
    }
    for _ in 0..20 {
        expect_ok(&mut client).await;
    }
    let elapsed = started.elapsed();
    assert!(elapsed >= Duration::from_millis(150), "{elapsed:?}");
    // One after the other, they would take 3 s.
    assert!(elapsed < Duration::from_secs(2), "{elapsed:?}");
}

#[tokio::test]
async fn cut_resets_live_connections_and_accepts_new_ones() {
    let Link { server, proxy, mut client } = link().await;
    proxy.hold();
    client.write_all(SET).await.unwrap();
    proxy.wait_until("the request is held", |traffic| traffic.requests.received > 0).await;
    proxy.cut().await;
    assert_eq!(client.read(&mut [0]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(proxy.traffic().live, 0);
    proxy.pass();
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    client.write_all(b"GET k\r\n").await.unwrap();
    let mut nil = [0; 5];
    client.read_exact(&mut nil).await.unwrap();
    assert_eq!(&nil, b"$-1\r\n", "what was held is lost");
    eventually_eq(PATIENCE, "only the new connection is left", 1, async || server.inspect().clients().await.len())
        .await;
}

#[tokio::test]
async fn forgotten_connection_stays_open_and_new_ones_work() {
    let Link { server, proxy, mut client } = link().await;
    // The proxy has accepted the connection when it has forwarded something.
    client.write_all(SET).await.unwrap();
    expect_ok(&mut client).await;
    server.inspect().flush_all().await;
    proxy.forget();
    client.write_all(SET).await.unwrap();
    proxy.wait_until("the request is lost", |traffic| traffic.requests.dropped > 0).await;
    assert_eq!(server.inspect().get("k").await, None);
    assert_eq!(client.try_read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    let mut other = TcpStream::connect(proxy.address()).await.unwrap();
    other.write_all(SET).await.unwrap();
    expect_ok(&mut other).await;
    drop(client);
    let clients = server.inspect().clients().await;
    assert_eq!(clients.len(), 2, "the server does not learn that the client has gone: {clients:?}");
}

#[tokio::test]
async fn refuse_affects_only_new_connections() {
    let Link { server: _server, proxy, mut client } = link().await;
    client.write_all(SET).await.unwrap();
    expect_ok(&mut client).await;
    proxy.refuse(true).await;
    let error = TcpStream::connect(proxy.address()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    client.write_all(SET).await.unwrap();
    expect_ok(&mut client).await;
    proxy.refuse(false).await;
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    client.write_all(SET).await.unwrap();
    expect_ok(&mut client).await;
}

#[tokio::test]
async fn server_death_closes_connections_and_proxy_drop_resets_them() {
    let Link { server, proxy, mut client } = link().await;
    client.write_all(SET).await.unwrap();
    expect_ok(&mut client).await;
    server.kill();
    assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
    drop(client);
    proxy.wait_until("the connection ended", |traffic| traffic.live == 0).await;
    server.restart_empty().await;
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    client.write_all(SET).await.unwrap();
    expect_ok(&mut client).await;
    drop(proxy);
    assert_eq!(client.read(&mut [0]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
}
