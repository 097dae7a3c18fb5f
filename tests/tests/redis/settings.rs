//! Settings on which all processes of the same locks must agree: only differences are reported.

use crate::support::{builder, connected};
use redlock_runtime::tuning::AfterRestart;
use redlock_runtime::{LockManager, LockManagerBuilder};
use redlock_tests::{Nodes, PATIENCE, RedisServer, eventually, eventually_eq};
use std::time::Duration;

const SETTINGS: &str = "redlock:f:settings";

/// Returns the warnings of `check` about other settings.
async fn differences(manager: &LockManager) -> Vec<String> {
    let warnings = manager.check().await.warnings();
    warnings.into_iter().filter(|warning| warning.contains("have other settings")).collect()
}

fn usual(urls: &[String]) -> LockManagerBuilder {
    builder(urls[..3].to_vec())
}

/// Returns the settings that processes have left at `node`, the oldest first.
async fn left(node: &RedisServer) -> Vec<String> {
    node.inspect().command(&["ZRANGE", SETTINGS, "0", "-1"]).await
}

/// Returns the clock of `node`, in milliseconds.
async fn now(node: &RedisServer) -> u64 {
    let [seconds, micros]: [u64; 2] = node.inspect().command(&["TIME"]).await;
    seconds * 1000 + micros / 1000
}

/// Starts servers that were used before: their markers are not new.
async fn used_servers(count: usize) -> Nodes {
    let nodes = Nodes::start(count).await;
    for (index, node) in nodes.iter().enumerate() {
        let marker = format!("a{index} {}", now(node).await - 120_000);
        node.inspect().command::<()>(&["SET", "redlock:f:server", &marker]).await;
    }
    nodes
}

#[tokio::test]
async fn settings_are_stored_by_processes_that_acquire_locks_only() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let idle = builder(nodes.urls()).build().unwrap();
        eventually(PATIENCE, "it is connected", async || {
            let stats = idle.stats().nodes;
            if stats.iter().all(|node| node.is_up) { Ok(()) } else { Err(stats) }
        })
        .await;
        assert_eq!(left(&nodes[0]).await, [""; 0]);
        let _manager = connected(builder(nodes.urls()), &nodes).await;
        for node in nodes.iter() {
            eventually_eq(PATIENCE, "its settings are there", 1, async || left(node).await.len()).await;
            let lifetime = node.inspect().pttl(SETTINGS).await;
            assert!((1..=60_000).contains(&lifetime), "{lifetime}");
        }
    }
}

#[tokio::test]
async fn different_settings_are_reported_by_both_processes() {
    type Configure = fn(&[String]) -> LockManagerBuilder;
    let table: [(Configure, Configure, &str); 6] = [
        (usual, |urls| usual(urls).tuning(|tuning| tuning.max_ttl(Duration::from_secs(120))), "(max_ttl: "),
        (usual, |urls| usual(urls).tuning(|tuning| tuning.after_restart(AfterRestart::Trust)), "(after_restart: "),
        (
            usual,
            |urls| usual(urls).tuning(|tuning| tuning.tolerated_data_loss(1)),
            "(quorum, tolerated_data_loss, after_restart: ",
        ),
        (usual, |urls| builder(urls[1..4].to_vec()), "(list of nodes: "),
        (usual, |urls| builder(urls.to_vec()), "(number of nodes, quorum, list of nodes: "),
        // The most dangerous change, in a case where one of the processes has no marker.
        (usual, |urls| builder(urls[..1].to_vec()), "(number of nodes, quorum, after_restart: "),
    ];
    for (ours, theirs, expected) in table {
        let nodes = used_servers(4).await;
        let urls = nodes.urls();
        let (ours, theirs) = (ours(&urls).build().unwrap(), theirs(&urls).build().unwrap());
        for manager in [&ours, &theirs] {
            eventually(PATIENCE, "the difference is reported", async || {
                let _settings_of_the_other_process = (differences(&ours).await, differences(&theirs).await);
                let warnings = differences(manager).await;
                let is_expected = matches!(&warnings[..], [warning] if warning.contains(expected));
                if is_expected { Ok(()) } else { Err(format!("{expected}: {warnings:?}")) }
            })
            .await;
        }
    }
}

#[tokio::test]
async fn equal_settings_are_not_reported_even_after_an_empty_restart() {
    let nodes = used_servers(3).await;
    let managers = [connected(builder(nodes.urls()), &nodes).await, connected(builder(nodes.urls()), &nodes).await];
    for manager in &managers {
        assert_eq!(differences(manager).await, [""; 0]);
    }
    let [before] = left(&nodes[1]).await.try_into().unwrap();
    assert!(before.contains(" nodes="), "{before}");
    // The server has a new marker now. The digest of all markers is omitted until every process knows it.
    nodes[0].restart_empty().await;
    eventually(PATIENCE, "one process has left settings without a digest", async || {
        assert_eq!(differences(&managers[0]).await, [""; 0]);
        let left = left(&nodes[1]).await;
        if left.iter().any(|line| !line.contains(" nodes=")) { Ok(()) } else { Err(left) }
    })
    .await;
    assert_eq!(differences(&managers[1]).await, [""; 0]);
}

#[tokio::test]
async fn namespaces_are_compared_separately() {
    let nodes = Nodes::start(1).await;
    let shop = builder(nodes.urls()).namespace("shop").build().unwrap();
    let other = builder(nodes.urls())
        .namespace("other")
        .tuning(|tuning| tuning.after_restart(AfterRestart::Abstain))
        .build()
        .unwrap();
    for manager in [&shop, &other, &shop] {
        assert_eq!(differences(manager).await, [""; 0]);
    }
    let score: Option<f64> =
        nodes[0].inspect().command(&["ZSCORE", "shop:redlock:f:settings", "n=1 q=1 d=0 restart=trust"]).await;
    assert!(score.is_some());
}

#[tokio::test]
async fn missing_settings_permission_reports_no_difference() {
    for rules in ["~order:* ~{order:* &* +@all", "~* &* +@all -zrange"] {
        let nodes = Nodes::start_with(1, |_, builder| builder.password("x").user("alice", "w0nder", rules)).await;
        let careful =
            builder(nodes.urls()).tuning(|tuning| tuning.after_restart(AfterRestart::Abstain)).build().unwrap();
        let trusting = builder(nodes.urls()).build().unwrap();
        for manager in [&careful, &trusting, &careful] {
            assert_eq!(differences(manager).await, [""; 0], "{rules}");
        }
        if !rules.contains("-zrange") {
            trusting.acquire("order:7").await.unwrap().release().await.unwrap();
        }
    }
}

#[tokio::test]
async fn foreign_settings_entries_are_escaped_and_limited() {
    let nodes = Nodes::start(1).await;
    let (node, manager) = (nodes[0].inspect(), builder(nodes.urls()).build().unwrap());
    manager.check().await;
    let (now, later) = (now(&nodes[0]).await.to_string(), u64::MAX.to_string());
    for number in 0..200 {
        let text = format!("n={number}9\nERROR made up \u{1b}[2J{}", "x".repeat(10_000));
        node.command::<()>(&["ZADD", SETTINGS, &now, &text]).await;
        node.command::<()>(&["ZADD", SETTINGS, &later, &format!("n=7 {number}")]).await;
    }
    let warnings = differences(&manager).await;
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    for warning in &warnings {
        assert!(warning.len() < 600 && !warning.contains(['\n', '\u{1b}']), "{warning}");
        assert!(warning.contains(r"9\u000aERROR"), "{warning}");
    }
    eventually(PATIENCE, "the set is small", async || {
        manager.check().await;
        let left = left(&nodes[0]).await.len();
        if left <= 16 { Ok(()) } else { Err(left) }
    })
    .await;
    // A key that is not a set is not touched.
    node.command::<()>(&["SET", SETTINGS, "something else"]).await;
    assert_eq!(differences(&manager).await, [""; 0]);
    manager.acquire("order:7").await.unwrap().release().await.unwrap();
    assert_eq!(node.get(SETTINGS).await.as_deref(), Some("something else"));
}
