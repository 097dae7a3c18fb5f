//! A Redis Cluster as one node, by itself and in a quorum.

mod failover;
pub(crate) mod forged;
mod leaving;
mod listing;
mod load;
mod moving;
mod permits;
mod sets;
mod sharing;
mod tls;

use crate::support::{builder, causes, warnings};
use redlock_runtime::{LockManager, LockManagerBuilder, LockRequest, NodeError};
use redlock_tests::{Cluster, Nodes, PATIENCE, eventually, eventually_eq};

/// Returns a manager that is connected to every master.
async fn connected(cluster: &Cluster) -> LockManager {
    ready(builder([cluster.url()])).await
}

/// Returns a manager that is connected to every node.
async fn ready(builder: LockManagerBuilder) -> LockManager {
    let manager = builder.build().unwrap();
    eventually(PATIENCE, "it is ready", async || manager.ready().await).await;
    manager
}

/// Closes `managers`, waits for every answer, and checks that all masters are empty.
async fn assert_nothing_left(managers: &[&LockManager], cluster: &Cluster) {
    for manager in managers {
        if !manager.shutdown().await {
            let (views, contents) = (cluster.views().await, cluster.contents().await);
            panic!("a release was not answered: {manager:?} {contents:?}\n{views}");
        }
    }
    // Registers stay.
    cluster.assert_empty(PATIENCE, &["redlock:f:"]).await;
}

/// Returns a key on each of three masters.
async fn keys(cluster: &Cluster, prefix: &str) -> [String; 3] {
    [cluster.key_on(0, prefix).await, cluster.key_on(1, prefix).await, cluster.key_on(2, prefix).await]
}

fn has(texts: &[String], part: &str) -> bool {
    texts.iter().any(|text| text.contains(part))
}

#[tokio::test]
async fn each_cluster_master_stores_the_locks_of_its_slots() {
    let cluster = Cluster::start(3, 0).await;
    let (manager, other) = (connected(&cluster).await, connected(&cluster).await);
    for (number, key) in keys(&cluster, "order").await.into_iter().enumerate() {
        let guard = manager.acquire(&key).await.unwrap();
        assert!(cluster.member(number).inspect().get(&key).await.is_some());
        assert!(other.try_acquire(&key).await.unwrap_err().is_contended());
        guard.release().await.unwrap();
        let first = manager.acquire(LockRequest::new(&key).fencing()).await.unwrap().fencing_token();
        let second = other.acquire(LockRequest::new(&key).fencing()).await.unwrap().fencing_token();
        assert!(first < second, "{first} {second}");
    }
    let stats = manager.stats();
    let [node] = &stats.nodes[..] else { panic!("{stats:?}") };
    assert!(node.is_up && node.commands > 6 && node.round_trip.count() > 6 && node.errors == 0, "{node:?}");
    assert_nothing_left(&[&manager, &other], &cluster).await;
}

/// Fails if the time of a cluster includes masters without locks, which report it only with their first connection.
#[tokio::test]
async fn fencing_numbers_use_the_time_of_all_cluster_masters() {
    let cluster = Cluster::start(3, 0).await;
    let manager = connected(&cluster).await;
    let asked = async || {
        let mut asked = 0;
        for number in 0..3 {
            asked += cluster.member(number).inspect().calls("time").await;
        }
        asked
    };
    let before = asked().await;
    let key = &keys(&cluster, "order").await[0];
    manager.acquire(LockRequest::new(key).fencing()).await.unwrap().release().await.unwrap();
    // The trial of `ready` has asked one of them, and another one has the lock.
    eventually_eq(PATIENCE, "the others are asked", true, async || asked().await >= before + 2).await;
}

#[tokio::test]
async fn release_hands_the_lock_to_a_waiter_on_each_cluster_master() {
    let cluster = Cluster::start(3, 0).await;
    let (manager, other) = (connected(&cluster).await, connected(&cluster).await);
    for key in keys(&cluster, "order").await {
        let held = manager.acquire(&key).await.unwrap();
        let waiting = tokio::spawn({
            let (other, key) = (other.clone(), key.clone());
            async move { other.acquire(LockRequest::new(key).wait(PATIENCE)).await }
        });
        let node = cluster.member(cluster.owner(&key).await).inspect();
        eventually(PATIENCE, "it waits in the queue", async || {
            match node.command::<usize>(&["ZCARD", &format!("{{{key}}}:q")]).await {
                1 => Ok(()),
                other => Err(other),
            }
        })
        .await;
        held.release().await.unwrap();
        waiting.await.unwrap().unwrap().release().await.unwrap();
    }
    assert_nothing_left(&[&manager, &other], &cluster).await;
}

#[tokio::test]
async fn check_lists_cluster_masters_and_unserved_slots() {
    let cluster = Cluster::start(3, 1).await;
    let manager = connected(&cluster).await;
    let report = manager.check().await;
    let node = &report.nodes[0];
    assert_eq!(
        (node.error.as_ref(), node.capabilities.locks, node.capabilities.fencing),
        (None, Some(true), Some(true))
    );
    let members: Vec<_> = node.members.iter().map(|member| (&*member.slots, member.replicas)).collect();
    let mut sorted = members.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [("0-5461", 1), ("10924-16383", 1), ("5462-10923", 1)], "{report}");
    assert!(
        report.to_string().contains(&format!("127.0.0.1:{} with slots 0-5461 and 1 replica", cluster.member(0).port())),
        "{report}"
    );

    for (_, member) in cluster.running() {
        // Replicas have no slots, so the command fails there.
        let _ = member.inspect().try_command::<()>(&["CLUSTER", "DELSLOTS", "7", "9"]).await;
    }
    eventually(PATIENCE, "the gap is seen", async || {
        let warnings = manager.check().await.warnings();
        if has(&warnings, "no member of the cluster serves the slots 7 9") { Ok(()) } else { Err(warnings) }
    })
    .await;
    assert!(manager.ready().await.is_err());
}

#[tokio::test]
async fn cluster_url_of_a_plain_server_is_rejected_with_the_remedy() {
    let nodes = Nodes::start(1).await;
    let manager = builder([nodes[0].url().replacen("redis", "redis+cluster", 1)]).build().unwrap();
    let error = manager.ready().await.unwrap_err();
    assert!(error.to_string().contains("write redis:// instead of redis+cluster://"), "{error}");
    let error = manager.try_acquire("order:7").await.unwrap_err();
    assert!(matches!(causes(&error)[..], [(_, NodeError::Unsupported(_))]), "{error}");
}

#[tokio::test]
async fn cluster_counts_as_one_vote_beside_two_servers() {
    let (cluster, nodes) = (Cluster::start(3, 0).await, Nodes::start(2).await);
    let urls = || nodes.urls().into_iter().chain([cluster.url()]);
    let manager = builder(urls()).build().unwrap();
    let other = builder(urls()).build().unwrap();
    for manager in [&manager, &other] {
        eventually(PATIENCE, "every node counts", async || {
            let report = manager.check().await;
            if report.nodes.iter().all(|node| node.error.is_none()) { Ok(()) } else { Err(report.to_string()) }
        })
        .await;
    }
    let key = cluster.key_on(1, "order").await;
    nodes[0].kill();
    let held = manager.acquire(&key).await.unwrap();
    assert!(other.try_acquire(&key).await.unwrap_err().is_contended(), "the cluster and a server are a majority");
    held.release().await.unwrap();
    cluster.member(1).kill();
    let error = manager.try_acquire(&key).await.unwrap_err();
    let is_gone =
        |(_, error): &&(&str, &NodeError)| matches!(error, NodeError::Unreachable(_) | NodeError::Disconnected);
    assert_eq!(causes(&error).iter().filter(is_gone).count(), 2, "{error}");
    let elsewhere = cluster.key_on(2, "order").await;
    manager.try_acquire(&elsewhere).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn cluster_with_two_urls_has_one_vote() {
    let (cluster, nodes) = (Cluster::start(3, 0).await, Nodes::start(1).await);
    let second = format!("redis+cluster://127.0.0.1:{}", cluster.member(1).port());
    let manager = builder([cluster.url(), second, nodes[0].url()]).build().unwrap();
    eventually(PATIENCE, "the others are a majority", async || manager.ready().await).await;
    let report = manager.check().await;
    let is_same = |error: &Option<NodeError>| matches!(error, Some(NodeError::SameServer(_)));
    assert_eq!(report.nodes.iter().filter(|node| is_same(&node.error)).count(), 1, "{report}");
    nodes[0].kill();
    let error = manager.try_acquire("order:7").await.unwrap_err();
    assert!(causes(&error).iter().any(|(_, error)| matches!(error, NodeError::SameServer(_))), "{error}");
}

#[tokio::test]
async fn check_names_missing_permissions_of_a_cluster_user() {
    let cases = [
        ("-cluster", "grant it `+cluster"),
        // Servers before Redis 7 cannot forbid a single subcommand.
        ("-cluster +cluster|slots +cluster|info", "grant it `+cluster|myid`"),
        ("-publish", "publish"),
        ("-asking", "grant it `+asking`"),
    ];
    for (lacks, expected) in cases {
        let cluster =
            Cluster::start_with(2, 0, |builder| builder.user("app", "pw", &format!("~* &* +@all {lacks}"))).await;
        let manager = builder([cluster.url()]).build().unwrap();
        let report = eventually(PATIENCE, "there is a report", async || {
            let report = manager.check().await;
            if report.warnings().is_empty() { Err(()) } else { Ok(report) }
        })
        .await;
        // Servers before Redis 7 do not name the subcommand.
        let expected = if has(&warnings(&report), "or its subcommand") { "grant it `+cluster`" } else { expected };
        assert!(has(&warnings(&report), expected), "{lacks}: {report} {:?}", report.warnings());
        assert!(manager.shutdown().await);
    }
}
