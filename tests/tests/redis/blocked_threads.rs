//! Application tasks that block their threads lose only their own locks, wherever they block.

use crate::support::{BRIEF, assert_nothing_left, builder, owner_at};
use redlock_runtime::{LockError, LockGuard, LockManager, LockRequest};
use redlock_tests::{Nodes, PATIENCE, eventually_eq};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;

/// Short enough to wait for its end, and long enough that a renewed lock survives a pause of one second.
const TTL: Duration = Duration::from_secs(2);
/// Much longer than any test, so a missing key has not expired.
const LONG: Duration = Duration::from_secs(600);
/// Worker threads of the application, `None` for a single-threaded runtime, and the number of blocking tasks.
const SHAPES: [(Option<usize>, usize); 5] = [(None, 1), (Some(1), 1), (Some(2), 1), (Some(4), 1), (Some(4), 4)];

/// Barrier at which threads wait until the test opens it.
#[derive(Default)]
struct Barrier {
    blocked: AtomicUsize,
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Barrier {
    fn block(&self) {
        self.blocked.fetch_add(1, Ordering::SeqCst);
        let mut is_open = self.is_open.lock().unwrap();
        while !*is_open {
            is_open = self.opened.wait(is_open).unwrap();
        }
    }

    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

/// Opens the barrier in any case: otherwise, the runtime could not end.
struct OpenOnDrop<'a>(&'a Barrier);

impl Drop for OpenOnDrop<'_> {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// A value that blocks when it is dropped.
struct BlocksInDrop(Arc<Barrier>);

impl Drop for BlocksInDrop {
    fn drop(&mut self) {
        self.0.block();
    }
}

fn runtime(workers: Option<usize>) -> Runtime {
    let mut builder = match workers {
        None => Builder::new_current_thread(),
        Some(_) => Builder::new_multi_thread(),
    };
    builder.worker_threads(workers.unwrap_or(1)).enable_all().build().unwrap()
}

fn blocking_key(task: usize) -> String {
    format!("blocking:{task}")
}

async fn acquire(manager: &LockManager, task: usize) -> LockGuard {
    manager.acquire(LockRequest::new(blocking_key(task)).ttl(LONG)).await.unwrap()
}

async fn after_a_drop(manager: LockManager, task: usize, barrier: Arc<Barrier>) {
    drop(acquire(&manager, task).await);
    barrier.block();
}

async fn in_a_drop(manager: LockManager, task: usize, barrier: Arc<Barrier>) {
    let _blocks_last = BlocksInDrop(barrier);
    let _given_back_first = acquire(&manager, task).await;
}

async fn in_a_body(manager: LockManager, task: usize, barrier: Arc<Barrier>) {
    let body = async |_: &LockGuard| -> Result<(), LockError> {
        barrier.block();
        Ok(())
    };
    // The task may lose its own lock.
    let _ = manager.with_lock(LockRequest::new(blocking_key(task)).ttl(LONG), body).await;
}

/// Runs an application with `workers` threads, of which `tasks` are blocked by `block` while `meanwhile` runs in another thread
/// with a second manager. Before and after that, all locks of the application must be held.
fn blocked<F: Future<Output = ()> + Send + 'static>(
    (workers, tasks): (Option<usize>, usize),
    block: fn(LockManager, usize, Arc<Barrier>) -> F,
    meanwhile: impl AsyncFnOnce(&LockManager, &Nodes),
) {
    let (observer, application, barrier) = (runtime(None), runtime(workers), Arc::<Barrier>::default());
    let nodes = observer.block_on(Nodes::start(1));
    let [manager, other] = [&application, &observer].map(|runtime| {
        let _context = runtime.enter();
        builder(nodes.urls()).node_timeout(BRIEF).default_ttl(TTL).build().unwrap()
    });
    let held = application.block_on(async {
        manager.ready().await.unwrap();
        [manager.acquire("held:0").await.unwrap(), manager.acquire("held:1").await.unwrap()]
    });
    thread::scope(|scope| {
        let open = OpenOnDrop(&barrier);
        let (application, barrier, manager) = (&application, &barrier, &manager);
        scope.spawn(move || {
            let tasks: Vec<_> =
                (0..tasks).map(|task| application.spawn(block(manager.clone(), task, Arc::clone(barrier)))).collect();
            application.block_on(async {
                for task in tasks {
                    task.await.unwrap();
                }
            });
        });
        observer.block_on(async {
            let blocked = async || barrier.blocked.load(Ordering::SeqCst);
            eventually_eq(PATIENCE, "the threads are blocked", tasks, blocked).await;
            meanwhile(&other, &nodes).await;
            // The test needs several lease periods.
            sleep(3 * TTL).await;
            for guard in &held {
                guard.ensure_held().unwrap_or_else(|error| panic!("{workers:?} workers, {tasks} blocked: {error}"));
                let owner = owner_at(&nodes[0], guard.key().as_str()).await;
                assert_eq!(owner.as_deref(), Some(guard.token().as_str()), "{workers:?} workers, {tasks} blocked");
            }
        });
        drop(open);
    });
    drop(held);
    observer.block_on(async {
        assert!(other.shutdown().await);
        assert_nothing_left(&manager, &nodes).await;
    });
}

/// Runs all shapes at the same time, because most of the time they wait.
fn in_every_shape(run: impl Fn((Option<usize>, usize)) + Sync) {
    thread::scope(|scope| SHAPES.iter().for_each(|shape| drop(scope.spawn(|| run(*shape)))));
}

#[test]
fn release_is_sent_and_other_locks_survive_a_thread_blocked_after_a_drop() {
    in_every_shape(|shape| blocked(shape, after_a_drop, async |other, nodes| given_back(shape.1, other, nodes).await));
}

#[test]
fn earlier_release_is_sent_and_locks_survive_a_thread_blocked_in_a_drop() {
    in_every_shape(|shape| blocked(shape, in_a_drop, async |other, nodes| given_back(shape.1, other, nodes).await));
}

#[test]
fn other_locks_survive_a_thread_blocked_in_a_body() {
    in_every_shape(|shape| blocked(shape, in_a_body, async |_, _| {}));
}

/// Waits until the keys of all tasks are released after their guards were dropped, and acquires them with another manager.
async fn given_back(tasks: usize, other: &LockManager, nodes: &Nodes) {
    for key in (0..tasks).map(blocking_key) {
        eventually_eq(PATIENCE, "the key is gone", None, async || nodes[0].inspect().get(&key).await).await;
        other.acquire(&*key).await.unwrap().release().await.unwrap();
    }
}

#[test]
fn calls_on_other_runtimes_continue_while_the_manager_runtime_is_blocked() {
    let (observer, application, barrier) = (runtime(None), runtime(Some(1)), Arc::<Barrier>::default());
    let nodes = observer.block_on(Nodes::start(1));
    let manager = application.block_on(async {
        let manager = builder(nodes.urls()).build().unwrap();
        manager.ready().await.unwrap();
        manager
    });
    let _open = OpenOnDrop(&barrier);
    application.spawn({
        let barrier = Arc::clone(&barrier);
        async move { barrier.block() }
    });
    observer.block_on(async {
        let blocked = async || barrier.blocked.load(Ordering::SeqCst);
        eventually_eq(PATIENCE, "the thread is blocked", 1, blocked).await;
        for _ in 0..100 {
            manager.acquire("order:7").await.unwrap().release().await.unwrap();
        }
        let guard = manager.acquire("order:7").await.unwrap();
        let waiting = tokio::spawn({
            let manager = manager.clone();
            async move { manager.acquire(LockRequest::new("order:7").wait(PATIENCE)).await.unwrap() }
        });
        tokio::task::yield_now().await;
        drop(guard);
        drop(waiting.await.unwrap());
        assert_nothing_left(&manager, &nodes).await;
    });
}
