//! `stats()` and `held()` over real servers.

use crate::subscriber::keep_all;
use redlock_runtime::admin::SiteStats;
use redlock_runtime::{LockError, LockGuard, LockManager, LockRequest, Wait, distributed_lock};
use redlock_tests::{Nodes, PATIENCE, eventually};
use std::time::Duration;

#[distributed_lock(key = "stats:{id}", manager = locks)]
async fn annotated(locks: &LockManager, id: u64) -> Result<u64, LockError> {
    Ok(id)
}

async fn manager(nodes: &Nodes) -> LockManager {
    let manager = LockManager::builder().nodes(nodes.urls()).build().unwrap();
    manager.ready().await.unwrap();
    manager
}

async fn take(manager: &LockManager, request: LockRequest) -> Result<LockGuard, LockError> {
    manager.acquire(request).await
}

/// Returns the counters of the site with that template.
fn site(manager: &LockManager, template: &str) -> SiteStats {
    let stats = manager.stats();
    stats
        .sites
        .into_iter()
        .find(|site| site.site.to_string() == template)
        .unwrap_or_else(|| panic!("none of {template}"))
}

#[tokio::test]
async fn calls_are_counted_by_template_and_line() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let are_up = async || if manager.stats().nodes.iter().all(|node| node.is_up) { Ok(()) } else { Err("not yet") };
    eventually(PATIENCE, "all are connected", are_up).await;
    for id in 0..20 {
        annotated(&manager, id).await.unwrap();
    }
    let before = manager.stats();
    let counted = site(&manager, "stats:{id}");
    assert_eq!((counted.acquired, counted.hold.count(), counted.held_now, counted.waiting_now), (20, 20, 0, 0));
    assert!(counted.site.module.is_some_and(|module| module.ends_with("stats")), "{counted:?}");
    assert!(counted.site.line.is_some_and(|line| line.file().ends_with("stats.rs")), "{counted:?}");
    for _ in 0..3 {
        manager.acquire("by hand").await.unwrap().release().await.unwrap();
    }
    let since = async || {
        let since = manager.stats().since(&before);
        // The last of three nodes may answer after the call has ended.
        if since.nodes.iter().all(|node| node.round_trip.count() > 0) { Ok(since) } else { Err(since) }
    };
    let since = eventually(PATIENCE, "all nodes have answered", since).await;
    let by_hand = since.sites.iter().find(|site| site.site.template.is_none()).unwrap();
    assert!(by_hand.acquired == 3 && by_hand.site.to_string().contains("stats.rs:"), "{by_hand:?}");
    assert!(since.sites.iter().filter(|site| site.site.template.is_some()).all(|site| site.acquired == 0));
    for node in &since.nodes {
        assert!(node.is_up && node.commands >= 6 && node.errors == 0, "{node:?}");
        assert!(node.round_trip.quantile(1.0) < Duration::from_secs(30), "{node:?}");
    }
}

#[tokio::test]
async fn every_call_is_counted_once_under_its_outcome() {
    keep_all();
    let nodes = Nodes::start(1).await;
    let (manager, others) = (manager(&nodes).await, manager(&nodes).await);
    let request = || LockRequest::new("stats:outcomes").label("outcomes");
    let held = others.acquire("stats:outcomes").await.unwrap();
    take(&manager, request().wait(Wait::None)).await.unwrap_err();
    // Long enough for an answer of the node on a busy machine: otherwise, the call would be counted as one without a quorum.
    take(&manager, request().wait(Duration::from_secs(2))).await.unwrap_err();
    let waiting = tokio::spawn({
        let manager = manager.clone();
        async move { take(&manager, request().wait(Wait::Forever)).await.map(drop) }
    });
    let waits = async || match site(&manager, "outcomes").waiting_now {
        1 => Ok(()),
        other => Err(other.to_string()),
    };
    eventually(PATIENCE, "a call waits", waits).await;
    waiting.abort();
    waiting.await.unwrap_err();
    held.release().await.unwrap();
    drop(take(&manager, request()).await.unwrap());
    manager.shutdown().await;
    take(&manager, request()).await.unwrap_err();
    let SiteStats { acquired, contended, timed_out, no_quorum, refused, cancelled, held_now, waiting_now, .. } =
        site(&manager, "outcomes");
    assert_eq!(
        [acquired, contended, timed_out, no_quorum, refused, cancelled, held_now, waiting_now],
        [1, 1, 1, 0, 1, 1, 0, 0]
    );
}

#[tokio::test]
async fn local_hand_off_counts_a_single_holder() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let request = || LockRequest::new("stats:line").label("line");
    let first = take(&manager, request()).await.unwrap();
    let (second, ()) = tokio::join!(take(&manager, request()), async {
        assert_eq!(site(&manager, "line").waiting_now, 1);
        drop(first);
    });
    let counted = site(&manager, "line");
    assert_eq!((counted.acquired, counted.held_now, counted.waiting_now), (2, 1, 0));
    drop(second.unwrap());
    assert_eq!(site(&manager, "line").held_now, 0);
}

#[tokio::test]
async fn lingering_locks_are_not_counted_as_held() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let request = || LockRequest::new("stats:idle").label("idle").linger(Duration::from_secs(2));
    eventually(PATIENCE, "the lock lingers", async || {
        drop(manager.acquire(request()).await.unwrap());
        if manager.stats().linger.reused > 3 { Ok(()) } else { Err("not yet") }
    })
    .await;
    let counted = site(&manager, "idle");
    assert!(
        counted.held_now == 0 && counted.hold.count() == counted.acquired && manager.held_locks().is_empty(),
        "{counted:?}"
    );
}

#[tokio::test]
async fn invalid_requests_are_counted_as_refused() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let request = |label| LockRequest::new("stats:wrong").label(label);
    take(&manager, request("ttl").ttl(Duration::ZERO)).await.unwrap_err();
    take(&manager, request("window").once_per(Duration::ZERO)).await.unwrap_err();
    for label in ["ttl", "window"] {
        let counted = site(&manager, label);
        assert_eq!((counted.refused, counted.waiting_now, counted.cancelled), (1, 0, 0), "{label}");
    }
    nodes[0].stop().await;
    take(&manager, request("time").once_per(Duration::from_secs(3600))).await.unwrap_err();
    let counted = site(&manager, "time");
    assert_eq!((counted.no_quorum, counted.waiting_now), (1, 0));
}

#[tokio::test]
async fn lost_lock_is_listed_as_held_until_its_guard_drops() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let guard = manager.acquire(LockRequest::new("stats:away").ttl(Duration::from_millis(400))).await.unwrap();
    nodes[0].inspect().command::<i64>(&["DEL", "stats:away"]).await;
    guard.lost().await;
    let held = manager.held_locks();
    assert_eq!((held.len(), held[0].remaining, &held[0].token), (1, Duration::ZERO, guard.token()));
    drop(guard);
    assert!(manager.held_locks().is_empty());
}

#[tokio::test]
async fn unanswered_commands_are_counted_as_errors() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let before = manager.stats();
    nodes[0].freeze();
    for _ in 0..5 {
        take(&manager, LockRequest::new("stats:errors").wait(Wait::None)).await.unwrap_err();
    }
    nodes[0].kill();
    let all = async || match &manager.stats().since(&before).nodes[0] {
        node if node.errors == node.commands && node.commands > 5 => Ok(()),
        node => Err(format!("{node:?}")),
    };
    eventually(PATIENCE, "each is an error", all).await;
}

#[tokio::test]
async fn each_manager_lists_its_held_locks() {
    let nodes = Nodes::start(1).await;
    let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
    let first = ours.acquire(LockRequest::new("stats:first").label("first")).await.unwrap();
    let second = ours.acquire("stats:second").await.unwrap();
    let third = theirs.acquire("stats:third").await.unwrap();
    let held = ours.held_locks();
    let keys: Vec<_> = held.iter().map(|held| held.key.as_str()).collect();
    assert_eq!((keys, theirs.held_locks().len()), (vec!["stats:first", "stats:second"], 1));
    assert!(held[0].held_for >= held[1].held_for && held.iter().all(|held| !held.remaining.is_zero()), "{held:?}");
    assert_eq!((held[0].site.template, held[1].site.template), (Some("first"), None));
    let waiting = async |_: &LockGuard| Ok::<_, LockError>(());
    tokio::join!(async { ours.with_lock("stats:first", waiting).await.unwrap() }, async {
        // A waiting call holds nothing.
        assert_eq!(ours.held_locks().len(), 2);
        drop(first);
    });
    drop((second, third));
    assert!(ours.held_locks().is_empty() && theirs.held_locks().is_empty());
}
