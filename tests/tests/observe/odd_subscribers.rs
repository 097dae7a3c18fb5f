//! Subscribers that call the library, that panic, or that receive only events.

use redlock_runtime::{LockManager, LockRequest};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Short, because the tests wait for its end. Too short: a lock is lost when a busy machine pauses between two calls.
const TTL: Duration = Duration::from_secs(2);

/// Performs an odd action with each event, and records the name of the event.
struct Odd<F> {
    wants_spans: bool,
    does: F,
    names: Arc<Mutex<Vec<&'static str>>>,
}

impl<F: Fn() + Send + Sync + 'static> Subscriber for Odd<F> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "redlock" && (self.wants_spans || metadata.is_event())
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {
        (self.does)();
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.names.lock().unwrap().push(event.metadata().name());
        (self.does)();
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Returns the names of the events while locks of `manager` are acquired, handed over, lost and released too late.
async fn told(manager: &LockManager, wants_spans: bool, does: impl Fn() + Send + Sync + 'static) -> Vec<&'static str> {
    let names = Arc::<Mutex<Vec<_>>>::default();
    let _subscribed = tracing::subscriber::set_default(Odd { wants_spans, does, names: Arc::clone(&names) });
    let request = || LockRequest::new("odd").ttl(TTL).without_renewal();
    // The loss stays unnoticed until the release, when the node answers at once that the lock is not ours.
    let late = manager.acquire(request()).await.unwrap();
    std::thread::sleep(TTL);
    drop(late);
    manager.try_acquire(LockRequest::new("odd")).await.unwrap().release().await.unwrap();
    // The first lock is handed to the next call after its loss. Meanwhile, the watchdog also renews another lock.
    let (first, other) = (manager.acquire(request()).await.unwrap(), manager.acquire("other").await.unwrap());
    assert!(manager.try_acquire("odd").await.is_err());
    let next = tokio::spawn({
        let manager = manager.clone();
        async move { manager.acquire(LockRequest::new("odd")).await }
    });
    first.lost().await;
    let next = tokio::time::timeout(Duration::from_secs(30), next).await.unwrap().unwrap().unwrap();
    drop((first, next));
    assert!(other.is_held());
    other.release().await.unwrap();
    assert!(manager.held_locks().is_empty());
    assert!(manager.stats().sites.iter().all(|site| site.waiting_now == 0 && site.held_now == 0));
    std::mem::take(&mut *names.lock().unwrap())
}

#[tokio::test]
async fn subscriber_may_read_the_held_locks() {
    let manager = LockManager::in_memory();
    let asked = manager.clone();
    let told = told(&manager, true, move || drop(asked.held_locks())).await;
    for name in ["lost", "released_late", "acquired", "skipped"] {
        assert!(told.contains(&name), "{name} in {told:?}");
    }
}

#[tokio::test]
async fn panic_of_a_subscriber_stops_no_task() {
    let manager = LockManager::in_memory();
    let told = told(&manager, true, || panic!("no terminal")).await;
    assert!(told.contains(&"lost"), "{told:?}");
    // The watchdog is still running.
    let guard = manager.acquire(LockRequest::new("renewed").ttl(TTL)).await.unwrap();
    tokio::time::sleep(4 * TTL).await;
    guard.ensure_held().unwrap();
}

#[tokio::test]
async fn events_are_recorded_without_spans() {
    let told = told(&LockManager::in_memory(), false, || {}).await;
    assert!(told.contains(&"acquired"), "{told:?}");
}
