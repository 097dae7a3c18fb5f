//! Nested calls: their cost, and managers that share the same servers.

use crate::breaking::wait_until_listening;
use crate::support::{SIZES, assert_nothing_left, barrier, builder, connected, manager, wait_until_queued};
use crate::waiters::{assert_all_gone, managers, most_scripts, obtained, patient, reset_counts, waiting};
use redlock_runtime::__private::hold;
use redlock_runtime::{LockError, LockGuard, LockManager, LockRequest, LossCause, Mode};
use redlock_tests::{Nodes, PATIENCE};
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

const KEY: &str = "order:7";
const TTL: Duration = Duration::from_secs(60);

fn request() -> LockRequest {
    patient(KEY).ttl(TTL)
}

/// Makes a call for `inner` with one manager, in the body of a call for `KEY` with another manager. Like the body of an annotated
/// function, the body has no access to its guard.
async fn nested(outer: &LockManager, manager: &LockManager, inner: LockRequest) -> Result<(), LockError> {
    let guard = outer.acquire(request()).await?;
    let body = hold(&guard, manager.acquire(inner));
    timeout(PATIENCE, body).await.expect("it does not wait")?.map(drop)
}

#[tokio::test]
async fn nested_reentrant_call_sends_no_command() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let manager = manager(&nodes).await;
        let body = async |guard: &LockGuard| {
            // After this, the last nodes have answered as well.
            guard.extend().await?;
            barrier(&nodes).await;
            reset_counts(&nodes).await;
            for _ in 0..100 {
                // In Redisson, the shorter ttl would apply to the lock (#1110, #3484), and the inner release would end it.
                let inner = request().ttl(TTL / 10).reentrant();
                manager.with_lock(inner.clone(), async |view| view.ensure_held()).await?;
                manager.try_acquire(inner).await?.release().await?;
            }
            barrier(&nodes).await;
            assert_eq!(most_scripts(&nodes).await + nodes[0].inspect().calls("set").await, 0, "{size} nodes");
            for node in nodes.iter() {
                assert!(node.inspect().pttl(KEY).await > 0, "it is held as before");
            }
            guard.ensure_held()
        };
        manager.with_lock(request(), body).await.unwrap();
        assert_nothing_left(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn nested_deadlock_is_detected_without_a_command() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let guard = manager.acquire(request()).await.unwrap();
    // After this, the last nodes have answered as well.
    guard.extend().await.unwrap();
    barrier(&nodes).await;
    reset_counts(&nodes).await;
    let error = hold(&guard, manager.acquire(request())).await.unwrap().unwrap_err();
    assert!(matches!(error, LockError::WouldDeadlock { .. }), "{error}");
    barrier(&nodes).await;
    assert_eq!(most_scripts(&nodes).await + nodes[0].inspect().calls("set").await, 0);
    guard.ensure_held().unwrap();
    drop(guard);
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn nested_deadlock_is_detected_across_managers_of_the_same_servers() {
    let nodes = Nodes::start(3).await;
    let ours = manager(&nodes).await;
    // The order of the nodes does not matter.
    let theirs = connected(builder(nodes.urls().into_iter().rev()), &nodes).await;
    for inner in [request(), request().reentrant()] {
        let error = nested(&ours, &theirs, inner).await.unwrap_err();
        assert!(matches!(error, LockError::WouldDeadlock { .. }), "{error}");
        assert!(error.to_string().contains("use one manager for both"), "{error}");
    }
    let not_waiting = nested(&ours, &theirs, request().wait(Duration::ZERO)).await.unwrap_err();
    assert!(matches!(not_waiting, LockError::Contended { .. }), "{not_waiting}");
    assert_nothing_left(&ours, &nodes).await;
    assert_nothing_left(&theirs, &nodes).await;
}

#[tokio::test]
async fn nested_call_on_another_namespace_database_or_server_is_no_deadlock() {
    let (nodes, others) = (Nodes::start(1).await, Nodes::start(1).await);
    let ours = manager(&nodes).await;
    let database: Vec<_> = nodes.urls().into_iter().map(|url| format!("{}/1", url.trim_end_matches('/'))).collect();
    let theirs = [builder(nodes.urls()).namespace("shop"), builder(database), builder(others.urls())];
    for theirs in theirs.map(|builder| builder.build().unwrap()) {
        nested(&ours, &theirs, request().reentrant()).await.unwrap();
        assert!(theirs.shutdown().await);
    }
    assert_nothing_left(&ours, &nodes).await;
}

/// Lock of the outer body.
#[derive(Clone, Copy, Debug)]
enum Has {
    Read,
    Written,
    /// An exclusive lock that was downgraded to a shared one.
    Lowered,
}
use Has::{Lowered, Read, Written};

/// Lock of the body, whether a writer waits for it, the nested request, and whether it is granted at once.
type Row = (Has, bool, fn() -> LockRequest, bool);

fn read() -> LockRequest {
    request().mode(Mode::Shared)
}

fn read_again() -> LockRequest {
    read().reentrant()
}

fn write_again() -> LockRequest {
    request().reentrant()
}

#[tokio::test]
async fn nested_reader_writer_combinations_enter_or_fail_as_listed() {
    // The rows of parking_lot #532, whose deadlocks depend on other threads. Locks here cannot be upgraded, so a downgraded lock takes
    // the place of an upgradable one.
    // A row is wrong in two cases: a call waits for its caller, directly or behind the writer; or it is granted a lock that its caller
    // does not hold.
    let table: [Row; 16] = [
        (Read, false, read, true),
        (Read, false, read_again, true),
        (Read, false, request, false),
        (Read, false, write_again, false),
        (Read, true, read, false),
        (Read, true, read_again, true),
        (Read, true, write_again, false),
        (Written, false, read, false),
        (Written, false, read_again, true),
        (Written, false, request, false),
        (Written, false, write_again, true),
        (Written, true, write_again, true),
        (Lowered, false, read, true),
        (Lowered, false, write_again, false),
        (Lowered, true, read, false),
        (Lowered, true, read_again, true),
    ];
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
        for (has, a_writer_waits, inner, enters) in table {
            let shown = format!("{:?} in a body that has {has:?}, {a_writer_waits}, {size} nodes", inner());
            let outer = ours.acquire(if matches!(has, Read) { read() } else { request() }).await.unwrap();
            if matches!(has, Lowered) {
                outer.downgrade();
                outer.extend().await.unwrap();
            }
            let writer = a_writer_waits.then(|| waiting(&theirs, request()));
            wait_until_queued(&nodes, KEY, usize::from(a_writer_waits)).await;
            let nested = timeout(PATIENCE, hold(&outer, ours.acquire(inner()))).await.expect(&shown).unwrap();
            match nested {
                Ok(nested) => assert!(enters && nested.is_held(), "{shown}"),
                Err(LockError::WouldDeadlock { .. }) => assert!(!enters, "{shown}"),
                Err(other) => panic!("{shown}: {other}"),
            }
            assert!(outer.is_held(), "{shown}");
            drop(outer);
            if let Some(writer) = writer {
                obtained(writer).await.release().await.unwrap();
            }
        }
        assert_all_gone(&ours, &nodes).await;
        assert_all_gone(&theirs, &nodes).await;
    }
}

/// Writes under the lock, by the task of the parent or by the next holder.
#[derive(Clone, Default)]
struct Journal(Arc<Mutex<Vec<&'static str>>>);

impl Journal {
    fn write(&self, by: &'static str) {
        self.0.lock().unwrap().push(by);
    }
}

#[tokio::test]
async fn inherited_task_writes_nothing_after_the_next_holder_has_started() {
    for size in [1, 3] {
        let nodes = Arc::new(Nodes::start(size).await);
        let [holder, other, operator] = managers(&nodes, 3).await.try_into().unwrap();
        // After this, the manager listens.
        holder.check().await;
        let journal = Journal::default();
        let (started, task) = oneshot::channel();
        let parent = tokio::spawn({
            let (nodes, holder, journal) = (Arc::clone(&nodes), holder.clone(), journal.clone());
            async move {
                let body = async |guard: &LockGuard| {
                    let writes = async move {
                        loop {
                            journal.write("task");
                            // Work of the task. It awaits the servers.
                            nodes[0].inspect().command::<()>(&["PING"]).await;
                        }
                    };
                    // Outside of a `JoinSet`, so it is not aborted when the body is dropped.
                    let task = tokio::spawn(guard.inherit().scope(writes));
                    started.send((task, *guard.token())).unwrap();
                    pending::<Result<(), LockError>>().await
                };
                holder.with_lock(request(), body).await
            }
        });
        let (task, token) = task.await.unwrap();
        let next = tokio::spawn({
            let (other, journal) = (other.clone(), journal.clone());
            async move {
                let guard = other.acquire(request()).await.unwrap();
                journal.write("next");
                guard
            }
        });
        wait_until_queued(&nodes, KEY, 1).await;
        wait_until_listening(&nodes, token.as_str()).await;
        assert!(operator.break_lock(KEY, token).await.is_broken());
        let next = timeout(PATIENCE, next).await.expect("the next holder has begun").unwrap();
        // The task has ended, so the journal contains all of its writes.
        let ended: Result<(), LockError> = timeout(PATIENCE, task).await.expect("the task is stopped").unwrap();
        assert!(matches!(ended, Err(LockError::Lost { cause: LossCause::Revoked { .. }, .. })), "{ended:?}");
        let stopped = timeout(PATIENCE, parent).await.expect("the body is stopped").unwrap();
        assert!(matches!(stopped, Err(LockError::Lost { cause: LossCause::Revoked { .. }, .. })), "{stopped:?}");
        let journal = journal.0.lock().unwrap().clone();
        assert_eq!((journal.first(), journal.last()), (Some(&"task"), Some(&"next")), "{size} nodes: {journal:?}");
        drop(next);
        for manager in [&holder, &other, &operator] {
            assert_nothing_left(manager, &nodes).await;
        }
    }
}
