//! Spawned tasks that inherit the lock of their parent.

use redlock_runtime::{Inherited, LockError, LockGuard, LockManager, LockRequest, LossCause, distributed_lock};
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet, yield_now};
use tokio::time::{sleep, timeout};

const KEY: &str = "order:7";
const SECOND: Duration = Duration::from_secs(1);
/// Well before the end of a lease, so that only a wake-up can be the reason.
const SOON: Duration = SECOND;
const TTL: Duration = Duration::from_secs(30);

fn request() -> LockRequest {
    LockRequest::new(KEY).ttl(TTL).wait(SECOND)
}

#[track_caller]
fn cause<T: std::fmt::Debug>(ended: Result<T, LockError>) -> LossCause {
    match ended {
        Err(LockError::Lost { cause, .. }) => cause,
        other => panic!("a lost lock expected: {other:?}"),
    }
}

/// Counts the writes of a task, and records that the task was dropped.
#[derive(Clone, Default)]
struct Storage {
    writes: Arc<AtomicU64>,
}

impl Storage {
    fn count(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    /// Writes ten times a second, without end.
    async fn write(self) {
        loop {
            self.writes.fetch_add(1, Ordering::Relaxed);
            sleep(SECOND / 10).await;
        }
    }

    /// Returns `true` if the future of [`write`](Self::write) was dropped.
    fn is_dropped(&self) -> bool {
        Arc::strong_count(&self.writes) == 1
    }
}

/// Spawns a task that writes in the scope of an inherited lock.
fn writer(lock: Inherited, storage: &Storage) -> JoinHandle<Result<(), LockError>> {
    tokio::spawn(lock.scope(storage.clone().write()))
}

/// Spawns a task that does nothing in the scope of an inherited lock, so that only a wake-up can end it.
fn idle(lock: Inherited, storage: &Storage) -> JoinHandle<Result<(), LockError>> {
    let storage = storage.clone();
    tokio::spawn(lock.scope(async move {
        pending::<()>().await;
        drop(storage);
    }))
}

/// Reaction of the parent to the loss.
#[derive(Clone, Copy, Debug)]
enum Parent {
    IsStopped,
    Continues,
}

#[distributed_lock(key = "order:7", ttl = TTL, renew = false, guard = lock)]
async fn stopped(
    handle: &std::sync::Mutex<Vec<JoinHandle<Result<(), LockError>>>>,
    storage: &Storage,
) -> Result<(), LockError> {
    handle.lock().unwrap().push(writer(lock.inherit(), storage));
    pending().await
}

#[distributed_lock(key = "order:7", ttl = TTL, renew = false, guard = lock, on_lost = continue)]
async fn continues(
    handle: &std::sync::Mutex<Vec<JoinHandle<Result<(), LockError>>>>,
    storage: &Storage,
) -> Result<(), LockError> {
    handle.lock().unwrap().push(writer(lock.inherit(), storage));
    sleep(2 * TTL).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn loss_of_the_lock_stops_a_detached_task() {
    for parent in [Parent::IsStopped, Parent::Continues] {
        let manager = LockManager::in_memory();
        let (handle, storage) = (std::sync::Mutex::default(), Storage::default());
        let call = manager.scope(async {
            match parent {
                Parent::IsStopped => stopped(&handle, &storage).await,
                Parent::Continues => continues(&handle, &storage).await,
            }
        });
        let next = async {
            let next = manager.acquire(request().wait(2 * TTL)).await.unwrap();
            let before = storage.count();
            assert!(before > 100, "{parent:?}: it wrote while the lock was held");
            // The task may be dropped a moment later, but it is not polled after the loss.
            sleep(TTL).await;
            assert_eq!(storage.count(), before, "{parent:?}");
            assert!(storage.is_dropped(), "{parent:?}");
            drop(next);
        };
        let (called, ()) = tokio::join!(call, next);
        match parent {
            Parent::IsStopped => assert_eq!(cause(called), LossCause::Expired),
            Parent::Continues => called.unwrap(),
        }
        let task = handle.into_inner().unwrap().pop().unwrap();
        assert_eq!(cause(task.await.unwrap()), LossCause::Expired, "{parent:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn inherited_lock_reports_the_loss_and_its_cause() {
    let manager = LockManager::in_memory();
    let guard = manager.acquire(request()).await.unwrap();
    let lock = guard.inherit();
    assert_eq!(lock.key(), guard.key());
    assert!(lock.is_held() && lock.ensure_held().is_ok());
    let waiting = tokio::spawn({
        let lock = lock.clone();
        async move { lock.lost().await }
    });
    yield_now().await;
    assert!(!waiting.is_finished());
    manager.break_lock(KEY, *guard.token()).await;
    let error = timeout(SOON, waiting).await.expect("it is woken").unwrap();
    assert!(matches!(cause::<()>(Err(error)), LossCause::Revoked { .. }));
    assert!(!lock.is_held());
    assert!(matches!(cause(lock.ensure_held()), LossCause::Revoked { .. }));
    // The end of the guard does not hide the loss from a task that looks late.
    drop(guard);
    assert!(matches!(cause(lock.ensure_held()), LossCause::Revoked { .. }));
}

#[tokio::test(start_paused = true)]
async fn lost_can_be_awaited_again_after_it_was_dropped() {
    let manager = LockManager::in_memory();
    let guard = manager.acquire(request()).await.unwrap();
    let lock = guard.inherit();
    // Longer than the lease, which is renewed.
    assert!(timeout(3 * TTL, lock.lost()).await.is_err());
    let (error, released) = tokio::join!(timeout(SOON, lock.lost()), guard.release());
    released.unwrap();
    assert_eq!(cause::<()>(Err(error.expect("it is woken"))), LossCause::Released);
}

/// End of the guard of a parent while its task continues.
type Ends = fn(LockGuard) -> Option<LockGuard>;

#[tokio::test(start_paused = true)]
async fn scope_ends_with_the_guard() {
    let ends: [(&str, Ends); 3] = [
        ("dropped", |_| None),
        ("released", |guard| {
            drop(guard.release());
            Some(guard)
        }),
        ("detached", |guard| {
            drop(guard.detach());
            None
        }),
    ];
    // The lock is released to the servers, stays with this process, or is handed to another call of it. The last two send no command.
    for (lingers, is_wanted) in [(false, false), (true, false), (false, true)] {
        for (how, end) in ends {
            let shown = format!("{how}, {lingers}, {is_wanted}");
            let manager =
                LockManager::builder().linger(if lingers { TTL } else { Duration::ZERO }).in_memory().unwrap();
            let (guard, storage) = (manager.acquire(request()).await.unwrap(), Storage::default());
            let task = idle(guard.inherit(), &storage);
            let waiting = is_wanted.then(|| {
                let manager = manager.clone();
                tokio::spawn(async move { manager.acquire(request().wait(2 * TTL)).await.unwrap() })
            });
            sleep(3 * SECOND).await;
            assert!(!task.is_finished() && !storage.is_dropped(), "{shown}");
            let kept = end(guard);
            let ended = timeout(SOON, task).await.expect(&shown).unwrap();
            assert_eq!(cause(ended), LossCause::Released, "{shown}");
            assert!(storage.is_dropped(), "{shown}");
            drop(kept);
            drop(waiting);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn panic_of_a_task_does_not_affect_the_lock_or_other_tasks() {
    let manager = LockManager::in_memory();
    let (guard, storage) = (manager.acquire(request()).await.unwrap(), Storage::default());
    let other = writer(guard.inherit(), &storage);
    let panicking = guard.inherit().scope(async {
        yield_now().await;
        panic!("planned");
    });
    let error = tokio::spawn(panicking).await.unwrap_err();
    assert!(error.is_panic());
    guard.ensure_held().unwrap();
    // The thread has no frame left, so a call here has no lock to re-enter.
    let outside = manager.acquire(request().reentrant()).await.unwrap_err();
    assert!(matches!(outside, LockError::TimedOut { .. }), "{outside}");
    drop(guard.inherit().scope(manager.acquire(request().reentrant())).await.unwrap().unwrap());
    assert!(!other.is_finished());
    drop(guard);
    assert_eq!(cause(timeout(SOON, other).await.expect("it is woken").unwrap()), LossCause::Released);
}

#[tokio::test(start_paused = true)]
async fn aborted_task_leaves_the_lock_with_its_parent() {
    let manager = LockManager::in_memory();
    let (guard, storage) = (manager.acquire(request()).await.unwrap(), Storage::default());
    let task = writer(guard.inherit(), &storage);
    sleep(SECOND).await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    assert!(storage.is_dropped());
    guard.ensure_held().unwrap();
    guard.release().await.unwrap();
}

#[distributed_lock(key = "order:7", ttl = TTL, guard = lock)]
async fn run_in_a_join_set(storages: &[Storage]) -> Result<(), LockError> {
    let mut tasks = JoinSet::new(); // aborts its tasks when the body is dropped
    for storage in storages {
        tasks.spawn(lock.inherit().scope(storage.clone().write()));
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap()?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn tasks_of_a_join_set_end_with_the_body() {
    let storages: [Storage; 3] = Default::default();
    let all_dropped = || storages.iter().all(Storage::is_dropped);
    // The call is cancelled.
    let manager = LockManager::in_memory();
    assert!(timeout(2 * TTL, manager.scope(run_in_a_join_set(&storages))).await.is_err());
    yield_now().await;
    assert!(all_dropped());
    // The lock is lost.
    let call = timeout(SOON, manager.scope(run_in_a_join_set(&storages)));
    let breaking = async {
        yield_now().await;
        let token = manager.held_locks().pop().unwrap().token;
        manager.break_lock(KEY, token).await
    };
    let (called, _) = tokio::join!(call, breaking);
    assert!(matches!(cause(called.expect("it is stopped")), LossCause::Revoked { .. }));
    yield_now().await;
    assert!(all_dropped());
}

#[tokio::test(start_paused = true)]
async fn cancelled_parent_stops_its_detached_tasks() {
    let manager = LockManager::in_memory();
    let (handle, storage) = (std::sync::Mutex::default(), Storage::default());
    assert!(timeout(3 * SECOND, manager.scope(stopped(&handle, &storage))).await.is_err());
    let task = handle.into_inner().unwrap().pop().unwrap();
    assert_eq!(cause(timeout(SOON, task).await.expect("it is woken").unwrap()), LossCause::Released);
    assert!(storage.is_dropped());
}

#[distributed_lock(key = "order:{id}", reentrant, guard = lock)]
async fn book(id: u64, depth: u64) -> Result<u64, LockError> {
    yield_now().await;
    lock.ensure_held()?;
    if depth == 0 {
        return Ok(id);
    }
    tokio::spawn(lock.inherit().scope(book_deeper(id, depth - 1))).await.unwrap()?
}

/// Calls `book` through a boxed future, which recursion needs.
fn book_deeper(id: u64, depth: u64) -> Pin<Box<dyn Future<Output = Result<u64, LockError>> + Send>> {
    Box::pin(book(id, depth))
}

#[distributed_lock(key = "audit:{id}")]
async fn audit(id: u64) -> Result<u64, LockError> {
    Ok(id)
}

#[tokio::test(start_paused = true)]
async fn task_inherits_the_scoped_manager() {
    let [ours, theirs] = [LockManager::in_memory(), LockManager::in_memory()];
    // Each task inherits the lock of the nested call that spawned it.
    assert_eq!(ours.scope(book(7, 5)).await.unwrap(), 7);
    let spawned = async |lock: Inherited| tokio::spawn(lock.scope(audit(7))).await.unwrap().unwrap();
    let (with, without) = ours
        .scope(async {
            let guard = LockManager::current().unwrap().acquire(request()).await.unwrap();
            let with = spawned(guard.inherit()).await;
            // Tasks that inherit nothing have no manager.
            (with, tokio::spawn(audit(7)).await.unwrap())
        })
        .await;
    assert_eq!(with.unwrap(), 7);
    assert!(matches!(without, Err(LockError::NotInstalled)), "{without:?}");

    // An inner scope replaces the inherited manager, and the inherited manager replaces that of an outer scope.
    let _taken = theirs.acquire("audit:7").await.unwrap();
    let fails =
        |outcome: Result<u64, LockError>| assert!(matches!(outcome, Err(LockError::TimedOut { .. })), "{outcome:?}");
    let lock = ours.scope(async { ours.acquire(request()).await.map(|guard| (guard.inherit(), guard)) }).await.unwrap();
    fails(lock.0.clone().scope(theirs.scope(audit(7))).await.unwrap());
    assert_eq!(theirs.scope(lock.0.clone().scope(audit(7))).await.unwrap().unwrap(), 7);
    drop(lock);
    // If the parent has no scope, the task keeps its present manager.
    let guard = ours.acquire(request()).await.unwrap();
    assert_eq!(ours.scope(guard.inherit().scope(audit(7))).await.unwrap().unwrap(), 7);
    fails(theirs.scope(guard.inherit().scope(audit(7))).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn scope_ends_with_the_nested_call_that_it_inherits_from() {
    let manager = LockManager::in_memory();
    let storage = Storage::default();
    let (entered, ours) = (Arc::new(Notify::new()), manager.clone());
    let body = async |outer: &LockGuard| {
        let nested = ours.acquire(request().reentrant()).await?;
        let task = idle(nested.inherit(), &storage);
        let inner = tokio::spawn(nested.inherit().scope({
            let (entered, ours, storage) = (Arc::clone(&entered), ours.clone(), storage.clone());
            async move {
                let deeper = ours.acquire(request().reentrant()).await.unwrap();
                entered.notify_one();
                deeper.inherit().scope(storage.write()).await
            }
        }));
        entered.notified().await;
        assert!(!task.is_finished() && !inner.is_finished());
        drop(nested);
        for ended in
            [timeout(SOON, task).await, timeout(SOON, async { inner.await.map(|ended| ended.map(drop)) }).await]
        {
            assert_eq!(cause(ended.expect("it is woken").unwrap()), LossCause::Released);
        }
        assert!(storage.is_dropped());
        outer.ensure_held()
    };
    manager.with_lock(request(), body).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn max_hold_of_a_nested_call_stops_its_task() {
    let manager = LockManager::in_memory();
    let storage = Storage::default();
    let body = async |outer: &LockGuard| {
        let nested = manager.acquire(request().reentrant().max_hold(3 * SECOND)).await?;
        let task = writer(nested.inherit(), &storage);
        assert_eq!(cause(timeout(4 * SECOND, task).await.expect("its time is over").unwrap()), LossCause::MaxHold);
        let late = nested.inherit();
        drop(nested);
        assert_eq!(cause(late.ensure_held()), LossCause::MaxHold);
        outer.ensure_held()
    };
    manager.with_lock(request(), body).await.unwrap();
}
