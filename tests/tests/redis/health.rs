//! `ready` fails for every problem that prevents locks, and names the remedy. `check` also reports risks. Both leave no data behind.

use crate::support::{
    GENEROUS, assert_nothing_left, barrier, builder, causes, connected, many_guards, polled, warnings,
};
use redlock_runtime::{LockError, LockGuard, LockManager, LockRequest, NodeError};
use redlock_tests::{Builder, FakeServer, Flow, Nodes, PATIENCE, Proxy, RedisServer, eventually, eventually_eq};
use std::time::Duration;

pub(crate) fn at(url: &str) -> LockManager {
    builder([url]).build().unwrap()
}

fn has(texts: &[String], part: &str) -> bool {
    texts.iter().any(|text| text.contains(part))
}

/// Returns the reason why the only node is unusable, which `ready` and `check` must agree on.
pub(crate) async fn unfit(manager: &LockManager) -> String {
    let error = manager.ready().await.expect_err("it is not ready");
    let [(_, NodeError::Unsupported(reason))] = causes(&error)[..] else { panic!("{error:?}") };
    let report = manager.check().await;
    assert_eq!(report.nodes[0].error, Some(NodeError::Unsupported(reason.clone())), "{report}");
    assert!(has(&report.warnings(), reason), "{:?}", report.warnings());
    assert_eq!(error.to_string().lines().count(), 1, "{error}");
    reason.to_string()
}

pub(crate) async fn keys(server: &RedisServer) -> u64 {
    server.inspect().keys().await.len() as u64
}

#[tokio::test]
async fn cluster_member_is_rejected_as_a_single_node() {
    let server = RedisServer::builder().config("cluster-enabled", &["yes"]).start().await;
    let slots = (0..16384).map(|slot| slot.to_string()).collect::<Vec<_>>();
    let all = ["CLUSTER", "ADDSLOTS"].into_iter().chain(slots.iter().map(String::as_str)).collect::<Vec<_>>();
    server.inspect().command::<()>(&all).await;
    let manager = at(&server.url());
    let reason = unfit(&manager).await;
    assert!(reason.starts_with("is a member of a cluster") && reason.contains("write redis+cluster://"), "{reason}");
    let error = manager.try_acquire("order:7").await.unwrap_err();
    assert!(matches!(causes(&error)[..], [(_, NodeError::Unsupported(_))]), "{error}");

    let manager = at(&server.url().replacen("redis", "redis+cluster", 1));
    eventually(PATIENCE, "it serves every key", async || manager.ready().await).await;
    let capabilities = manager.check().await.nodes[0].capabilities;
    assert_eq!((capabilities.locks, capabilities.fencing), (Some(true), Some(true)));
    assert!(
        manager.try_acquire("order:7").await.is_ok()
            && manager.try_acquire(LockRequest::new("order:8").fencing()).await.is_ok()
    );
}

#[tokio::test]
async fn replica_and_sentinel_are_rejected_as_nodes() {
    let master = RedisServer::start().await;
    let replica = RedisServer::builder().replica_of(&master).start().await;
    let manager = at(&replica.url());
    let error = manager.ready().await.unwrap_err();
    assert!(matches!(causes(&error)[..], [(_, NodeError::Replica)]), "{error}");
    assert!(has(&manager.check().await.warnings(), "give the address of a master"));

    let sentinel = RedisServer::builder().sentinel_of(&master).start().await;
    let manager = at(&sentinel.url());
    let error = manager.ready().await.unwrap_err();
    assert!(
        error.to_string().contains("is a Sentinel, which takes no locks: write redis+sentinel://host:26379/name"),
        "{error}"
    );
    assert!(has(&manager.check().await.warnings(), "is a Sentinel"));
}

#[tokio::test]
async fn check_warns_of_replicas_that_may_be_promoted() {
    for (least, expected) in [("0", "set min-replicas-to-write to 1"), ("1", "min-replicas-to-write 1 does not wait")] {
        let master = RedisServer::builder().config("min-replicas-to-write", &[least]).start().await;
        let manager = at(&master.url());
        if least == "1" {
            // Every write is refused until a replica is attached. The condition is temporary, so `ready` waits for it.
            let error = manager.ready().await.unwrap_err();
            assert!(error.to_string().contains("NOREPLICAS"), "{error}");
        }
        let _replica = RedisServer::builder().replica_of(&master).start().await;
        eventually(PATIENCE, "the replica is near", async || manager.ready().await).await;
        let report = manager.check().await;
        let warnings = warnings(&report);
        assert!(warnings.len() == 1 && warnings[0].contains("1 replica is attached"), "{warnings:?}");
        assert!(warnings[0].contains(expected), "{warnings:?}");
        assert!(report.to_string().contains(", master with 1 replica, "), "{report}");
    }
}

#[tokio::test]
async fn node_slower_than_the_node_timeout_is_reported_with_the_remedy() {
    let server = RedisServer::start().await;
    let proxy = Proxy::to(&server).await;
    // A fixed timeout, because the adaptive timeout depends on the first answers, which are slow on a busy machine.
    let near = LockManager::builder().node(proxy.url()).node_timeout(Duration::from_millis(50)).build().unwrap();
    eventually(PATIENCE, "the node is near", async || near.ready().await).await;
    proxy.delay(Duration::from_millis(40), Duration::from_millis(40));
    // The network can only add to this delay.
    let reason = unfit_by(&near.ready().await.unwrap_err());
    assert!(reason.contains("and the node timeout is 50ms") && reason.contains("set `node_timeout` to "), "{reason}");
    assert!(has(&near.check().await.warnings(), "set `node_timeout` to "));
    let far = LockManager::builder().node(proxy.url()).node_timeout(GENEROUS).build().unwrap();
    far.ready().await.unwrap();
    assert!(warnings(&far.check().await).is_empty());
    proxy.pass();
    assert_eq!(keys(&server).await, 0);
}

/// The node timeout adapts to the distance, and has not adapted yet.
#[tokio::test]
async fn node_with_increased_latency_still_counts() {
    let server = RedisServer::start().await;
    let proxy = Proxy::to(&server).await;
    let manager = LockManager::builder().node(proxy.url()).build().unwrap();
    eventually(PATIENCE, "the node is near", async || manager.ready().await).await;
    // The round trip of 160 ms is longer than the initial timeout of 50 ms, and shorter than the largest adaptive timeout.
    proxy.delay(Duration::from_millis(80), Duration::from_millis(80));
    let report = manager.check().await;
    let warnings = warnings(&report);
    assert!(
        !has(&warnings, "every answer comes too late") && !has(&warnings, "no lock can be obtained"),
        "{warnings:?}"
    );
    assert_eq!(report.nodes[0].error, None, "{report}");
    eventually(PATIENCE, "a lock is obtained", async || manager.acquire("order:7").await.map(drop)).await;
    proxy.pass();
}

/// The third node was not asked, because too few others were connected.
#[tokio::test]
async fn nodes_still_connecting_are_not_reported_as_timed_out() {
    let (server, silent) =
        (RedisServer::start().await, [FakeServer::start_silent().await, FakeServer::start_silent().await]);
    let silent = silent.each_ref().map(|silent| format!("{}?connect_timeout_ms=60000", silent.url()));
    let manager = builder([server.url()].into_iter().chain(silent)).build().unwrap();
    let error = manager.ready().await.unwrap_err();
    let causes = causes(&error);
    let texts: Vec<_> = causes.iter().map(|(_, cause)| cause.to_string()).collect();
    assert!(!has(&texts, "no answer within"), "{texts:?}");
    // The first node is connected, and may abstain because it has just started.
    let texts: Vec<_> = texts.into_iter().filter(|text| !text.contains("does not vote for another")).collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
    let expected = "not connected: the first connection is being made, now: login (HELLO) at 127.0.0.1:";
    assert!(texts.iter().all(|text| text.starts_with(expected)), "{texts:?}");
}

fn unfit_by(error: &LockError) -> String {
    match (error, &causes(error)[..]) {
        (LockError::Refused { .. }, [(_, NodeError::Unsupported(reason))]) => reason.to_string(),
        _ => panic!("{error:?}"),
    }
}

#[tokio::test]
async fn node_that_adds_no_fault_tolerance_is_reported() {
    for (size, expected) in
        [(2, "2 nodes survive no more failures than 1"), (4, "4 nodes survive no more failures than 3")]
    {
        let nodes = Nodes::start(size).await;
        let manager = connected(builder(nodes.urls()), &nodes).await;
        let warnings = warnings(&manager.check().await);
        assert!(warnings.len() == 1 && warnings[0].contains(expected), "{warnings:?}");
    }
    let nodes = Nodes::start(3).await;
    let manager = connected(builder(nodes.urls()), &nodes).await;
    assert!(warnings(&manager.check().await).is_empty());
}

#[tokio::test]
async fn check_warns_of_a_single_server_without_full_persistence() {
    let kinds: [(&[&str], Option<&str>); 4] = [
        (&["save", ""], Some("loses every lock")),
        (&["save", "3600 1"], Some("loses the locks since its last snapshot")),
        (&["appendonly", "yes"], Some("loses the locks of the last second")),
        (&["appendonly", "yes", "appendfsync", "always"], None),
    ];
    for (settings, expected) in kinds {
        let configure =
            |builder: Builder, pair: &[&str]| builder.config(pair[0], &pair[1].split(' ').collect::<Vec<_>>());
        let server = settings.chunks(2).fold(RedisServer::builder(), configure).start().await;
        let warnings = at(&server.url()).check().await.warnings();
        assert_eq!(warnings.len(), usize::from(expected.is_some()), "{warnings:?}");
        assert!(expected.is_none_or(|expected| warnings[0].contains(expected)), "{warnings:?}");
    }
}

#[tokio::test]
async fn ready_does_not_wait_for_permanent_errors() {
    let server = RedisServer::builder().password("secret").start().await;
    let wrong = at(&server.url().replace("secret", "terces"));
    let error = wrong.ready().await.unwrap_err();
    let (LockError::Refused { .. }, [(_, NodeError::Refused(reply))]) = (&error, &causes(&error)[..]) else {
        panic!("{error:?}")
    };
    assert!(reply.to_string().ends_with(" failed: correct the user and password in the URL of the node"), "{error}");
    assert!(!error.to_string().contains("terces"), "{error}");
    assert!(has(&wrong.check().await.warnings(), "correct the user and password in the URL"), "{error}");

    // Two of three nodes are replicas. A silent third node does not change the report.
    let master = RedisServer::start().await;
    let mut servers = Vec::new();
    for _ in 0..2 {
        servers.push(RedisServer::builder().replica_of(&master).start().await);
    }
    master.freeze();
    let manager = builder(servers.iter().map(RedisServer::url)).node(master.url()).build().unwrap();
    let error = manager.ready().await.unwrap_err();
    let replicas = causes(&error).iter().filter(|(_, error)| **error == NodeError::Replica).count();
    assert_eq!(replicas, 2, "{error}");
    master.thaw();
}

#[tokio::test]
async fn manager_is_ready_if_a_majority_works() {
    let nodes = Nodes::start(3).await;
    let manager = connected(builder(nodes.urls()), &nodes).await;
    nodes[0].freeze();
    manager.ready().await.unwrap();
    nodes[1].inspect().command::<()>(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let error = manager.ready().await.unwrap_err();
    assert!(error.to_string().contains("OOM"), "{error}");
    let report = manager.check().await;
    assert!(has(&report.warnings(), "raise its maxmemory"), "{:?}", report.warnings());
    nodes[1].inspect().command::<()>(&["CONFIG", "SET", "maxmemory", "0"]).await;
    manager.ready().await.unwrap();
    nodes[0].thaw();
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn check_dropped_at_any_poll_leaves_no_keys() {
    let nodes = Nodes::start(3).await;
    for most in 1..40 {
        let manager = connected(builder(nodes.urls()), &nodes).await;
        let report = polled(manager.check(), most).await;
        assert_nothing_left(&manager, &nodes).await;
        if report.is_some() {
            return;
        }
    }
    panic!("it never ended");
}

#[tokio::test]
async fn check_cut_off_during_its_trial_lock_leaves_no_keys() {
    let nodes = Nodes::start(1).await;
    let proxies = nodes.proxied().await;
    let manager = connected(builder([proxies[0].url()]), &nodes).await;
    manager.check().await;
    let before = nodes[0].inspect().calls("evalsha").await;
    let check = tokio::spawn({
        let manager = manager.clone();
        async move { manager.check().await }
    });
    // The trial is the second round trip. Its replies are lost after the server has executed it.
    eventually(PATIENCE, "the trial has begun", async || {
        let calls = nodes[0].inspect().calls("evalsha").await;
        if calls > before { Ok(()) } else { Err(calls) }
    })
    .await;
    proxies[0].replies(Flow::Drop);
    proxies[0].cut().await;
    proxies[0].pass();
    check.await.unwrap();
    eventually(PATIENCE, "the manager is well again", async || manager.ready().await).await;
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn replies_about_the_trial_lock_of_a_check_trigger_no_commands() {
    let nodes = Nodes::start(1).await;
    let manager = connected(builder(nodes.urls()), &nodes).await;
    manager.check().await;
    let before = nodes[0].inspect().calls("evalsha").await;
    manager.check().await;
    assert_nothing_left(&manager, &nodes).await;
    // One check of permissions, and all commands of the trial except the two plain SETs.
    assert_eq!(nodes[0].inspect().calls("evalsha").await - before, 1 + 11);
}

#[tokio::test]
async fn check_reloads_scripts_after_a_script_flush() {
    let nodes = Nodes::start(1).await;
    let manager = connected(builder(nodes.urls()), &nodes).await;
    nodes.flush_scripts().await;
    let report = manager.check().await;
    assert_eq!(report.nodes[0].capabilities.locks, Some(true), "{report}");
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn checks_stay_accurate_under_load() {
    let nodes = Nodes::start(3).await;
    let manager = connected(builder(nodes.urls()), &nodes).await;
    let guards = many_guards(&manager, 300).await;
    let busy = tokio::spawn({
        let manager = manager.clone();
        async move {
            for _ in 0..50 {
                for i in 0..10 {
                    manager
                        .with_lock(LockRequest::new(format!("busy:{i}")), async |_| Ok::<_, LockError>(()))
                        .await
                        .unwrap();
                }
            }
        }
    });
    let mut checks = 0;
    while !busy.is_finished() {
        let (one, other) = tokio::join!(manager.check(), manager.check());
        for report in [one, other] {
            assert!(warnings(&report).is_empty(), "{:?}", report.warnings());
            assert!(report.nodes.iter().all(|node| node.capabilities.locks == Some(true)), "{report}");
        }
        manager.ready().await.unwrap();
        checks += 1;
    }
    busy.await.unwrap();
    assert!(checks > 0 && guards.iter().all(LockGuard::is_held));
    drop(guards);
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn check_accepts_a_resp2_server() {
    let nodes = Nodes::start_with(1, |_, builder| builder.without_command("HELLO")).await;
    let manager = connected(builder(nodes.urls()), &nodes).await;
    let report = manager.check().await;
    let capabilities = report.nodes[0].capabilities;
    assert_eq!((capabilities.locks, capabilities.pub_sub), (Some(true), Some(true)), "{report}");
    barrier(&nodes).await;
    eventually_eq(PATIENCE, "nothing is left", 0, async || keys(&nodes[0]).await).await;
}

#[tokio::test]
async fn in_memory_manager_is_ready() {
    let manager = LockManager::in_memory();
    manager.ready().await.unwrap();
    let report = manager.check().await;
    assert_eq!(report.nodes[0].capabilities.locks, Some(true), "{report}");
    assert_eq!(report.nodes[0].capabilities.pub_sub, Some(true), "{report}");
}
