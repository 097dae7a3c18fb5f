//! Spans of calls and of held locks.

use crate::subscriber::{Told, keep_all, spans};
use redlock_runtime::{LockError, LockGuard, LockManager, LockRequest, distributed_lock};
use redlock_tests::{Nodes, PATIENCE, eventually};
use std::future::{Future, pending};
use std::time::Duration;
use tracing::Instrument;

async fn manager(nodes: &Nodes) -> LockManager {
    keep_all();
    // Long enough for answers on a busy machine.
    let described = LockManager::builder().nodes(nodes.urls()).node_timeout(Duration::from_secs(1));
    let manager = described.build().unwrap();
    manager.ready().await.unwrap();
    manager
}

/// Returns the only span of that name about `key`.
fn only(name: &str, key: &str) -> Told {
    let found = spans(name, key);
    assert_eq!(found.len(), 1, "{found:#?}");
    found.into_iter().next().unwrap()
}

/// Creates the span `dropped` when it is dropped.
struct Dropped(&'static str);

impl Drop for Dropped {
    fn drop(&mut self) {
        tracing::info_span!("dropped", what = self.0);
    }
}

/// Creates the span `begun`, and never ends.
async fn hang(what: &'static str) -> Result<(), LockError> {
    let _dropped = Dropped(what);
    tracing::info_span!("begun", what);
    pending().await
}

#[distributed_lock(key = "spans:{what}", manager = locks)]
async fn annotated(locks: &LockManager, what: &'static str) -> Result<(), LockError> {
    let _dropped = Dropped(what);
    tracing::info_span!("first poll", what);
    tokio::task::yield_now().await;
    tracing::info_span!("second poll", what);
    Ok(())
}

#[distributed_lock(key = "spans:{what}", manager = locks, on_lost = continue)]
async fn going_on(locks: &LockManager, what: &'static str) -> Result<(), LockError> {
    hang(what).await
}

#[distributed_lock(key = "spans:{what}", manager = locks, guard = lock)]
async fn with_guard(locks: &LockManager, what: &'static str) -> Result<(), LockError> {
    assert!(lock.is_held());
    hang(what).await
}

#[distributed_lock(key = "spans:{what}", manager = locks)]
async fn hanging(locks: &LockManager, what: &'static str) -> Result<(), LockError> {
    hang(what).await
}

#[distributed_lock(key = "spans:{what}", manager = locks, reentrant, fencing, guard = lock)]
async fn nested(locks: &LockManager, what: &'static str) -> Result<(), LockError> {
    assert!(lock.fencing_token().as_u64() > 0);
    tracing::info_span!("in the nested body", what);
    Ok(())
}

#[distributed_lock(key = "spans:{what}", manager = locks, fencing, guard = lock)]
async fn around(locks: &LockManager, what: &'static str) -> Result<(), LockError> {
    assert!(lock.fencing_token().as_u64() > 0);
    nested(locks, what).await
}

#[tokio::test]
async fn body_span_is_entered_at_each_poll_and_at_the_drop() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    annotated(&manager, "each poll").await.unwrap();
    for name in ["first poll", "second poll", "dropped"] {
        assert_eq!(only(name, "each poll").within, ["redlock.hold"], "{name}");
    }
    let held = only("redlock.hold", "each poll");
    assert_eq!((held.level, held.field("outcome")), (tracing::Level::DEBUG, "released"));
    assert_eq!((held.field("key"), held.field("template")), ("spans:each poll", "spans:{what}"));
    assert!(held.field("token").contains('@') && held.field("site").contains("spans.rs:"), "{held:?}");
}

#[tokio::test]
async fn acquire_span_ends_before_its_sibling_hold_span() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let call = async {
        annotated(&manager, "siblings").await?;
        around(&manager, "pair of siblings").await?;
        manager.acquire("spans:without an attribute, siblings").await?.release().await
    };
    call.instrument(tracing::info_span!("the caller")).await.unwrap();
    let body = only("first poll", "siblings");
    assert_eq!(body.parent.as_deref(), Some("redlock.hold"));
    for key in ["spans:siblings", "spans:without an attribute, siblings"] {
        let (asked, held) = (only("redlock.acquire", key), only("redlock.hold", key));
        assert_eq!([asked.parent.as_deref(), held.parent.as_deref()], [Some("the caller"); 2], "{key}");
        assert!(asked.closed.is_some_and(|closed| closed <= held.closed.unwrap()), "{asked:?} {held:?}");
    }
    assert!(only("redlock.acquire", "spans:siblings").closed.is_some_and(|closed| closed <= body.before), "{body:?}");
    // The nested call runs in the body of the other one.
    for name in ["redlock.acquire", "redlock.hold"] {
        let parents: Vec<_> = spans(name, "pair of siblings").into_iter().map(|span| span.parent.unwrap()).collect();
        assert_eq!(parents, ["the caller", "redlock.hold"], "{name}");
    }
    // Without a surrounding span, the call has no parent.
    annotated(&manager, "alone").await.unwrap();
    assert_eq!(only("redlock.hold", "spans:alone").parent, None);
}

#[tokio::test]
async fn failure_event_is_inside_the_acquire_span() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let held = manager.acquire("spans:failing").await.unwrap();
    manager.try_acquire(LockRequest::new("spans:failing").label("failing at once")).await.unwrap_err();
    held.release().await.unwrap();
    assert_eq!(crate::subscriber::event("skipped", "failing at once").await.within, ["redlock.acquire"]);
}

/// Drops `call` after its body has begun.
async fn give_up(call: impl Future<Output = Result<(), LockError>>, what: &str) {
    let has_begun = async || if spans("begun", what).is_empty() { Err("not yet") } else { Ok(()) };
    tokio::select! {
        outcome = call => panic!("{what}: {outcome:?}"),
        () = eventually(PATIENCE, what, has_begun) => {}
    }
}

#[tokio::test]
async fn cancelled_body_is_dropped_inside_its_span() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    give_up(hanging(&manager, "hanging"), "hanging").await;
    give_up(going_on(&manager, "going on"), "going on").await;
    give_up(with_guard(&manager, "guarded"), "guarded").await;
    give_up(manager.with_lock("spans:by hand", async |_: &LockGuard| hang("by hand").await), "by hand").await;
    for what in ["hanging", "going on", "guarded", "by hand"] {
        assert_eq!(only("dropped", what).within, ["redlock.hold"], "{what}");
        assert_eq!(only("redlock.hold", what).field("outcome"), "released", "{what}");
    }
}

#[tokio::test]
async fn span_records_the_path_of_the_acquisition() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let request = |what| LockRequest::new("spans:ways").label(what);
    let first = manager.acquire(request("way: fast")).await.unwrap();
    let (second, ()) = tokio::join!(manager.acquire(request("way: local")), async {
        manager.try_acquire(request("way: none")).await.unwrap_err();
        first.release().await.unwrap();
    });
    second.unwrap().release().await.unwrap();
    for (what, path, outcome, rank) in [
        ("way: fast", "fast", "acquired", ""),
        ("way: local", "local", "acquired", "0"),
        ("way: none", "none", "contended", ""),
    ] {
        let span = only("redlock.acquire", what);
        let told = ["path", "outcome", "rank"].map(|name| span.field(name).to_owned());
        assert_eq!(told, [path, outcome, rank], "{what}");
    }
    assert_eq!(only("redlock.acquire", "way: none").field("key"), "spans:ways");
    around(&manager, "nested").await.unwrap();
    assert_eq!(only("in the nested body", "nested").within, ["redlock.hold", "redlock.hold"]);
    let paths: Vec<_> =
        spans("redlock.acquire", "spans:nested").iter().map(|span| span.field("path").to_owned()).collect();
    assert_eq!(paths, ["fast", "nested"]);
    let held = spans("redlock.hold", "spans:nested");
    assert!(
        held.len() == 2 && held.iter().all(|span| span.field("fencing_token") == held[0].field("fencing_token")),
        "{held:#?}"
    );
    assert!(held[0].field("fencing_token").parse::<u64>().unwrap() > 0);
}

#[tokio::test]
async fn span_of_a_queued_acquisition_has_the_path_queued() {
    let nodes = Nodes::start(3).await;
    let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
    let held = ours.acquire("spans:queue").await.unwrap();
    let waiting =
        tokio::spawn(async move { theirs.acquire(LockRequest::new("spans:queue").label("way: queue")).await });
    crate::subscriber::event("waiting", "way: queue").await;
    held.release().await.unwrap();
    waiting.await.unwrap().unwrap().release().await.unwrap();
    assert_eq!(only("redlock.acquire", "way: queue").field("path"), "queued");
}

#[tokio::test]
async fn hold_span_records_detached_and_lost_outcomes() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let guard = manager.acquire("spans:left").await.unwrap();
    let attached = manager.attach(guard.detach()).await.unwrap();
    attached.release().await.unwrap();
    let outcomes: Vec<_> =
        spans("redlock.hold", "spans:left").iter().map(|span| span.field("outcome").to_owned()).collect();
    assert_eq!(outcomes, ["detached", "released"]);
    assert_eq!(spans("redlock.acquire", "spans:left")[1].field("path"), "attached");
    let request = LockRequest::new("spans:lost").max_hold(Duration::from_millis(20));
    let body = async |_: &LockGuard| pending::<Result<(), LockError>>().await;
    manager.with_lock(request, body).await.unwrap_err();
    assert_eq!(only("redlock.hold", "spans:lost").field("outcome"), "lost");
}
