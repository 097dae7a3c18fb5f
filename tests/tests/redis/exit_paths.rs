//! Every exit of a locked body releases the lock on every node, for each kind of lock (defects 3, 13, 15, 16, 23 and 24 of peers).
//! A shared lock is released even while other shares remain.

use crate::support::{
    GENEROUS, SIZES, acquired_everywhere, assert_nothing_left, barrier, holders, known, majority, manager,
};
use redlock_runtime::{LockError, LockGuard, LockManager, LockRequest};
use redlock_tests::{Nodes, PATIENCE, eventually, eventually_eq};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

const KEY: &str = "order:7";

/// Kind of lock: the request of a call, and the request that blocks it.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    request: fn() -> LockRequest,
    in_its_way: fn() -> LockRequest,
}

const ALONE: Kind = Kind { name: "alone", request: || KEY.into(), in_its_way: || KEY.into() };
const SHARED: Kind = Kind { name: "shared", request: || LockRequest::shared(KEY), ..ALONE };
const SEVERAL: Kind = Kind { name: "several", request: || LockRequest::all(["cart:3", KEY, "stock:9"]), ..ALONE };
const PATH: Kind = Kind {
    name: "path",
    request: || LockRequest::path("/acme/reports/2024"),
    in_its_way: || LockRequest::path("/acme"),
};
const PERMIT: Kind = Kind { name: "permit", request: || LockRequest::new(KEY).permits(3), ..ALONE };

/// One manager on its nodes, and a signal that the body was entered.
#[derive(Clone)]
struct Scene {
    nodes: Arc<Nodes>,
    manager: LockManager,
    kind: Kind,
    entered: Arc<Notify>,
}

enum Failure {
    Lock(LockError),
    Work,
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        Self::Lock(error)
    }
}

impl Scene {
    fn request(&self) -> LockRequest {
        (self.kind.request)()
    }

    /// Checks that the lock is held. Otherwise, the tests could pass without locking anything.
    async fn enter(&self, guard: &LockGuard) {
        let known = known(&self.nodes, guard).await;
        assert!(known >= majority(self.nodes.len()), "{known} of {}", self.nodes.len());
        self.entered.notify_one();
    }

    /// Calls a body that never ends.
    async fn stuck(self) -> Result<Infallible, LockError> {
        let body = async |guard: &LockGuard| {
            self.enter(guard).await;
            Ok(pending().await)
        };
        self.manager.with_lock(self.request(), body).await
    }
}

/// Returns the number of keys on all nodes.
async fn keys(nodes: &Nodes) -> usize {
    nodes.contents().await.values().map(BTreeMap::len).sum()
}

async fn returns(scene: Scene) {
    let body = async |guard: &LockGuard| {
        scene.enter(guard).await;
        Ok::<_, LockError>(7)
    };
    assert_eq!(scene.manager.with_lock(scene.request(), body).await.unwrap(), 7);
}

async fn question_mark(scene: Scene) {
    let body = async |guard: &LockGuard| {
        scene.enter(guard).await;
        Err::<(), _>(Failure::Work)?;
        unreachable!("the line above returns")
    };
    match scene.manager.with_lock(scene.request(), body).await {
        Err(Failure::Work) => {}
        Err(Failure::Lock(error)) => panic!("{error}"),
        Ok(()) => panic!("the error is lost"),
    }
}

async fn early_return(scene: Scene) {
    let body = async |guard: &LockGuard| {
        scene.enter(guard).await;
        for i in 0.. {
            if i == 3 {
                return Ok(i);
            }
            tokio::task::yield_now().await;
        }
        Err(LockError::Closed)
    };
    assert_eq!(scene.manager.with_lock(scene.request(), body).await.unwrap(), 3);
}

async fn panic(scene: Scene) {
    let call = async move {
        let body = async |guard: &LockGuard| -> Result<(), LockError> {
            scene.enter(guard).await;
            panic!("in the body")
        };
        scene.manager.with_lock(scene.request(), body).await
    };
    let error = tokio::spawn(call).await.unwrap_err();
    assert_eq!(*error.into_panic().downcast::<&str>().unwrap(), "in the body");
}

async fn dropped_in_the_body(scene: Scene) {
    let entered = Arc::clone(&scene.entered);
    tokio::select! {
        outcome = scene.stuck() => panic!("{outcome:?}"),
        () = entered.notified() => {}
    }
}

async fn task_aborted_in_the_body(scene: Scene) {
    let entered = Arc::clone(&scene.entered);
    let task = tokio::spawn(scene.stuck());
    entered.notified().await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
}

async fn timeout(scene: Scene) {
    // The timeout may end the call in its body, or before it on a busy machine. In both cases, all nodes must be empty.
    tokio::time::timeout(Duration::from_millis(50), scene.stuck()).await.unwrap_err();
}

async fn guard_dropped(scene: Scene) {
    let guard = scene.manager.acquire(scene.request()).await.unwrap();
    scene.enter(&guard).await;
}

async fn guard_released(scene: Scene) {
    let guard = scene.manager.acquire(scene.request()).await.unwrap();
    scene.enter(&guard).await;
    guard.release().await.unwrap();
}

async fn release_not_awaited(scene: Scene) {
    let guard = scene.manager.acquire(scene.request()).await.unwrap();
    scene.enter(&guard).await;
    drop(guard.release());
}

async fn dropped_while_waiting_for_another_holder(scene: Scene) {
    let other = manager(&scene.nodes).await;
    let held = other.acquire((scene.kind.in_its_way)()).await.unwrap();
    eventually_eq(PATIENCE, "every node knows it", scene.nodes.len(), async || known(&scene.nodes, &held).await).await;
    let before = keys(&scene.nodes).await;
    let waiting = tokio::spawn(scene.clone().stuck());
    // The queue of a waiter exists as long as the waiter is in it.
    let most = before + scene.nodes.len();
    let has_come = async || Some(keys(&scene.nodes).await).filter(|keys| *keys >= most).ok_or("nobody waits");
    eventually(PATIENCE, "it waits at every node", has_come).await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    assert!(scene.manager.shutdown().await);
    assert_eq!(known(&scene.nodes, &held).await, scene.nodes.len(), "the other one's lock stays");
    held.release().await.unwrap();
    assert!(other.shutdown().await);
}

async fn gave_up_waiting(scene: Scene) {
    let other = manager(&scene.nodes).await;
    let held = other.acquire((scene.kind.in_its_way)()).await.unwrap();
    let request = scene.request().wait(Duration::from_millis(200));
    let error = scene.manager.acquire(request).await.unwrap_err();
    // On a busy machine, the wait may end before the nodes have answered.
    assert!(matches!(error, LockError::TimedOut { .. } | LockError::NoQuorum { .. }), "{error:?}");
    held.release().await.unwrap();
    assert!(other.shutdown().await);
}

type Exit = fn(Scene) -> Pin<Box<dyn Future<Output = ()>>>;

const EXITS: [(&str, Exit); 12] = [
    ("return", |scene| Box::pin(returns(scene))),
    ("?", |scene| Box::pin(question_mark(scene))),
    ("early return", |scene| Box::pin(early_return(scene))),
    ("panic", |scene| Box::pin(panic(scene))),
    ("dropped in the body", |scene| Box::pin(dropped_in_the_body(scene))),
    ("task aborted in the body", |scene| Box::pin(task_aborted_in_the_body(scene))),
    ("timeout", |scene| Box::pin(timeout(scene))),
    ("guard dropped", |scene| Box::pin(guard_dropped(scene))),
    ("guard released", |scene| Box::pin(guard_released(scene))),
    ("release not awaited", |scene| Box::pin(release_not_awaited(scene))),
    ("dropped while waiting", |scene| Box::pin(dropped_while_waiting_for_another_holder(scene))),
    ("gave up waiting", |scene| Box::pin(gave_up_waiting(scene))),
];

async fn every_way_out_leaves_nothing(kind: Kind) {
    for size in SIZES {
        let nodes = Arc::new(Nodes::start(size).await);
        for (name, exit) in EXITS {
            println!("{name}, {size} nodes, {}", kind.name);
            let manager = manager(&nodes).await;
            let scene = Scene { nodes: Arc::clone(&nodes), manager: manager.clone(), kind, entered: Arc::default() };
            tokio::time::timeout(2 * GENEROUS, exit(scene)).await.expect(name);
            assert_nothing_left(&manager, &nodes).await;
        }
    }
}

#[tokio::test]
async fn every_exit_releases_an_exclusive_lock_on_all_nodes() {
    every_way_out_leaves_nothing(ALONE).await;
}

#[tokio::test]
async fn every_exit_releases_a_shared_lock_on_all_nodes() {
    every_way_out_leaves_nothing(SHARED).await;
}

#[tokio::test]
async fn every_exit_releases_several_keys_on_all_nodes() {
    every_way_out_leaves_nothing(SEVERAL).await;
}

#[tokio::test]
async fn every_exit_releases_a_path_on_all_nodes() {
    every_way_out_leaves_nothing(PATH).await;
}

#[tokio::test]
async fn every_exit_releases_a_permit_on_all_nodes() {
    every_way_out_leaves_nothing(PERMIT).await;
}

#[tokio::test]
async fn every_exit_of_a_reader_keeps_the_shared_locks_of_other_readers() {
    for size in SIZES {
        let nodes = Arc::new(Nodes::start(size).await);
        let (other, waits) = (manager(&nodes).await, manager(&nodes).await);
        // Skips the exits that need an exclusive lock.
        for (name, exit) in &EXITS[..EXITS.len() - 2] {
            println!("{name}, {size} nodes");
            let manager = manager(&nodes).await;
            let held = acquired_everywhere(&other, &nodes, LockRequest::shared(KEY)).await;
            let (kind, entered) = (SHARED, Arc::default());
            let scene = Scene { nodes: Arc::clone(&nodes), manager: manager.clone(), kind, entered };
            tokio::time::timeout(2 * GENEROUS, exit(scene)).await.expect(name);
            assert!(manager.shutdown().await, "{name}");
            barrier(&nodes).await;
            assert_eq!(holders(&nodes, &held).await, size, "{name}");
            held.release().await.unwrap();
            // An exclusive lock is granted at once, so the other share has left no trace.
            waits.try_acquire(KEY).await.expect(name).release().await.unwrap();
        }
        assert_nothing_left(&other, &nodes).await;
        assert_nothing_left(&waits, &nodes).await;
    }
}
