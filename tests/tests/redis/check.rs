//! Reports of a manager about its nodes.

use crate::support::{GENEROUS, SIZES, assert_nothing_left, builder, connected, manager, warnings};
use redlock_runtime::admin::{NodeReport, Persistence};
use redlock_runtime::{LockManager, LockRequest, NodeError};
use redlock_tests::{Builder, Nodes, PATIENCE, RedisServer, eventually};
use std::time::Duration;

async fn report(configure: impl Fn(Builder) -> Builder) -> (NodeReport, Vec<String>) {
    let server = configure(RedisServer::builder()).start().await;
    let report = builder([server.url()]).build().unwrap().check().await;
    let warnings = warnings(&report);
    (report.nodes[0].clone(), warnings)
}

#[tokio::test]
async fn check_shows_one_line_per_healthy_node() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let manager = manager(&nodes).await;
        let report = manager.check().await;
        assert_eq!((report.nodes.len(), report.needed), (size, size / 2 + 1));
        let warnings = report.warnings();
        assert_eq!(warnings.len(), size, "{warnings:?}");
        // A restart costs a single server its locks, and several servers votes.
        let expected = if size == 1 { "loses every lock when it restarts" } else { ": restarted " };
        assert!(warnings.iter().all(|warning| warning.contains(expected)), "{warnings:?}");
        let text = report.to_string();
        for (line, server) in text.lines().zip(nodes.iter()) {
            let product = product(server).await;
            let begin = format!("127.0.0.1:{}: {product}, master, answered in ", server.port());
            assert!(line.starts_with(&begin), "{line}");
            assert!(line.contains(", no persistence, no eviction, clock "), "{line}");
            assert!(line.ends_with(", RESP3, scripts, wake-ups, locks work"), "{line}");
        }
        assert_eq!(text.lines().count(), size);
        let node = &report.nodes[0];
        let clock = node.clock.unwrap();
        assert!(clock.offset <= clock.uncertainty + Duration::from_millis(100), "one machine has one clock: {clock}");
        assert_eq!(node.run_id.as_deref(), nodes[0].inspect().info("server", "run_id").await.as_deref());
        assert_nothing_left(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn process_with_windows_warns_if_too_few_servers_keep_data() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let warned = async || {
        let warnings = warnings(&manager.check().await);
        assert!(warnings.iter().all(|warning| warning.contains("windows of once_per")), "{warnings:?}");
        warnings.into_iter().next()
    };
    assert_eq!(warned().await, None, "no window was used");
    manager
        .acquire(LockRequest::new("report").once_per(Duration::from_secs(60)))
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    let warning = warned().await.unwrap();
    assert!(warning.starts_with("3 of 3 servers keep no data over a restart"), "{warning}");
    for node in &nodes[..2] {
        node.inspect().command::<()>(&["CONFIG", "SET", "appendonly", "yes"]).await;
    }
    assert_eq!(warned().await, None, "a majority keeps its data");
}

/// Returns the name of the server software, as the server reports it.
async fn product(server: &RedisServer) -> String {
    match server.inspect().info("server", "valkey_version").await {
        Some(version) => format!("Valkey {version}"),
        None => format!("Redis {}", server.inspect().info("server", "redis_version").await.unwrap()),
    }
}

#[tokio::test]
async fn check_reports_eviction_and_replicas() {
    let (evicting, warnings) =
        report(|builder| builder.config("maxmemory", &["100mb"]).config("maxmemory-policy", &["allkeys-lru"])).await;
    assert_eq!(evicting.eviction.as_deref(), Some("allkeys-lru"));
    assert!(warnings[0].contains("maxmemory-policy allkeys-lru may remove locks"), "{warnings:?}");
    let (unlimited, warnings) = report(|builder| builder.config("maxmemory-policy", &["allkeys-lru"])).await;
    assert_eq!((unlimited.eviction.as_deref(), warnings.len()), (Some(""), 0));

    let master = RedisServer::start().await;
    let (replica, warnings) = report(|builder| builder.replica_of(&master)).await;
    assert_eq!((replica.error, replica.is_replica), (Some(NodeError::Replica), Some(true)));
    assert!(warnings[0].contains("is a replica"), "{warnings:?}");
    assert_eq!(
        warnings.last().map(String::as_str),
        Some("no lock can be obtained until this is fixed: 1 of 1 nodes needed, 0 count")
    );
}

#[tokio::test]
async fn check_distinguishes_kinds_of_persistence() {
    let kinds: [(&[(&str, &str)], &str); 4] = [
        (&[], "no persistence"),
        (&[("save", "3600 1")], "snapshots"),
        (&[("appendonly", "yes")], "append-only file (fsync everysec)"),
        (&[("appendonly", "yes"), ("appendfsync", "always")], "append-only file (fsync always)"),
    ];
    for (settings, expected) in kinds {
        let configure = |builder: Builder| {
            let add = |builder: Builder, (directive, values): &(&str, &str)| {
                builder.config(directive, &values.split(' ').collect::<Vec<_>>())
            };
            settings.iter().fold(builder, add)
        };
        let (node, _) = report(configure).await;
        assert_eq!(node.persistence.as_ref().map(Persistence::to_string).as_deref(), Some(expected));
        assert!(node.to_string().contains(expected), "{node}");
    }
}

#[tokio::test]
async fn check_shows_unknown_for_commands_denied_by_the_acl() {
    let rules = "~* +set +get +del +pttl +pexpire +time +zadd +zcard +zcount +zpopmin +zrange +zrank +zrem +zscore +evalsha +eval +script|load";
    for is_old in [false, true] {
        let (node, warnings) = report(|builder| {
            let builder = builder.password("x").user("alice", "w0nder", &format!("resetchannels {rules}"));
            if is_old { builder.without_command("HELLO") } else { builder }
        })
        .await;
        assert_eq!((&node.error, &node.version, &node.persistence), (&None, &None, &None), "{node}");
        assert_eq!((node.is_replica, node.eviction.as_deref()), (None, None), "{node}");
        assert_eq!((node.capabilities.resp3, node.capabilities.scripts), (!is_old, true), "{node}");
        assert_eq!(node.capabilities.pub_sub, Some(false), "{node}");
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        let protocol = if is_old { "RESP2" } else { "RESP3" };
        let text = node.to_string();
        assert!(text.contains(", persistence unknown, eviction unknown, clock "), "{text}");
        assert!(text.ends_with(&format!(", {protocol}, scripts, no wake-ups, locks work")), "{text}");
    }
}

#[tokio::test]
async fn check_finds_the_notification_connection_of_a_resp2_server() {
    let (node, warnings) = report(|builder| builder.without_command("HELLO")).await;
    assert_eq!((node.capabilities.resp3, node.capabilities.pub_sub), (false, Some(true)), "{node}");
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[tokio::test]
async fn check_is_not_blocked_by_frozen_dead_or_restarted_nodes() {
    let nodes = Nodes::start(3).await;
    let manager = connected(builder(nodes.urls()), &nodes).await;
    nodes[0].freeze();
    nodes[1].kill();
    nodes[2].restart_empty().await;
    let report = eventually(PATIENCE, "each is known", async || {
        let report = tokio::time::timeout(GENEROUS, manager.check()).await.expect("it does not wait for ever");
        let errors: Vec<_> = report.nodes.iter().map(|node| node.error.clone()).collect();
        match &errors[..] {
            [Some(NodeError::TimedOut(_)), Some(NodeError::Unreachable(_)), Some(NodeError::RecentlyRestarted(_))] => {
                Ok(report)
            }
            _ => Err(errors),
        }
    })
    .await;
    assert!(report.nodes[2].to_string().contains("does not vote for another "), "{report}");
    let warnings = report.warnings();
    assert_eq!(warnings.len(), 4, "{warnings:?}");
    assert!(warnings[3].contains("2 of 3 nodes needed, 0 count"), "{warnings:?}");
    nodes[0].thaw();
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn check_measures_the_clock_offset_of_a_server() {
    let server = RedisServer::builder().own_clock().start().await;
    for seconds in [90, -90] {
        server.set_clock(seconds);
        let report = builder([server.url()]).build().unwrap().check().await;
        let clock = report.nodes[0].clock.unwrap();
        assert_eq!(clock.is_ahead, seconds > 0, "{clock}");
        assert!(
            clock.offset.abs_diff(Duration::from_secs(90)) <= clock.uncertainty + Duration::from_millis(100),
            "{clock}"
        );
        let warnings = warnings(&report);
        let expected = format!("its clock is {:.1?}", clock.offset);
        assert!(warnings.len() == 1 && warnings[0].contains(&expected), "{warnings:?}");
    }
}

#[tokio::test]
async fn check_of_an_in_memory_manager_has_no_warnings() {
    let report = LockManager::in_memory().check().await;
    assert!(report.warnings().is_empty() && report.to_string().starts_with("memory: "), "{report}");
}
