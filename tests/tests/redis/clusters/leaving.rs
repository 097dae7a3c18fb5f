//! Every exit releases the lock, at any master and even if a call is dropped.

use super::{assert_nothing_left, connected, keys};
use crate::support::polled;
use redlock_runtime::{LockError, LockGuard, LockManager, LockRequest};
use redlock_tests::{Cluster, PATIENCE, eventually};
use std::convert::Infallible;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// More polls than any acquisition of a free lock takes.
const MOST_POLLS: usize = 200;

#[derive(Clone)]
struct Scene {
    cluster: Arc<Cluster>,
    manager: LockManager,
    other: LockManager,
    key: String,
    entered: Arc<Notify>,
}

impl Scene {
    /// Checks that the lock is held. Otherwise, the tests could pass without locking anything.
    async fn enter(&self) {
        assert!(self.cluster.contents().await.contains_key(&self.key));
        self.entered.notify_one();
    }

    /// Calls a body that never ends.
    async fn stuck(self) -> Result<Infallible, LockError> {
        let body = async |_: &LockGuard| {
            self.enter().await;
            Ok(pending().await)
        };
        self.manager.with_lock(&self.key, body).await
    }
}

async fn returns(scene: Scene) {
    let body = async |_: &LockGuard| {
        scene.enter().await;
        Ok::<_, LockError>(7)
    };
    assert_eq!(scene.manager.with_lock(&scene.key, body).await.unwrap(), 7);
}

async fn fails(scene: Scene) {
    let body = async |_: &LockGuard| {
        scene.enter().await;
        Err::<(), _>(LockError::Closed)
    };
    scene.manager.with_lock(&scene.key, body).await.unwrap_err();
}

async fn panics(scene: Scene) {
    let call = async move {
        let body = async |_: &LockGuard| -> Result<(), LockError> {
            scene.enter().await;
            panic!("in the body")
        };
        scene.manager.with_lock(&scene.key, body).await
    };
    assert!(tokio::spawn(call).await.unwrap_err().is_panic());
}

async fn dropped(scene: Scene) {
    let entered = Arc::clone(&scene.entered);
    tokio::select! {
        outcome = scene.stuck() => panic!("{outcome:?}"),
        () = entered.notified() => {}
    }
}

async fn aborted(scene: Scene) {
    let entered = Arc::clone(&scene.entered);
    let task = tokio::spawn(scene.stuck());
    entered.notified().await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
}

async fn released(scene: Scene) {
    let guard = scene.manager.acquire(&scene.key).await.unwrap();
    scene.enter().await;
    guard.release().await.unwrap();
}

async fn release_not_awaited(scene: Scene) {
    let guard = scene.manager.acquire(&scene.key).await.unwrap();
    scene.enter().await;
    drop(guard.release());
}

async fn dropped_while_waiting(scene: Scene) {
    let held = scene.other.acquire(&scene.key).await.unwrap();
    let waiting = tokio::spawn(scene.clone().stuck());
    eventually(PATIENCE, "it waits", async || {
        let contents = scene.cluster.contents().await;
        if contents.keys().any(|key| key.contains("}:q")) { Ok(()) } else { Err(contents) }
    })
    .await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    held.release().await.unwrap();
}

async fn gave_up_waiting(scene: Scene) {
    let held = scene.other.acquire(&scene.key).await.unwrap();
    let request = LockRequest::new(&scene.key).wait(Duration::from_millis(20));
    let error = scene.manager.acquire(request).await.unwrap_err();
    // On a busy machine, the wait may end before the nodes have answered.
    assert!(matches!(error, LockError::TimedOut { .. } | LockError::NoQuorum { .. }), "{error:?}");
    held.release().await.unwrap();
}

type Exit = fn(Scene) -> Pin<Box<dyn Future<Output = ()>>>;

const EXITS: [(&str, Exit); 9] = [
    ("return", |scene| Box::pin(returns(scene))),
    ("error", |scene| Box::pin(fails(scene))),
    ("panic", |scene| Box::pin(panics(scene))),
    ("dropped in the body", |scene| Box::pin(dropped(scene))),
    ("task aborted in the body", |scene| Box::pin(aborted(scene))),
    ("guard released", |scene| Box::pin(released(scene))),
    ("release not awaited", |scene| Box::pin(release_not_awaited(scene))),
    ("dropped while waiting", |scene| Box::pin(dropped_while_waiting(scene))),
    ("gave up waiting", |scene| Box::pin(gave_up_waiting(scene))),
];

#[tokio::test]
async fn every_exit_releases_the_lock_on_any_cluster_master() {
    let cluster = Arc::new(Cluster::start(3, 0).await);
    let keys = keys(&cluster, "order").await;
    for (name, exit) in EXITS {
        let (manager, other) = (connected(&cluster).await, connected(&cluster).await);
        for key in &keys {
            println!("{name}, {key}");
            let (cluster, manager, other) = (Arc::clone(&cluster), manager.clone(), other.clone());
            let scene = Scene { cluster, manager, other, key: key.clone(), entered: Arc::default() };
            tokio::time::timeout(PATIENCE, exit(scene)).await.expect(name);
        }
        assert_nothing_left(&[&manager, &other], &cluster).await;
    }
}

/// Polls an acquisition once, twice, and so on until it is done. Calls `prepare` before each.
async fn drop_at_every_poll(cluster: &Cluster, key: &str, prepare: impl AsyncFn(usize)) {
    for polls in 1..MOST_POLLS {
        let manager = connected(cluster).await;
        prepare(polls).await;
        let acquired = polled(manager.acquire(key), polls).await;
        let is_done = acquired.is_some();
        drop(acquired.transpose().unwrap());
        assert_nothing_left(&[&manager], cluster).await;
        if is_done {
            return;
        }
    }
    panic!("still pending after {MOST_POLLS} polls")
}

#[tokio::test]
async fn acquisition_dropped_at_any_poll_leaves_no_keys() {
    let cluster = Cluster::start(3, 0).await;
    for key in keys(&cluster, "order").await {
        drop_at_every_poll(&cluster, &key, async |_| {}).await;
    }
}

#[tokio::test]
async fn acquisition_dropped_at_any_poll_after_a_slot_move_leaves_no_keys() {
    let cluster = Cluster::start(3, 0).await;
    let key = cluster.key_on(0, "order").await;
    let slot = cluster.slot(&key).await;
    // The manager does not know the move, so the acquisition and its release are redirected.
    drop_at_every_poll(&cluster, &key, async |polls| cluster.move_slot(slot, polls % 3).await).await;
}

#[tokio::test]
async fn acquisition_dropped_at_any_poll_during_a_slot_move_leaves_no_keys() {
    let cluster = Cluster::start(3, 0).await;
    let key = cluster.key_on(0, "order").await;
    let migration = cluster.begin_move(cluster.slot(&key).await, 1).await;
    drop_at_every_poll(&cluster, &key, async |_| {}).await;
    migration.finish().await;
}
