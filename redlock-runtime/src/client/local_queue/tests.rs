//! Tests of the local queues: however a call leaves, the entry of the key ends with the last call.

use super::entry::Entry;
use super::local_waiter::LocalWaiter;
use super::{Entered, LEAST_ROOM, LocalQueue, SHARDS, lock};
use crate::client::acquisition::Acquisition;
use crate::client::hooked_node::{Fate, HookedNode};
use crate::client::watchdog::schedule::Planned;
use crate::node::Node;
use crate::protocol::candidate::Wanted;
use crate::protocol::command::{Command, Subject, Verb};
use crate::time::clock::Clock;
use crate::{LockError, LockKey, LockManager, LockRequest, Wait};
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::task::{Context, Wake, Waker};
use std::time::Duration;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::sleep;

const KEY: &str = "order:7";
const TTL: Duration = Duration::from_secs(10);

impl LocalQueue {
    /// Returns the number of waiting calls for each key of the manager.
    fn lines(&self) -> Vec<usize> {
        let shards = self.shards.iter().map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner));
        shards.flat_map(|shard| shard.entries.values().map(Entry::waiting).collect::<Vec<_>>()).collect()
    }
}

fn request() -> LockRequest {
    LockRequest::new(KEY).ttl(TTL).wait(Wait::Forever).without_renewal()
}

async fn waiting(manager: &LockManager, request: LockRequest) -> JoinHandle<Result<(), LockError>> {
    let manager = manager.clone();
    let call = tokio::spawn(async move { manager.acquire(request).await.map(drop) });
    yield_now().await;
    call
}

#[tokio::test(start_paused = true)]
async fn queue_entry_exists_while_a_call_holds_the_key_or_waits() {
    let manager = LockManager::in_memory();
    let lines = || manager.local.lines();
    let held = manager.acquire(request()).await.unwrap();
    assert_eq!(lines(), [0]);
    let other = manager.acquire("order:8").await.unwrap();
    let first = waiting(&manager, request()).await;
    let second = waiting(&manager, request()).await;
    assert_eq!(lines().iter().sum::<usize>(), 2);
    drop(other);
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    assert_eq!(lines(), [1]);
    drop(held);
    second.await.unwrap().unwrap();
    assert_eq!(lines(), Vec::<usize>::new());
}

#[tokio::test(start_paused = true)]
async fn timed_out_call_leaves_the_local_queue() {
    let manager = LockManager::in_memory();
    let held = manager.acquire(request()).await.unwrap();
    let error = manager.acquire(request().wait(TTL / 2)).await.unwrap_err();
    assert!(matches!(error, LockError::TimedOut { .. }), "{error:?}");
    assert_eq!(manager.local.lines(), [0]);
    assert!(held.is_held());
    drop(held);
    assert_eq!(manager.local.lines(), Vec::<usize>::new());
}

#[tokio::test(start_paused = true)]
async fn shutdown_empties_the_local_queues_and_keeps_the_holder() {
    let manager = LockManager::in_memory();
    let held = manager.acquire(request()).await.unwrap();
    let calls = [waiting(&manager, request()).await, waiting(&manager, request()).await];
    assert!(manager.shutdown().await);
    for call in calls {
        assert!(matches!(call.await.unwrap(), Err(LockError::Closed)));
    }
    assert!(held.is_held());
    drop(held);
    assert_eq!(manager.local.lines(), Vec::<usize>::new());
}

#[tokio::test(start_paused = true)]
async fn first_waiter_supersedes_a_leaked_guard_after_its_lease() {
    let manager = LockManager::in_memory();
    let begun = manager.shared().clock.now();
    std::mem::forget(manager.acquire(request()).await.unwrap());
    let calls = [waiting(&manager, request()).await, waiting(&manager, request()).await];
    for call in calls {
        call.await.unwrap().unwrap();
    }
    let waited = manager.shared().clock.now().since(begun);
    assert!(waited < TTL + Duration::from_millis(10), "{waited:?}");
    assert_eq!(manager.local.lines(), Vec::<usize>::new());
}

#[tokio::test(start_paused = true)]
async fn only_the_first_waiter_supersedes_and_only_after_the_lease() {
    let (manager, key) = (LockManager::in_memory(), LockKey::from(KEY));
    let held = manager.acquire(request()).await.unwrap();
    let wanted = Wanted { ttl: TTL, is_fenced: false, is_kept: false, linger: Duration::ZERO };
    let place = || match manager.local.enter(&key, wanted, true, manager.shared().clock.now()) {
        Entered::Behind(place) => place,
        Entered::First(_) | Entered::Taken => panic!("a place in line expected"),
    };
    let [first, second] = [place(), place()];
    assert!(first.supersede().is_none());
    tokio::time::advance(TTL).await;
    assert!(second.supersede().is_none());
    let turn = first.supersede().unwrap();
    assert!(second.supersede().is_none(), "whoever superseded it has the turn, and has yet to take the lock");
    drop((held, turn, first, second));
    assert_eq!(manager.local.lines(), Vec::<usize>::new());
}

#[tokio::test(start_paused = true)]
async fn expired_guard_does_not_disturb_its_successor() {
    let manager = LockManager::in_memory();
    let late = manager.acquire(request()).await.unwrap();
    tokio::time::advance(TTL).await;
    let guard = manager.try_acquire(request()).await.unwrap();
    let next = waiting(&manager, request()).await;
    drop(late);
    yield_now().await;
    assert!(guard.is_held() && !next.is_finished());
    assert_eq!(manager.local.lines(), [1]);
    drop(guard);
    next.await.unwrap().unwrap();
    assert_eq!(manager.local.lines(), Vec::<usize>::new());
}

#[tokio::test(start_paused = true)]
async fn key_in_use_does_not_keep_its_manager_alive() {
    let manager = LockManager::in_memory();
    let held = manager.acquire(request()).await.unwrap();
    let next = waiting(&manager, request()).await;
    // The manager, its guard, and the waiting call with a clone of the manager and its place.
    assert_eq!(Arc::strong_count(&manager.local), 4);
    // The queue, and the one token in it.
    assert_eq!(Arc::strong_count(manager.local.shared()), 2);
    next.abort();
    assert!(next.await.unwrap_err().is_cancelled());
    let local = Arc::downgrade(&manager.local);
    drop(manager);
    assert!(held.is_held() && local.strong_count() == 1, "the guard alone");
    drop(held);
    assert_eq!(local.strong_count(), 0);
}

/// Waker that runs at once, in the waking thread, and examines the queue of the key.
struct Inline(LockManager);

impl Wake for Inline {
    fn wake(self: Arc<Self>) {
        self.0.local.acquisition(KEY);
    }
}

#[tokio::test(start_paused = true)]
async fn task_woken_by_a_hand_off_or_takeover_can_use_the_queue_at_once() {
    let manager = LockManager::in_memory();
    let waker = Waker::from(Arc::new(Inline(manager.clone())));
    let mut cx = Context::from_waker(&waker);
    let held = manager.acquire(request()).await.unwrap();
    let next = waiting(&manager, request()).await;
    let is_watching = pin!(held.lost()).poll(&mut cx).is_pending();
    assert!(is_watching);
    drop(held);
    next.await.unwrap().unwrap();
    let held = manager.acquire(request()).await.unwrap();
    let mut lost = pin!(held.lost());
    assert!(lost.as_mut().poll(&mut cx).is_pending());
    tokio::time::advance(TTL).await;
    drop(manager.try_acquire(request()).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn superseded_guard_stays_lost_after_its_successor_released() {
    let manager = LockManager::in_memory();
    for _ in 0..2 {
        let late = manager.acquire(request()).await.unwrap();
        tokio::time::advance(TTL).await;
        manager.try_acquire(request()).await.unwrap().release().await.unwrap();
        assert!(matches!(late.release().await, Err(LockError::Lost { .. })));
    }
}

#[tokio::test(start_paused = true)]
async fn cancelled_call_gives_up_only_its_own_queue_place() {
    let manager = LockManager::in_memory();
    let (wanted, key) =
        (Wanted { ttl: TTL, is_fenced: false, is_kept: false, linger: Duration::ZERO }, LockKey::from(KEY));
    let at = manager.shared().clock.now();
    let line = || Entry::new(Arc::new(Acquisition::of_key(manager.local.shared(), &key, TTL, at)), Planned::at(at));
    let waiter = || Arc::new(LocalWaiter::new(wanted));
    let (mut before, mut now, gone, waits) = (line(), line(), waiter(), waiter());
    let (place, _) = before.join(Arc::clone(&gone));
    assert_eq!(now.join(Arc::clone(&waits)).0, place, "every line begins anew");
    now.leave(place, &gone);
    assert_eq!(now.waiting(), 1);
    now.leave(place, &waits);
    assert_eq!(now.waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn queue_memory_shrinks_after_many_locks_are_released() {
    let manager = LockManager::in_memory();
    let room = || manager.local.shards.iter().map(|shard| lock(shard).entries.capacity()).sum::<usize>();
    let mut held = Vec::new();
    for i in 0..20_000 {
        held.push(manager.acquire(format!("order:{i}")).await.unwrap());
    }
    assert!(room() >= held.len());
    held.truncate(SHARDS);
    assert!(room() <= SHARDS * 4 * LEAST_ROOM, "{}", room());
    drop(held);
    assert_eq!(room(), 0);
}

#[tokio::test(start_paused = true)]
async fn short_ttl_lock_after_a_long_ttl_holder_is_renewed_in_time() {
    let manager = LockManager::in_memory();
    let held = manager.acquire(LockRequest::new(KEY).ttl(60 * TTL).wait(Wait::Forever)).await.unwrap();
    let next = tokio::spawn({
        let manager = manager.clone();
        async move { manager.acquire(LockRequest::new(KEY).ttl(TTL / 10).wait(Wait::Forever)).await }
    });
    // The watchdog has checked, and will not check for a while.
    sleep(20 * TTL).await;
    drop(held);
    let next = next.await.unwrap().unwrap();
    sleep(TTL).await;
    assert!(next.is_held(), "{next:?}");
}

#[tokio::test(start_paused = true)]
async fn local_queue_names_a_token_until_its_releases_are_sent() {
    let (line, named) = (Arc::new(OnceLock::<Weak<LocalQueue>>::new()), Arc::new(Mutex::new(Vec::new())));
    let (looked_at, seen) = (Arc::clone(&line), Arc::clone(&named));
    let node = HookedNode::new(Clock::tokio(), move |command| {
        if matches!(command.verb, Verb::Release { .. }) {
            let present = looked_at.get().and_then(Weak::upgrade).and_then(|local| local.acquisition(KEY));
            seen.lock().unwrap().push(present.is_some_and(|present| *present.token() == command.subject.token));
        }
        Fate::Answered
    });
    let local = Arc::new(LocalQueue::new(Arc::new(node.shared()), None));
    line.set(Arc::downgrade(&local)).unwrap();
    let manager = LockManager::new(local);
    let held = manager.acquire(request()).await.unwrap();
    // A lock with another ttl is never passed on: the next call has a new token.
    let next = waiting(&manager, request().ttl(TTL / 2)).await;
    drop(held);
    next.await.unwrap().unwrap();
    assert_eq!(*named.lock().unwrap(), [true, true], "{node:?}");
    assert!(node.is_empty());
}

#[tokio::test(start_paused = true)]
async fn process_pauses_before_it_reacquires_a_key_with_many_waiters() {
    let clock = Clock::tokio();
    // Number of other waiters, and milliseconds between the release and the next request for the lock.
    for (crowd, rest) in [(15, 0), (16, 1)] {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        let node = HookedNode::new(clock, move |command| {
            if matches!(command.verb, Verb::Acquire { .. }) {
                seen.lock().unwrap().push(clock.now());
            }
            Fate::Answered
        });
        let manager = LockManager::new(Arc::new(LocalQueue::new(Arc::new(node.shared()), None)));
        let held = manager.acquire(request()).await.unwrap();
        for _ in 0..crowd {
            let subject = Arc::new(Subject::new(KEY.into(), manager.shared().new_token()));
            let verb = Verb::Acquire { ttl: TTL, claim: TTL, holds: false };
            node.send(Command { verb, fence: None, subject }).await.unwrap();
        }
        held.extend().await.unwrap();
        manager.shared().hot_keys.heat(held.key(), clock.now());
        drop(held);
        let released = clock.now();
        let again = waiting(&manager, request()).await;
        tokio::time::sleep(TTL / 100).await;
        let asked = asked.lock().unwrap()[crowd].since(released);
        assert_eq!(asked, Duration::from_millis(rest), "{crowd} wait");
        again.abort();
    }
}
