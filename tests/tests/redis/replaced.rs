//! Nodes whose data is replaced while they run: by a promoted replica, or by the data of another server. Also processes that
//! start after a node has forgotten its locks.

use crate::support::{acquired_everywhere, builder, causes, connected, warnings};
use redlock_runtime::{LockError, LockManager, LockManagerBuilder, LockRequest, NodeError};
use redlock_tests::{Nodes, PATIENCE, Proxy, RedisServer, eventually, eventually_eq};
use std::time::{Duration, Instant};

const KEY: &str = "order:7";
/// Short enough to wait for its end.
const TTL: Duration = Duration::from_secs(2);

/// Long enough for a process to start before it is over.
const LONGEST: Duration = Duration::from_secs(5);

fn brief(nodes: &Nodes) -> LockManagerBuilder {
    builder(nodes.urls()).default_ttl(TTL).tuning(|tuning| tuning.max_ttl(TTL)).node_timeout(TTL / 4)
}

/// Makes `node` a replica of `master`, and waits until its data is replaced.
async fn follow(node: &RedisServer, master: &RedisServer) {
    node.inspect().command::<()>(&["REPLICAOF", "127.0.0.1", &master.port().to_string()]).await;
    let up = Some("up".to_owned());
    eventually_eq(PATIENCE, "the replica is in sync", up, async || {
        node.inspect().info("replication", "master_link_status").await
    })
    .await;
}

async fn promote(node: &RedisServer) {
    node.inspect().command::<()>(&["REPLICAOF", "NO", "ONE"]).await;
}

fn abstaining(error: &LockError) -> Vec<Duration> {
    let abstains = |(_, cause): (&str, &NodeError)| match cause {
        NodeError::RecentlyRestarted(left) => Some(*left),
        _ => None,
    };
    match error {
        LockError::NoQuorum { .. } => causes(error).into_iter().filter_map(abstains).collect(),
        _ => Vec::new(),
    }
}

/// Waits until `manager` has heard that the given number of nodes abstain. It never acquires the lock.
async fn wait_until_abstaining(manager: &LockManager, many: usize) {
    eventually(PATIENCE, "the nodes abstain", async || {
        let error = manager.try_acquire(KEY).await.expect_err("the nodes may have forgotten a holder");
        if abstaining(&error).len() == many { Ok(()) } else { Err(error) }
    })
    .await;
}

/// Waits until all nodes are old enough to vote for a new process, if leases are no longer than [`LONGEST`].
async fn wait_until_old(nodes: &Nodes) {
    for node in nodes.iter() {
        eventually(PATIENCE, "the node is old enough", async || {
            let uptime = node.inspect().info("server", "uptime_in_seconds").await;
            let is_old = |uptime: &String| uptime.parse::<u64>().is_ok_and(|uptime| uptime > LONGEST.as_secs() + 1);
            if uptime.as_ref().is_some_and(is_old) { Ok(()) } else { Err(uptime) }
        })
        .await;
    }
}

#[tokio::test]
async fn replaced_data_on_open_connections_allows_no_second_holder() {
    // Without RESP3, servers cannot push messages on the connection for commands.
    for command in ["NONE", "HELLO"] {
        let nodes = Nodes::start_with(3, |_, builder| match command {
            "HELLO" => builder.without_command("HELLO"),
            _ => builder,
        })
        .await;
        let empty = RedisServer::start().await;
        let proxies = nodes.proxied().await;
        let ours = connected(builder(proxies.iter().map(Proxy::url)), &nodes).await;
        let theirs = connected(builder(nodes.urls()), &nodes).await;
        let guard = ours.acquire(LockRequest::new(KEY).without_renewal()).await.unwrap();
        // The holder does not notice the change, and relies on its proven leases.
        for proxy in &proxies {
            proxy.refuse(true).await;
            proxy.cut().await;
        }
        for node in &nodes[..2] {
            follow(node, &empty).await;
            // No client has written in the meantime, and so learned that the node is a replica.
            promote(node).await;
            assert!(node.inspect().keys().await.is_empty());
        }
        assert!(guard.is_held());
        let error = theirs.try_acquire(KEY).await.expect_err(command);
        assert!(guard.is_held(), "{error}");
        wait_until_abstaining(&theirs, 2).await;
        assert!(guard.is_held(), "long before the end of its ttl");
    }
}

#[tokio::test]
async fn replica_takes_no_locks_until_it_is_promoted() {
    let nodes = Nodes::start(3).await;
    let empty = RedisServer::start().await;
    let manager = connected(brief(&nodes), &nodes).await;
    for node in &nodes[..2] {
        follow(node, &empty).await;
    }
    eventually(PATIENCE, "the nodes are replicas", async || {
        let error = manager.try_acquire(KEY).await.unwrap_err();
        let replicas = causes(&error).iter().filter(|(_, cause)| **cause == NodeError::Replica).count();
        if replicas == 2 { Ok(()) } else { Err(error) }
    })
    .await;
    for node in &nodes[..2] {
        promote(node).await;
    }
    wait_until_abstaining(&manager, 2).await;
    manager.acquire(LockRequest::new(KEY).wait(PATIENCE)).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn aborted_failover_does_not_stop_nodes_from_voting() {
    let nodes = Nodes::start(3).await;
    let manager = connected(builder(nodes.urls()), &nodes).await;
    for node in nodes.iter() {
        // Replicates from a server that does not exist.
        node.inspect().command::<()>(&["REPLICAOF", "127.0.0.1", "1"]).await;
        promote(node).await;
    }
    drop(acquired_everywhere(&manager, &nodes, KEY).await);
}

#[tokio::test]
async fn nodes_keep_voting_after_their_first_replica_attaches() {
    let nodes = Nodes::start(3).await;
    let manager = connected(builder(nodes.urls()), &nodes).await;
    let mut replicas = Vec::new();
    for node in nodes.iter() {
        replicas.push(RedisServer::builder().replica_of(node).start().await);
    }
    drop(acquired_everywhere(&manager, &nodes, KEY).await);
}

#[tokio::test]
async fn flushed_nodes_keep_voting() {
    // It cannot be distinguished from expired keys, and tests do it all the time.
    let nodes = Nodes::start(3).await;
    let manager = connected(builder(nodes.urls()), &nodes).await;
    for _ in 0..10 {
        for node in nodes.iter() {
            node.inspect().command::<()>(&["FLUSHALL"]).await;
        }
        manager.try_acquire(KEY).await.unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn failover_with_complete_data_loses_no_held_lock() {
    let masters = Nodes::start(3).await;
    let proxies = masters.proxied().await;
    let urls = || proxies.iter().map(Proxy::url).collect::<Vec<_>>();
    let described = || builder(urls()).default_ttl(TTL).tuning(|tuning| tuning.max_ttl(TTL)).node_timeout(TTL / 4);
    let (ours, theirs) = (connected(described(), &masters).await, connected(described(), &masters).await);
    let guard = acquired_everywhere(&ours, &masters, KEY).await;
    let mut replicas = Vec::new();
    for master in masters.iter() {
        replicas.push(RedisServer::builder().replica_of(master).start().await);
    }
    for (proxy, replica) in proxies.iter().zip(&replicas) {
        promote(replica).await;
        proxy.redirect_all_connections(replica).await;
    }
    let begun = Instant::now();
    while begun.elapsed() < 3 * TTL {
        let error = theirs.try_acquire(KEY).await.expect_err("it is held");
        assert!(guard.is_held(), "{error}");
        tokio::time::sleep(TTL / 20).await;
    }
    guard.release().await.unwrap();
    theirs.acquire(KEY).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn process_started_after_a_minority_lost_its_data_is_no_second_holder() {
    for settings in [&[][..], &[("appendonly", "yes"), ("appendfsync", "always")]] {
        let nodes = Nodes::start_with(3, |_, builder| {
            settings.iter().fold(builder, |builder, (name, value)| builder.config(name, &[value]))
        })
        .await;
        let proxies = nodes.proxied().await;
        let described = |urls: Vec<String>| {
            builder(urls).default_ttl(LONGEST).tuning(|tuning| tuning.max_ttl(LONGEST)).node_timeout(TTL)
        };
        wait_until_old(&nodes).await;
        // The third node is healthy, but our manager cannot reach it.
        proxies[2].refuse(true).await;
        let ours = described(proxies.iter().map(Proxy::url).collect()).build().unwrap();
        let guard = ours.acquire(LockRequest::new(KEY).without_renewal()).await.unwrap();
        // The holder does not notice the restart, and relies on its proven leases.
        proxies[0].refuse(true).await;
        nodes[0].restart_empty().await;

        let theirs = described(nodes.urls()).build().unwrap();
        wait_until_abstaining(&theirs, 1).await;
        theirs.ready().await.unwrap();
        let error = theirs.try_acquire(KEY).await.expect_err("the first node and the third are free");
        assert!(guard.is_held() && abstaining(&error)[0] <= LONGEST + TTL, "{error}");
        let warned = theirs.check().await.warnings().join("\n");
        assert!(warned.contains("does not vote for another ") && warned.contains("max_ttl"), "{warned}");

        // Two nodes are enough for other keys, and finally all of them count.
        theirs.try_acquire("order:8").await.unwrap().release().await.unwrap();
        drop(guard);
        eventually_eq(PATIENCE, "every node counts", Vec::new(), async || warnings(&theirs.check().await)).await;
    }
}

#[tokio::test]
async fn cold_start_needs_no_wait() {
    for size in [3, 5] {
        let nodes = Nodes::start(size).await;
        let manager = builder(nodes.urls()).build().unwrap();
        manager.ready().await.unwrap();
        manager.try_acquire(KEY).await.unwrap().release().await.unwrap();
        let warnings = warnings(&manager.check().await);
        assert!(warnings.is_empty(), "{warnings:?}");
    }
}

#[tokio::test]
async fn ttl_above_max_ttl_is_rejected() {
    let nodes = Nodes::start(1).await;
    let manager = connected(brief(&nodes), &nodes).await;
    let other = connected(builder(nodes.urls()).node_timeout(TTL), &nodes).await;
    let expected = "a ttl of 3s is longer than the max_ttl of 2s: raise `max_ttl`";
    let request = LockRequest::new(KEY).ttl(Duration::from_secs(3));
    let left = other.acquire(request.clone()).await.unwrap().detach();
    for error in [manager.acquire(request).await.unwrap_err(), manager.attach(left).await.unwrap_err()] {
        assert!(matches!(error, LockError::Configuration { .. }), "{error:?}");
        assert!(error.to_string().starts_with(expected), "{error}");
    }
    let too_short = brief(&nodes).default_ttl(2 * TTL).build().unwrap_err();
    assert!(too_short.to_string().contains("max_ttl"), "{too_short}");
    let nodes = Nodes::start(3).await;
    let long = || builder(nodes.urls()).default_ttl(100 * TTL);
    let unset = long().build().unwrap_err().to_string();
    assert!(unset.contains("first set `max_ttl` in all of them, and in the next deploy this `default_ttl`"), "{unset}");
    long().tuning(|tuning| tuning.max_ttl(100 * TTL)).build().unwrap();
    let too_long = brief(&nodes).tuning(|tuning| tuning.max_ttl(Duration::MAX)).build().unwrap_err();
    assert!(too_long.to_string().contains("at most 30 days"), "{too_long}");
}
