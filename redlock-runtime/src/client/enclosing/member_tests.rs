//! Tests of the tasks that are woken when one of several calls with one token leaves its share.

use crate::{LockError, LockGuard, LockManager, LockRequest, LossCause};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake};
use std::time::Duration;

/// Counts the wake-ups of a waiting task.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn reader() -> LockRequest {
    let mut request = LockRequest::shared("page:7").ttl(Duration::from_secs(10));
    request.inner.joins = true;
    request
}

async fn readers<const N: usize>(manager: &LockManager) -> [LockGuard; N] {
    let mut all = Vec::new();
    for _ in 0..N {
        all.push(manager.acquire(reader()).await.unwrap());
    }
    let all: [LockGuard; N] = all.try_into().unwrap();
    assert!(all.iter().all(|one| one.token() == all[0].token()), "they have one token");
    all
}

/// Task that waits for the loss of a lock, and is polled only by the test.
struct Waiting<'g> {
    lost: Pin<Box<dyn Future<Output = LockError> + 'g>>,
    woken: Arc<Woken>,
}

impl<'g> Waiting<'g> {
    fn on(guard: &'g LockGuard) -> Self {
        let mut waiting = Self { lost: Box::pin(guard.lost()), woken: Arc::default() };
        assert!(waiting.poll().is_pending());
        waiting
    }

    fn poll(&mut self) -> Poll<LockError> {
        self.lost.as_mut().poll(&mut Context::from_waker(&Arc::clone(&self.woken).into()))
    }

    fn count(&self) -> usize {
        self.woken.0.load(Ordering::Relaxed)
    }

    #[track_caller]
    fn assert_released(&mut self) {
        let Poll::Ready(LockError::Lost { cause, .. }) = self.poll() else { panic!("it is lost") };
        assert_eq!(cause, LossCause::Released);
    }
}

#[tokio::test(start_paused = true)]
async fn released_reader_wakes_only_its_own_loss_watchers() {
    const MANY: usize = 16;
    let manager = LockManager::in_memory();
    let all = readers::<MANY>(&manager).await;
    let mut waiting: Vec<_> = all.iter().map(Waiting::on).collect();
    for (number, guard) in all.iter().enumerate() {
        drop(guard.release());
        let counts: Vec<_> = waiting.iter().map(Waiting::count).collect();
        let expected: Vec<_> = (0..MANY).map(|other| usize::from(other <= number)).collect();
        assert_eq!(counts, expected, "each once, by its own release");
        waiting[number].assert_released();
    }
    assert!(manager.held_locks().is_empty());
}

#[tokio::test(start_paused = true)]
async fn nested_loss_watchers_are_woken_when_their_reader_is_released() {
    let manager = LockManager::in_memory();
    let [ours, theirs] = readers::<2>(&manager).await;
    let nested = ours.scope(manager.acquire(reader().reentrant())).await.unwrap();
    let inner = nested.scope(manager.acquire(reader().reentrant())).await.unwrap();
    let (mut first, mut second, other) = (Waiting::on(&nested), Waiting::on(&inner), Waiting::on(&theirs));
    // Another call waits behind the nested call.
    let woken = Arc::<Woken>::default();
    let mut behind = pin!(ours.scope(manager.acquire(reader().reentrant())));
    assert!(behind.as_mut().poll(&mut Context::from_waker(&Arc::clone(&woken).into())).is_pending());

    drop(ours.release());
    assert_eq!((first.count(), second.count(), other.count()), (1, 1, 0));
    first.assert_released();
    second.assert_released();
    assert!(woken.0.load(Ordering::Relaxed) > 0);
    assert!(matches!(behind.await, Err(LockError::Lost { .. })), "what it was to enter is gone");
    assert!(theirs.is_held());
}

#[tokio::test(start_paused = true)]
async fn all_readers_are_woken_when_the_token_is_lost() {
    let manager = LockManager::in_memory();
    let all = readers::<3>(&manager).await;
    let mut waiting: Vec<_> = all.iter().map(Waiting::on).collect();
    let report = manager.break_lock("page:7", *all[0].token()).await;
    assert!(!report.nodes.is_empty());
    for waiting in &mut waiting {
        assert!(waiting.count() > 0);
        assert!(waiting.poll().is_ready());
    }
}

#[tokio::test(start_paused = true)]
async fn inherited_reader_share_does_not_keep_the_lock_held() {
    let manager = LockManager::in_memory();
    let [guard] = readers::<1>(&manager).await;
    // A task that continues after its caller.
    let inherited = guard.inherit();
    drop(guard);
    assert!(manager.held_locks().is_empty());
    let alone = manager.acquire(LockRequest::new("page:7").wait(Duration::from_secs(1))).await.unwrap();
    assert!(alone.is_held());
    drop(inherited);
}

#[tokio::test(start_paused = true)]
async fn end_of_a_reader_ends_only_the_scopes_of_its_own_tasks() {
    let manager = LockManager::in_memory();
    let [ours, theirs] = readers::<2>(&manager).await;
    let scope = |guard: &LockGuard| tokio::spawn(guard.inherit().scope(std::future::pending::<()>()));
    let (our_task, their_task) = (scope(&ours), scope(&theirs));
    let mut waiting = Waiting::on(&theirs);
    tokio::task::yield_now().await;
    drop(ours);
    // Before the end of the lease: the task is woken.
    let ended = tokio::time::timeout(Duration::from_secs(1), our_task).await.expect("it is woken").unwrap();
    assert!(matches!(ended, Err(LockError::Lost { cause: LossCause::Released, .. })), "{ended:?}");
    assert!(!their_task.is_finished() && waiting.poll().is_pending() && waiting.count() == 0);
    drop(waiting);
    drop(theirs);
    let ended = tokio::time::timeout(Duration::from_secs(1), their_task).await.expect("it is woken").unwrap();
    assert!(matches!(ended, Err(LockError::Lost { cause: LossCause::Released, .. })), "{ended:?}");
}
