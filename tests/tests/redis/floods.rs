//! Servers that send without end: they cost a bounded amount of memory, and do not affect other nodes.

use crate::support::{BRIEF, assert_nothing_left, builder, causes};
use redlock_runtime::{LockError, LockManager, LockRequest};
use redlock_tests::{Nodes, PATIENCE, eventually};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::Notify;
use tokio::time::sleep;

const KEY: &str = "order:7";
/// Short enough to wait for its end, and long enough that a renewed lock survives a pause of one second.
const TTL: Duration = Duration::from_secs(2);
/// Capacity of the buffers of two sockets, in addition to one answer.
const MOST: u64 = 32 * 1024 * 1024;
const BULK: &[u8] = b"$2199023255552\r\n";

/// Counts the bytes that are sent on a connection until the client cuts it. Keeps the largest count of several connections.
#[derive(Default)]
struct Flood {
    sent: AtomicU64,
    is_cut: AtomicBool,
}

impl Flood {
    /// Sends `first`, then repeats `again` without end.
    async fn send(&self, client: &mut (impl AsyncWriteExt + Unpin), first: &[u8], again: &[u8]) {
        let mut is_cut = client.write_all(first).await.is_err();
        let (chunk, mut sent) = (again.repeat(64 * 1024 / again.len()), 0);
        while !is_cut {
            is_cut = client.write_all(&chunk).await.is_err();
            sent += chunk.len() as u64;
            self.sent.fetch_max(sent, Ordering::SeqCst);
        }
        self.is_cut.store(true, Ordering::SeqCst);
    }

    /// Waits until the client has cut the connection.
    async fn ends_soon(&self, what: &str) {
        eventually(PATIENCE, what, async || self.is_cut.load(Ordering::SeqCst).then_some(()).ok_or("goes on")).await;
        let sent = self.sent.load(Ordering::SeqCst);
        assert!(sent < MOST, "{what}: {sent} bytes");
    }
}

/// Runs `serve` for each client on a separate thread. Returns the address.
fn serve<F: Future<Output = ()> + Send + 'static>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let listener = TcpListener::from_std(listener).unwrap();
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve(client));
            }
        });
    });
    address
}

fn url(address: SocketAddr) -> String {
    format!("redis://{address}")
}

#[tokio::test]
async fn endless_reply_in_the_handshake_is_a_clear_error() {
    let table: [(&str, &[u8], &[u8]); 4] = [
        ("a bulk of 2 TB", BULK, b"x"),
        ("a line without end", b"+", b"x"),
        ("an error without end", b"-ERR ", b"x"),
        ("an array without end", b"*2000000000\r\n", b"$100\r\n0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789\r\n"),
    ];
    for (what, first, again) in table {
        let flood = Arc::<Flood>::default();
        let address = serve({
            let flood = Arc::clone(&flood);
            move |mut client| {
                let flood = Arc::clone(&flood);
                async move { flood.send(&mut client, first, again).await }
            }
        });
        let manager = builder([url(address)]).build().unwrap();
        eventually(PATIENCE, what, async || {
            let error = manager.try_acquire(KEY).await.expect_err("there is no server");
            let [(_, cause)] = causes(&error)[..] else { panic!("{what}: {error:?}") };
            if cause.to_string().contains("more than 1 MB as one answer") { Ok(()) } else { Err(cause.to_string()) }
        })
        .await;
        drop(manager);
        flood.ends_soon(what).await;
    }
}

/// Forwards everything between `client` and the server at `target`, until it is ordered to flood.
async fn relay(client: TcpStream, target: SocketAddr, order: Arc<Notify>, flood: Arc<Flood>, again: &'static [u8]) {
    let server = TcpStream::connect(target).await.unwrap();
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.into_split(), server.into_split());
    let requests = tokio::spawn(async move { copy(&mut from_client, &mut to_server).await });
    let mut answer = vec![0; 16 * 1024];
    // One future for all iterations: an order during the forwarding of an answer would otherwise be missed.
    let mut ordered = pin!(order.notified());
    loop {
        tokio::select! {
            read = from_server.read(&mut answer) => match read {
                Ok(bytes @ 1..) if to_client.write_all(&answer[..bytes]).await.is_ok() => {}
                _ => break,
            },
            () = &mut ordered => {
                let first = if again == b"x" { BULK } else { b"" };
                flood.send(&mut to_client, first, again).await;
                break;
            }
        }
    }
    requests.abort();
}

/// Returns a manager on `nodes` behind a relay, and the order that floods its present connections.
async fn relayed(nodes: &Nodes, again: &'static [u8]) -> (LockManager, Arc<Notify>, Arc<Flood>) {
    let (order, flood) = (Arc::<Notify>::default(), Arc::<Flood>::default());
    let address = serve({
        let (target, order, flood) = (([127, 0, 0, 1], nodes[0].port()).into(), Arc::clone(&order), Arc::clone(&flood));
        move |client| relay(client, target, Arc::clone(&order), Arc::clone(&flood), again)
    });
    let manager = builder([url(address)]).build().unwrap();
    manager.ready().await.unwrap();
    (manager, order, flood)
}

#[tokio::test]
async fn endless_reply_closes_only_its_connection() {
    let nodes = Nodes::start(1).await;
    let (manager, order, flood) = relayed(&nodes, b"x").await;
    let guard = manager.acquire(KEY).await.unwrap();
    order.notify_waiters();
    flood.ends_soon("a bulk of 2 TB").await;
    guard.ensure_held().unwrap();
    drop(guard);
    assert_nothing_left(&manager, &nodes).await;
}

#[test]
fn message_flood_does_not_delay_other_connections() {
    // A single thread, because other threads could hide that one is kept busy.
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let nodes = Nodes::start(1).await;
        let message = b">3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$1\r\ny\r\n";
        let (flooded, order, flood) = relayed(&nodes, message).await;
        let manager = builder(nodes.urls()).default_ttl(TTL).node_timeout(BRIEF).build().unwrap();
        manager.ready().await.unwrap();
        order.notify_waiters();
        let body = async |_: &redlock_runtime::LockGuard| {
            // The test needs several lease periods.
            sleep(3 * TTL).await;
            Ok::<_, LockError>(())
        };
        manager.with_lock(LockRequest::new(KEY), body).await.unwrap();
        assert!(flood.sent.load(Ordering::SeqCst) > 0 && !flood.is_cut.load(Ordering::SeqCst), "it goes on");
        drop(flooded);
        assert_nothing_left(&manager, &nodes).await;
    });
}
