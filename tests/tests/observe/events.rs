//! Events about calls and locks. The tests provoke each event, and observe it.

use crate::subscriber::{Told, event, events, keep_all, spans};
use redlock_runtime::admin::BreakOptions;
use redlock_runtime::{LockError, LockGuard, LockManager, LockManagerBuilder, LockRequest, Wait, distributed_lock};
use redlock_tests::Nodes;
use std::future::pending;
use std::time::Duration;
use tracing::Level;

/// Short, because some tests wait for its end, and long enough that a renewed lock survives a pause of one second.
const TTL: Duration = Duration::from_secs(2);
const LONG: Duration = Duration::from_secs(30);

fn builder(nodes: &Nodes) -> LockManagerBuilder {
    keep_all();
    LockManager::builder().nodes(nodes.urls())
}

async fn manager(nodes: &Nodes) -> LockManager {
    let manager = builder(nodes).build().unwrap();
    manager.ready().await.unwrap();
    manager
}

/// Returns the only event of that name about `key`.
fn only(name: &str, key: &str) -> Told {
    let found = events(name, key);
    assert_eq!(found.len(), 1, "{found:#?}");
    found.into_iter().next().unwrap()
}

#[distributed_lock(key = "events:{what}", manager = locks, wait = none)]
async fn annotated(locks: &LockManager, what: &'static str) -> Result<(), LockError> {
    Ok(())
}

#[tokio::test]
async fn each_outcome_of_a_call_is_logged() {
    let nodes = Nodes::start(3).await;
    let (manager, others) = (manager(&nodes).await, manager(&nodes).await);
    annotated(&manager, "acquired").await.unwrap();
    let told = only("acquired", "events:acquired");
    assert_eq!((told.level, told.field("template"), told.field("path")), (Level::DEBUG, "events:{what}", "fast"));
    assert_eq!(told.within, ["redlock.acquire"]);
    assert_eq!(told.field("event"), "acquired");

    let held = others.acquire(LockRequest::new("events:taken").ttl(LONG)).await.unwrap();
    annotated(&manager, "taken").await.unwrap_err();
    assert_eq!(only("skipped", "events:taken").level, Level::DEBUG);
    let request = LockRequest::new("events:taken").wait(TTL).label("who waits in vain");
    manager.acquire(request).await.unwrap_err();
    let told = only("timed_out", "who waits in vain");
    assert!(told.level == Level::INFO && told.field("waited_ms").parse::<u64>().unwrap() >= 400, "{told:?}");
    assert_eq!(only("waiting", "who waits in vain").level, Level::DEBUG);
    held.release().await.unwrap();
}

#[distributed_lock(key = "events:{what}", mode = shared, manager = locks, wait = none)]
async fn reading(locks: &LockManager, what: &'static str) -> Result<(), LockError> {
    Ok(())
}

#[tokio::test]
async fn only_shared_locks_are_logged_as_shared() {
    let nodes = Nodes::start(1).await;
    let (manager, others) = (manager(&nodes).await, manager(&nodes).await);
    reading(&manager, "read").await.unwrap();
    annotated(&manager, "written").await.unwrap();
    for (key, expected) in [("events:read", "shared"), ("events:written", "")] {
        let span = |name: &str| spans(name, key).into_iter().next().unwrap();
        let told = [only("acquired", key), span("redlock.acquire"), span("redlock.hold")];
        assert!(told.iter().all(|told| told.field("mode") == expected), "{told:#?}");
    }
    let held = others.acquire("events:written to").await.unwrap();
    reading(&manager, "written to").await.unwrap_err();
    assert_eq!(only("skipped", "events:written to").field("mode"), "shared");
    let request = LockRequest::shared("events:written to").wait(TTL).label("who reads in vain");
    manager.acquire(request).await.unwrap_err();
    for event in ["waiting", "timed_out"] {
        assert_eq!(only(event, "who reads in vain").field("mode"), "shared", "{event}");
    }
    held.release().await.unwrap();
}

#[tokio::test]
async fn call_in_a_taken_window_is_logged_as_skipped() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let request = || LockRequest::new("events:report").once_per(Duration::from_secs(3600));
    manager.acquire(request()).await.unwrap().release().await.unwrap();
    manager.acquire(request()).await.unwrap_err();
    let told = only("skipped", "events:report");
    assert!(told.field("window").parse::<i64>().is_ok() && events("timed_out", "events:report").is_empty(), "{told:?}");
    let stats = manager.stats();
    let counted: Vec<_> = stats.sites.iter().map(|site| (site.acquired, site.contended, site.timed_out)).collect();
    assert!(
        counted.contains(&(1, 1, 0)) || counted.iter().filter(|counted| **counted == (0, 1, 0)).count() == 1,
        "{counted:?}"
    );
}

#[tokio::test]
async fn missing_quorum_is_logged_once_per_second_with_a_count() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    nodes[0].stop().await;
    let request = || LockRequest::new("events:gone").wait(Wait::None);
    // The first failure is reported at once. The later failures of the second are reported together, with the next one.
    let mut told = Vec::new();
    while told.len() < 2 {
        manager.acquire(request()).await.unwrap_err();
        told = events("no_quorum", "events:gone");
    }
    let refused = manager.stats().sites.iter().map(|site| site.no_quorum).sum::<u64>();
    let times: u64 = told.iter().map(|told| told.field("times").parse::<u64>().unwrap()).sum();
    assert_eq!((told[0].level, times), (Level::WARN, refused), "{told:#?}");
    assert!(told[0].field("causes").contains("127.0.0.1"), "{told:#?}");
}

#[tokio::test]
async fn lock_loss_is_logged_exactly_once() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let request = |key: &'static str| LockRequest::new(key).ttl(TTL);
    let delete = async |key: &str| nodes[0].inspect().command::<i64>(&["DEL", key]).await;

    // Noticed by the body, which is stopped.
    let body = async |_: &LockGuard| {
        delete("lost:body").await;
        pending::<Result<(), LockError>>().await
    };
    manager.with_lock(request("lost:body"), body).await.unwrap_err();
    let told = event("lost", "lost:body").await;
    assert_eq!(told.level, Level::ERROR);
    assert_eq!(told.field("cause"), "the nodes report that this process does not hold it any more");
    assert!(told.field("held_ms").parse::<u64>().is_ok() && told.field("site").contains("events.rs:"), "{told:?}");

    // Noticed by the watchdog, for a guard that is not polled.
    let guard = manager.acquire(request("lost:guard")).await.unwrap();
    delete("lost:guard").await;
    event("lost", "lost:guard").await;
    assert!(guard.ensure_held().is_err());
    drop(guard);

    // The end of a lease that is not renewed, or may not be renewed any longer.
    let guard = manager.acquire(request("lost:lease").without_renewal()).await.unwrap();
    assert_eq!(event("lost", "lost:lease").await.field("cause"), "its lease expired, and renewal was off");
    drop(guard);
    let guard = manager.acquire(request("lost:max").ttl(LONG).max_hold(TTL)).await.unwrap();
    assert_eq!(event("lost", "lost:max").await.field("cause"), "it was held for the whole `max_hold`");
    drop(guard);

    // Not noticed before the drop, because the thread was blocked.
    let guard = LockManager::in_memory().acquire(request("lost:blocked").without_renewal()).await.unwrap();
    std::thread::sleep(TTL);
    drop(guard);
    event("lost", "lost:blocked").await;
    for key in ["lost:body", "lost:guard", "lost:lease", "lost:max", "lost:blocked"] {
        only("lost", key);
    }

    let lost: u64 = manager.stats().sites.iter().map(|site| site.lost).sum();
    assert_eq!(lost, 4);
}

#[distributed_lock(key = "lost:{what}", manager = locks, ttl = 2s, on_lost = continue, guard = lock)]
async fn going_on(locks: &LockManager, nodes: &Nodes, what: &'static str) -> Result<(), LockError> {
    nodes[0].inspect().command::<i64>(&["DEL", "lost:continued"]).await;
    lock.lost().await;
    Ok(())
}

#[tokio::test]
async fn body_that_outlives_its_lock_is_logged() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    going_on(&manager, &nodes, "continued").await.unwrap();
    event("lost", "lost:continued").await;
    only("lost", "lost:continued");
    assert_eq!(only("outlived", "lost:continued").level, Level::WARN);
}

#[tokio::test]
async fn max_hold_of_a_nested_call_loses_only_the_nested_lock() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let inner = LockRequest::new("lost:nested").reentrant().max_hold(TTL / 4).label("the nested one");
    let body = async |guard: &LockGuard| {
        manager.with_lock(inner, async |_: &LockGuard| pending::<Result<(), LockError>>().await).await.unwrap_err();
        guard.ensure_held()
    };
    manager.with_lock(LockRequest::new("lost:nested").label("the outer one"), body).await.unwrap();
    event("lost", "the nested one").await;
    assert!(events("lost", "the outer one").is_empty());
    let stats = manager.stats();
    let counted = |template| {
        let site = stats.sites.iter().find(|site| site.site.template == Some(template)).unwrap();
        (site.acquired, site.lost, site.held_now, site.hold.count())
    };
    assert_eq!((counted("the outer one"), counted("the nested one")), ((1, 0, 0, 1), (1, 1, 0, 1)));
}

#[tokio::test]
async fn loss_of_the_outer_lock_is_logged_for_the_nested_call() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let request = |label| LockRequest::new("lost:both").reentrant().label(label);
    let hangs = async |_: &LockGuard| pending::<Result<(), LockError>>().await;
    let body = async |_: &LockGuard| manager.with_lock(request("inner of both"), hangs).await;
    manager.with_lock(request("outer of both").max_hold(TTL), body).await.unwrap_err();
    for label in ["outer of both", "inner of both"] {
        only("lost", label);
        assert_eq!(crate::subscriber::spans("redlock.hold", label)[0].field("outcome"), "lost", "{label}");
    }
    // A guard that is released too late.
    let outer = manager.acquire(request("outer guard").max_hold(TTL)).await.unwrap();
    let inner = outer.scope(manager.acquire(request("inner guard"))).await.unwrap();
    event("lost", "outer guard").await;
    inner.release().await.unwrap_err();
    only("lost", "inner guard");
    drop(outer);
    let stats = manager.stats();
    let lost: Vec<_> = stats.sites.iter().map(|site| (site.lost, site.held_now)).collect();
    assert_eq!(lost, [(1, 0); 4], "{stats:#?}");
}

#[tokio::test]
async fn failed_renewals_of_many_leases_are_logged_together() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let mut guards = Vec::new();
    for lock in 0..50 {
        let request = LockRequest::new(format!("events:outage {lock}")).ttl(TTL).label("one of many");
        guards.push(manager.acquire(request).await.unwrap());
    }
    nodes[0].freeze();
    let all_lost = async || match events("lost", "one of many").len() {
        50 => Ok(()),
        other => Err(other.to_string()),
    };
    redlock_tests::eventually(redlock_tests::PATIENCE, "each is told to be lost", all_lost).await;
    assert!((1..5).contains(&events("near_expiry", "one of many").len()));
    nodes[0].thaw();
}

/// The short lease after a hand-over is confirmed while the body runs, and is not a danger until then.
#[tokio::test]
async fn lock_handed_over_by_another_process_is_not_near_expiry() {
    let nodes = Nodes::start(1).await;
    let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
    let held = theirs.acquire(LockRequest::new("events:handed over").ttl(LONG)).await.unwrap();
    let waiting = tokio::spawn({
        let request = LockRequest::new("events:handed over").ttl(LONG).wait(LONG);
        async move { ours.acquire(request).await }
    });
    event("waiting", "events:handed over").await;
    held.release().await.unwrap();
    let guard = waiting.await.unwrap().unwrap();
    let is_confirmed = async || if guard.remaining() > TTL { Ok(()) } else { Err(guard.remaining()) };
    redlock_tests::eventually(redlock_tests::PATIENCE, "the lease is confirmed", is_confirmed).await;
    guard.release().await.unwrap();
    assert_eq!(events("near_expiry", "events:handed over").len(), 0);
}

#[tokio::test]
async fn failed_renewal_is_logged_as_near_expiry_before_the_loss() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let guard = manager.acquire(LockRequest::new("events:frozen").ttl(TTL)).await.unwrap();
    nodes[0].freeze();
    let told = event("near_expiry", "events:frozen").await;
    let remaining: u64 = told.field("remaining_ms").parse().unwrap();
    assert!(told.level == Level::WARN && remaining < 400 && told.field("ttl_ms") == "2000", "{told:?}");
    event("lost", "events:frozen").await;
    only("near_expiry", "events:frozen");
    nodes[0].thaw();
    drop(guard);
}

#[tokio::test]
async fn release_of_a_deleted_key_is_logged_as_late() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let guard = manager.acquire(LockRequest::new("events:late").ttl(LONG)).await.unwrap();
    nodes[0].inspect().command::<i64>(&["DEL", "events:late"]).await;
    drop(guard);
    let told = event("released_late", "events:late").await;
    assert!(told.level == Level::WARN && told.field("node").starts_with("127.0.0.1:"), "{told:?}");
    // The deletion went unnoticed while the lease was proven.
    assert!(events("lost", "events:late").is_empty());
}

#[distributed_lock(key = "events:{what}", manager = locks, release = confirmed)]
async fn confirmed(locks: &LockManager, nodes: &Nodes, what: &'static str) -> Result<(), LockError> {
    nodes[0].freeze();
    Ok(())
}

#[tokio::test]
async fn unconfirmed_release_is_logged() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    confirmed(&manager, &nodes, "confirmed").await.unwrap();
    assert_eq!(only("release_unconfirmed", "events:confirmed").level, Level::WARN);
    nodes[0].thaw();
}

#[tokio::test]
async fn hold_longer_than_the_ttl_is_logged_as_slow() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let guard = manager.acquire(LockRequest::new("events:slow").ttl(TTL)).await.unwrap();
    tokio::time::sleep(TTL + TTL / 4).await;
    guard.release().await.unwrap();
    let told = only("slow_hold", "events:slow");
    assert!(told.level == Level::INFO && told.field("ttl_ms") == "2000", "{told:?}");
}

#[tokio::test]
async fn deadlock_and_nested_detach_are_logged() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let again = async |_: &LockGuard| manager.acquire(LockRequest::new("events:again").wait(TTL)).await.map(drop);
    manager.with_lock("events:again", again).await.unwrap_err();
    assert_eq!(only("deadlock", "events:again").level, Level::WARN);
    let detach = async |_: &LockGuard| {
        let nested = manager.acquire(LockRequest::new("events:detach").reentrant()).await?;
        drop(nested.detach());
        Ok::<_, LockError>(())
    };
    manager.with_lock("events:detach", detach).await.unwrap();
    assert_eq!(only("not_detached", "events:detach").level, Level::WARN);
}

#[tokio::test]
async fn lock_break_is_logged_by_the_breaker_and_the_holder() {
    let nodes = Nodes::start(3).await;
    let (holder, operator) = (manager(&nodes).await, manager(&nodes).await);
    let guard = holder.acquire(LockRequest::new("events:broken").ttl(TTL)).await.unwrap();
    let token = guard.token().to_string();
    // After this, its channels are open, and it can be notified.
    holder.check().await;
    let options = || BreakOptions::foreign(&token).reason("ticket 4711\nERROR forged");
    let (report, lost) = tokio::join!(operator.break_lock("events:broken", options()), async {
        let lost = guard.lost().await;
        drop(guard);
        lost
    });
    assert!(report.is_broken() && report.holder_notified && report.holder_stopped, "{report}");
    let told = only("broken", &token);
    assert_eq!((told.level, told.field("key"), told.field("holder")), (Level::WARN, "events:broken", &*token));
    assert_eq!((told.field("by"), told.field("outcome")), (report.by.as_str(), "stopped"));
    assert_eq!(told.field("reason"), r"ticket 4711\u000aERROR forged");
    assert!(lost.to_string().contains(report.by.as_str()), "{lost}");
    assert!(event("lost", "events:broken").await.field("cause").contains(report.by.as_str()));

    let outcomes = async |key: &str, options: BreakOptions| {
        let report = operator.break_lock(key, options).await;
        only("broken", report.by.as_str()).field("outcome").to_owned()
    };
    assert_eq!(outcomes("events:broken", options()).await, "not_held");
    assert_eq!(outcomes("events:broken", BreakOptions::foreign("worker-3")).await, "needs_force");
    let guard = holder.acquire(LockRequest::new("events:forced").ttl(TTL)).await.unwrap();
    let forced = BreakOptions::new(*guard.token()).by_force();
    assert_eq!(outcomes("events:forced", forced).await, "forced");
    // Cancelled at its first step.
    let guard = holder.acquire(LockRequest::new("events:cancelled").ttl(LONG)).await.unwrap();
    nodes[0].freeze();
    let cancelled = operator.break_lock("events:cancelled", *guard.token());
    tokio::time::timeout(Duration::from_millis(100), cancelled).await.unwrap_err();
    assert_eq!(only("broken", "events:cancelled").field("outcome"), "interrupted");
    nodes[0].thaw();
}
