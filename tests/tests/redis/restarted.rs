//! Nodes that restart without their data: the exclusion holds, and the nodes vote again later.

use crate::support::{SIZES, acquired_everywhere, assert_nothing_left, builder, causes, connected, holders, majority};
use redlock_runtime::tuning::AfterRestart;
use redlock_runtime::{LockError, LockManager, LockManagerBuilder, LockRequest, NodeError};
use redlock_tests::{Nodes, PATIENCE, Proxy, RedisServer, eventually};
use std::time::{Duration, Instant};

const KEY: &str = "order:7";
/// Short enough to wait for its end.
const TTL: Duration = Duration::from_secs(2);

fn brief(nodes: &Nodes) -> LockManagerBuilder {
    builder(nodes.urls()).default_ttl(TTL).tuning(|tuning| tuning.max_ttl(TTL)).node_timeout(TTL / 4)
}

/// Returns a manager behind proxies, which does not notice a restart of `nodes` and relies on its proven leases. Also returns the
/// proxies.
async fn deaf(nodes: &Nodes, builder: impl FnOnce(Vec<String>) -> LockManagerBuilder) -> (LockManager, Vec<Proxy>) {
    let proxies = nodes.proxied().await;
    let manager = connected(builder(proxies.iter().map(Proxy::url).collect()), nodes).await;
    (manager, proxies)
}

async fn cut_off(proxies: &[Proxy]) {
    for proxy in proxies {
        proxy.refuse(true).await;
        proxy.cut().await;
    }
}

/// Restarts a majority of the nodes without their data, one after the other.
async fn restart_a_majority(nodes: &Nodes) {
    for node in &nodes[..majority(nodes.len())] {
        node.restart_empty().await;
    }
}

fn abstaining(error: &LockError) -> usize {
    match error {
        LockError::NoQuorum { .. } => {
            causes(error).iter().filter(|(_, cause)| matches!(cause, NodeError::RecentlyRestarted(_))).count()
        }
        _ => 0,
    }
}

/// Waits until `manager` has heard that the given number of nodes abstain. It never acquires the lock.
async fn wait_until_abstaining(manager: &LockManager, many: usize) {
    eventually(PATIENCE, "the restarted nodes abstain", async || {
        let error = manager.try_acquire(KEY).await.expect_err("the nodes may have forgotten a holder");
        if abstaining(&error) == many { Ok(()) } else { Err(error) }
    })
    .await;
}

#[tokio::test]
async fn majority_restarted_empty_allows_no_second_holder() {
    for size in [3, 5] {
        let nodes = Nodes::start(size).await;
        let ((ours, proxies), theirs) = (deaf(&nodes, builder).await, connected(builder(nodes.urls()), &nodes).await);
        let guard = ours.acquire(LockRequest::new(KEY).without_renewal()).await.unwrap();
        cut_off(&proxies).await;
        restart_a_majority(&nodes).await;
        assert!(guard.is_held());
        wait_until_abstaining(&theirs, majority(size)).await;
        assert!(guard.is_held(), "long before the end of its ttl");
        drop(guard);
    }
}

#[tokio::test]
async fn second_holder_is_possible_without_abstaining() {
    // The outcome that abstaining prevents. Users can choose this setting.
    let nodes = Nodes::start(3).await;
    let (ours, proxies) = deaf(&nodes, builder).await;
    let theirs =
        connected(builder(nodes.urls()).tuning(|tuning| tuning.after_restart(AfterRestart::Trust)), &nodes).await;
    let guard = ours.acquire(LockRequest::new(KEY).without_renewal()).await.unwrap();
    cut_off(&proxies).await;
    restart_a_majority(&nodes).await;
    let second = eventually(PATIENCE, "the nodes are trusted", async || theirs.try_acquire(KEY).await).await;
    assert!(guard.is_held() && second.is_held());
}

#[tokio::test]
async fn renewed_lock_survives_one_node_that_restarts_empty() {
    for size in [3, 5] {
        let nodes = Nodes::start(size).await;
        let (ours, theirs) = (connected(brief(&nodes), &nodes).await, connected(brief(&nodes), &nodes).await);
        let guard = acquired_everywhere(&ours, &nodes, KEY).await;
        nodes[0].restart_empty().await;
        let begun = Instant::now();
        while begun.elapsed() < 2 * TTL {
            let error = theirs.try_acquire(KEY).await.unwrap_err();
            assert!(guard.is_held(), "{error}");
            tokio::time::sleep(TTL / 20).await;
        }
        guard.release().await.unwrap();
        theirs.acquire(KEY).await.unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn acquire_waits_until_abstaining_nodes_vote_again() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let manager =
            connected(brief(&nodes).tuning(|tuning| tuning.after_restart(AfterRestart::Abstain)), &nodes).await;
        let restarted = Instant::now();
        restart_a_majority(&nodes).await;
        wait_until_abstaining(&manager, majority(size)).await;
        let guard = manager.acquire(LockRequest::new(KEY).wait(PATIENCE)).await.unwrap();
        assert!(restarted.elapsed() >= TTL, "{size} nodes: {:?}", restarted.elapsed());
        drop(guard);
        let guard = acquired_everywhere(&manager, &nodes, "order:8").await;
        guard.extend().await.unwrap();
        guard.release().await.unwrap();
        assert_nothing_left(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn timed_out_wait_reports_abstaining_nodes() {
    let nodes = Nodes::start(3).await;
    let manager = connected(builder(nodes.urls()), &nodes).await;
    restart_a_majority(&nodes).await;
    wait_until_abstaining(&manager, 2).await;
    let begun = Instant::now();
    let error = manager.acquire(LockRequest::new(KEY).wait(TTL)).await.unwrap_err();
    assert!(begun.elapsed() >= TTL, "it waits: {:?}", begun.elapsed());
    assert_eq!(abstaining(&error), 2, "{error}");
    let words = "was restarted or replaced recently, may have lost locks, and does not vote for another ";
    assert!(error.to_string().contains(words), "{error}");
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn restarted_node_abstains_for_max_ttl_and_not_for_min_hold() {
    let nodes = Nodes::start(3).await;
    let described = || builder(nodes.urls()).default_ttl(TTL).node_timeout(TTL / 4);
    let long_lease = connected(described().tuning(|tuning| tuning.max_ttl(PATIENCE)), &nodes).await;
    let long_hold = connected(described().tuning(|tuning| tuning.max_ttl(TTL)), &nodes).await;
    let report = LockRequest::new("report").min_hold(Duration::from_secs(3600));
    long_hold.acquire(report).await.unwrap().release().await.unwrap();
    restart_a_majority(&nodes).await;
    wait_until_abstaining(&long_lease, 2).await;
    let error = long_lease.try_acquire(KEY).await.unwrap_err();
    let longest = causes(&error).into_iter().filter_map(|(_, cause)| match cause {
        NodeError::RecentlyRestarted(left) => Some(*left),
        _ => None,
    });
    assert!(longest.max() > Some(2 * TTL), "{error}");
    // The abstention does not last an hour.
    drop(long_hold.acquire(LockRequest::new(KEY).wait(PATIENCE)).await.unwrap());
}

#[tokio::test]
async fn restarted_single_node_votes_at_once_unless_configured_to_abstain() {
    let nodes = Nodes::start(1).await;
    let trusting = connected(builder(nodes.urls()), &nodes).await;
    let careful =
        connected(builder(nodes.urls()).tuning(|tuning| tuning.after_restart(AfterRestart::Abstain)), &nodes).await;
    nodes[0].restart_empty().await;
    wait_until_abstaining(&careful, 1).await;
    let guard = eventually(PATIENCE, "it is trusted", async || trusting.try_acquire(KEY).await).await;
    assert_eq!(holders(&nodes, &guard).await, 1);
}

#[tokio::test]
async fn tolerated_data_loss_raises_the_quorum_and_replaces_abstaining() {
    for (size, forgetful) in [(3, 1), (5, 1), (5, 2)] {
        let nodes = Nodes::start(size).await;
        let described = |urls: Vec<String>| builder(urls).tuning(|tuning| tuning.tolerated_data_loss(forgetful));
        let ((ours, proxies), theirs) =
            (deaf(&nodes, described).await, connected(described(nodes.urls()), &nodes).await);
        // Uses no more nodes than the raised quorum needs.
        let needed = (size + forgetful + 2) / 2;
        let down = &nodes[needed..];
        down.iter().for_each(RedisServer::kill);
        let guard = ours.acquire(LockRequest::new(KEY).without_renewal()).await.unwrap();
        cut_off(&proxies).await;
        for node in nodes[..forgetful].iter().chain(down) {
            node.restart_empty().await;
        }
        // The nodes vote at once for another key, and are not a quorum for this one.
        eventually(PATIENCE, "all nodes vote", async || {
            let other = theirs.try_acquire("order:8").await.map_err(|error| error.to_string())?;
            let votes = holders(&nodes, &other).await;
            other.release().await.map_err(|error| error.to_string())?;
            if votes == size { Ok(()) } else { Err(format!("{votes} votes")) }
        })
        .await;
        let error = theirs.try_acquire(KEY).await.unwrap_err();
        assert!(error.is_contended() && guard.is_held(), "{error}");
        for proxy in &proxies {
            proxy.refuse(false).await;
        }
        drop(guard);
        let guard = theirs.acquire(KEY).await.unwrap();
        nodes[needed - 1..].iter().for_each(RedisServer::kill);
        let Err(LockError::NoQuorum { needed: said, .. }) = theirs.try_acquire("order:9").await else { panic!() };
        assert_eq!(said, needed);
        drop(guard);
    }
}

#[tokio::test]
async fn tolerated_data_loss_of_all_nodes_is_rejected() {
    let ok = |nodes| LockManager::builder().nodes((1..=nodes).map(|port| format!("redis://127.0.0.1:{port}")));
    for (nodes, forgetful) in [(1, 0), (2, 1), (3, 2), (5, 4)] {
        ok(nodes).tuning(|tuning| tuning.tolerated_data_loss(forgetful)).build().unwrap();
    }
    for (nodes, forgetful) in [(1, 1), (3, 3), (5, usize::MAX)] {
        let error = ok(nodes).tuning(|tuning| tuning.tolerated_data_loss(forgetful)).build().unwrap_err();
        assert!(matches!(error, LockError::Configuration { .. }), "{error:?}");
    }
    let error = ok(3).tuning(|tuning| tuning.tolerated_data_loss(3)).build().unwrap_err();
    let expected =
        "tolerated_data_loss(3) needs at least 4 nodes, and 10 when as many may be down as well; there are 3";
    assert_eq!(error.to_string(), expected);
    LockManager::builder().tuning(|tuning| tuning.tolerated_data_loss(1)).in_memory().unwrap_err();
}

#[tokio::test]
async fn restarted_node_votes_at_once_only_with_fsync_always() {
    for (fsync, votes) in [("always", true), ("everysec", false)] {
        let nodes =
            Nodes::start_with(3, |_, builder| builder.config("appendonly", &["yes"]).config("appendfsync", &[fsync]))
                .await;
        let (ours, theirs) =
            (connected(builder(nodes.urls()), &nodes).await, connected(builder(nodes.urls()), &nodes).await);
        let guard = acquired_everywhere(&ours, &nodes, KEY).await;
        for node in &nodes[..2] {
            node.restart().await;
        }
        if votes {
            eventually(PATIENCE, "the data is there, and counts", async || {
                let error = theirs.try_acquire(KEY).await.unwrap_err();
                theirs
                    .try_acquire("order:8")
                    .await
                    .map_err(|other| format!("{error}; {other}"))?
                    .release()
                    .await
                    .unwrap();
                nodes[2].kill();
                theirs.try_acquire("order:9").await.map(drop).map_err(|other| format!("{error}; {other}"))
            })
            .await;
            // The connections of the manager come back after a delay.
            let extended = async || guard.extend().await.map_err(|error| error.to_string());
            eventually(PATIENCE, "the lock is extended", extended).await;
        } else {
            // Uses other keys: the nodes may or may not have the last command about this one on disk.
            eventually(PATIENCE, "the restarted nodes abstain", async || match theirs.try_acquire("order:8").await {
                Ok(_) => Err("a lock".to_owned()),
                Err(error) if abstaining(&error) == 2 => Ok(()),
                Err(error) => Err(error.to_string()),
            })
            .await;
        }
    }
}

async fn durable_nodes() -> Nodes {
    Nodes::start_with(3, |_, builder| builder.config("appendonly", &["yes"]).config("appendfsync", &["always"])).await
}

/// It may have lost its latest locks in the restart, whatever its settings are after that.
#[tokio::test]
async fn durable_node_with_relaxed_fsync_abstains_after_a_restart() {
    for is_relaxed in [false, true] {
        let nodes = durable_nodes().await;
        // The node abstains for a `max_ttl`, which is long enough to see it.
        let patient = builder(nodes.urls()).default_ttl(PATIENCE).tuning(|tuning| tuning.max_ttl(PATIENCE));
        let manager = connected(patient, &nodes).await;
        if is_relaxed {
            nodes[0].inspect().command::<()>(&["CONFIG", "SET", "appendfsync", "everysec"]).await;
        }
        // Each check leaves a receipt in the data of the node. The last one has to be known, also of several checks at once.
        tokio::join!(manager.check(), manager.check(), manager.check(), manager.check());
        nodes[0].restart().await;
        let abstained = eventually(PATIENCE, "the node is connected again", async || {
            let report = manager.check().await;
            match &report.nodes[0].error {
                None if report.nodes[0].round_trip.is_some() => Ok(false),
                Some(NodeError::RecentlyRestarted(_)) => Ok(true),
                _ => Err(report.to_string()),
            }
        })
        .await;
        assert_eq!(abstained, is_relaxed);
    }
}

/// The settings of a server promise that it forgets nothing. They do not prove it.
#[tokio::test]
async fn durable_node_restored_empty_or_from_a_backup_abstains() {
    for is_empty in [true, false] {
        let nodes = durable_nodes().await;
        let proxies = nodes.proxied().await;
        let [theirs, others] =
            [connected(builder(nodes.urls()), &nodes).await, connected(builder(nodes.urls()), &nodes).await];
        nodes[1].back_up();
        // The managers leave new receipts with new connections.
        nodes[1].inspect().kill_clients().await;
        for manager in [&theirs, &others] {
            drop(acquired_everywhere(manager, &nodes, "order:9").await);
        }
        // The third node is healthy, but our manager cannot reach it.
        proxies[2].refuse(true).await;
        let ours = builder(proxies.iter().map(Proxy::url)).build().unwrap();
        let guard = ours.acquire(LockRequest::new(KEY).without_renewal()).await.unwrap();
        cut_off(&proxies[1..]).await;
        if is_empty {
            nodes[1].restart_empty().await;
        } else {
            nodes[1].restart_from_backup().await;
        }
        for manager in [&theirs, &others] {
            wait_until_abstaining(manager, 1).await;
            assert!(guard.is_held(), "long before the end of its ttl");
        }
        // Two nodes are enough for other keys.
        theirs.try_acquire("order:8").await.unwrap().release().await.unwrap();
    }
}

/// All servers have just started, and one of them has forgotten its grants.
#[tokio::test]
async fn node_restarted_soon_after_a_cold_start_abstains_for_new_processes() {
    let nodes = Nodes::start(3).await;
    let proxies = nodes.proxied().await;
    proxies[2].refuse(true).await;
    let ours = builder(proxies.iter().map(Proxy::url)).build().unwrap();
    let guard = ours.acquire(LockRequest::new(KEY).without_renewal()).await.expect("a cold start waits for nothing");
    cut_off(&proxies[1..]).await;
    // Servers that start within ten seconds of each other belong to one cold start.
    eventually(PATIENCE, "the other nodes are older", async || {
        let uptime = nodes[2].inspect().info("server", "uptime_in_seconds").await.unwrap_or_default();
        if uptime.parse::<u64>().is_ok_and(|uptime| uptime > 12) { Ok(()) } else { Err(uptime) }
    })
    .await;
    nodes[1].restart_empty().await;
    let theirs = builder(nodes.urls()).build().unwrap();
    wait_until_abstaining(&theirs, 1).await;
    assert!(guard.is_held());
    theirs.try_acquire("order:8").await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn restart_is_not_detected_without_the_info_permission() {
    let nodes =
        Nodes::start_with(3, |_, builder| builder.password("x").user("alice", "w0nder", "~* &* +@all -info")).await;
    let manager = connected(builder(nodes.urls()), &nodes).await;
    restart_a_majority(&nodes).await;
    drop(eventually(PATIENCE, "the nodes vote", async || manager.try_acquire(KEY).await).await);
}

#[tokio::test]
async fn server_with_two_names_has_one_vote() {
    let nodes = Nodes::start(2).await;
    let [address, name] = ["127.0.0.1", "localhost"].map(|host| format!("{host}:{}", nodes[0].port()));
    let urls = [format!("redis://{address}"), format!("redis://{name}"), nodes[1].url()];
    let manager = connected(builder(urls), &nodes).await;
    for restarts in 0..2 {
        nodes[1].kill();
        eventually(PATIENCE, "one vote is no majority", async || {
            let error = manager.try_acquire(KEY).await.expect_err("that is one server");
            let causes = causes(&error);
            // Either of the two may be connected first.
            let same = causes.iter().find_map(|(node, cause)| match cause {
                NodeError::SameServer(other) => Some([node.to_string(), other.to_string()]),
                _ => None,
            });
            let expected = [[address.clone(), name.clone()], [name.clone(), address.clone()]];
            if same.is_some_and(|same| expected.contains(&same)) { Ok(()) } else { Err(error) }
        })
        .await;
        nodes[1].restart_empty().await;
        if restarts == 0 {
            nodes[0].restart_empty().await;
        }
    }
}
