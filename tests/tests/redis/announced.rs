//! Unreachable addresses that clusters and Sentinels announce, as behind NAT: they are mapped to others.

use crate::connecting::RefusingPort;
use crate::support::builder;
use redlock_runtime::{LockManager, LockRequest, NodeConfig};
use redlock_tests::{Cluster, FakeServer, MASTER, PATIENCE, RedisServer, eventually};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// A cluster whose members announce closed ports.
struct Hidden {
    cluster: Cluster,
    announced: Vec<RefusingPort>,
}

impl Hidden {
    async fn start() -> Self {
        let announced: Vec<_> = (0..3).map(|_| RefusingPort::new()).collect();
        let ports = RefCell::new(announced.iter().map(RefusingPort::port));
        let cluster = Cluster::start_with(3, 0, |builder| {
            let port = ports.borrow_mut().next().unwrap();
            builder.config("cluster-announce-port", &[&port.to_string()])
        })
        .await;
        Self { cluster, announced }
    }

    fn url(&self) -> String {
        format!("redis+cluster://127.0.0.1:{}", self.cluster.member(0).port())
    }

    /// Returns the announced port of each member, with its real port.
    fn ports(&self) -> BTreeMap<u16, u16> {
        let listening = self.cluster.masters().map(RedisServer::port);
        self.announced.iter().map(RefusingPort::port).zip(listening).collect()
    }
}

/// Takes a lock at every member, waits for one, and moves a slot under it.
async fn use_cluster(hidden: &Hidden, node: NodeConfig) {
    let manager = builder([node]).build().unwrap();
    eventually(PATIENCE, "it is ready", async || manager.ready().await).await;
    for member in 0..3 {
        let key = hidden.cluster.key_on(member, "order").await;
        let guard = manager.acquire(&key).await.unwrap();
        assert_eq!(hidden.cluster.member(member).inspect().get(&key).await.as_deref(), Some(guard.token().as_str()));
        guard.release().await.unwrap();
    }
    // `MOVED` names an announced address as well.
    let key = hidden.cluster.key_on(0, "moved").await;
    let guard = manager.acquire(LockRequest::new(&key)).await.unwrap();
    let slot = hidden.cluster.slot(&key).await;
    hidden.cluster.move_slot(slot, 1).await;
    guard.extend().await.unwrap();
    guard.release().await.unwrap();
    hidden.cluster.move_slot(slot, 0).await;
    assert!(manager.shutdown().await);
}

#[tokio::test]
async fn cluster_is_used_through_mapped_addresses() {
    let hidden = Hidden::start().await;
    let ports = hidden.ports();
    let by_function = NodeConfig::new(hidden.url())
        .map_address(move |host, port| (host.to_owned(), ports.get(&port).copied().unwrap_or(port)));
    use_cluster(&hidden, by_function).await;
    let map = |(announced, listening): (u16, u16)| format!("map=127.0.0.1:{announced}/127.0.0.1:{listening}");
    let maps: Vec<_> = hidden.ports().into_iter().map(map).collect();
    use_cluster(&hidden, format!("{}?{}", hidden.url(), maps.join("&")).into()).await;
}

/// Starts a Sentinel that names a master at `port`, and no other Sentinels.
async fn sentinel(port: u16) -> FakeServer {
    let texts = |texts: &[&str]| {
        let bulk: Vec<_> = texts.iter().map(|text| format!("${}\r\n{text}\r\n", text.len())).collect();
        format!("*{}\r\n{}", texts.len(), bulk.concat())
    };
    let port = port.to_string();
    let (address, state) =
        (texts(&["127.0.0.1", &port]), texts(&["ip", "127.0.0.1", "port", &port, "config-epoch", "1"]));
    FakeServer::start(move |command| match command.split(' ').take(2).collect::<Vec<_>>()[..] {
        ["SENTINEL", "GET-MASTER-ADDR-BY-NAME"] => address.clone(),
        ["SENTINEL", "MASTER"] => state.clone(),
        ["SENTINEL", "SENTINELS"] => "*0\r\n".to_owned(),
        ["SUBSCRIBE", _] => "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n".to_owned(),
        _ => "+OK\r\n".to_owned(),
    })
    .await
}

async fn take_and_release(manager: &LockManager, server: &RedisServer) {
    manager.ready().await.unwrap();
    let guard = manager.acquire("order:7").await.unwrap();
    assert_eq!(server.inspect().get("order:7").await.as_deref(), Some(guard.token().as_str()));
    guard.release().await.unwrap();
}

#[tokio::test]
async fn master_that_a_sentinel_announces_is_reached_through_a_mapped_address() {
    let (server, announced) = (RedisServer::start().await, RefusingPort::new());
    let (announced, listening) = (announced.port(), server.port());
    let sentinel = sentinel(announced).await;
    let url = format!("redis+sentinel://127.0.0.1:{}/{MASTER}", sentinel.port());
    let unmapped = builder([url.clone()]).build().unwrap();
    eventually(PATIENCE, "the announced address is blamed", async || {
        let error = unmapped.try_acquire("order:7").await.unwrap_err().to_string();
        let is_blamed = error.contains(&format!("TCP connect to 127.0.0.1:{announced} failed"))
            && error.contains("the Sentinels announce this address");
        if is_blamed { Ok(()) } else { Err(error) }
    })
    .await;
    let nodes = [
        NodeConfig::new(format!("{url}?map=127.0.0.1:{announced}/localhost:{listening}")),
        NodeConfig::new(url)
            .map_address(move |host, port| (host.to_owned(), if port == announced { listening } else { port })),
    ];
    for node in nodes {
        take_and_release(&builder([node]).build().unwrap(), &server).await;
    }
}

/// If the mapped address is unreachable as well, the message contains both addresses.
#[tokio::test]
async fn unreachable_mapped_address_is_reported_with_the_announced_one() {
    let (announced, mapped) = (RefusingPort::new(), RefusingPort::new());
    let sentinel = sentinel(announced.port()).await;
    let (announced, mapped) = (announced.port(), mapped.port());
    let map = format!("map=127.0.0.1:{announced}/127.0.0.1:{mapped}");
    let manager = builder([format!("redis+sentinel://127.0.0.1:{}/{MASTER}?{map}", sentinel.port())]).build().unwrap();
    eventually(PATIENCE, "both addresses are shown", async || {
        let error = manager.try_acquire("order:7").await.unwrap_err().to_string();
        let expected = format!("TCP connect to 127.0.0.1:{mapped} (announced as 127.0.0.1:{announced}) failed");
        if error.contains(&expected) { Ok(()) } else { Err(error) }
    })
    .await;
}
