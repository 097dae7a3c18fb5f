//! Tests of calls that share a token, at a node that records every command: the calls they wait for, and the duration.

use super::super::LocalQueue;
use super::LONGEST_GATHERING;
use crate::client::hooked_node::{Fate, HookedNode};
use crate::lock::OwnerToken;
use crate::protocol::command::Verb;
use crate::time::clock::Clock;
use crate::{LockError, LockGuard, LockManager, LockRequest, Wait};
use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::sleep;

const KEY: &str = "page:7";
const TTL: Duration = Duration::from_secs(10);

/// Manager, and the records of its node.
struct Scene {
    manager: LockManager,
    node: Arc<HookedNode>,
    is_cut_off: Arc<AtomicBool>,
    /// Tokens with which readers have asked for the lock.
    asked: Arc<Mutex<HashSet<OwnerToken>>>,
}

impl Scene {
    fn new() -> Self {
        let (is_cut_off, asked) = (Arc::new(AtomicBool::new(false)), Arc::<Mutex<HashSet<_>>>::default());
        let (cut, count) = (Arc::clone(&is_cut_off), Arc::clone(&asked));
        let node = HookedNode::new(Clock::tokio(), move |command| {
            if cut.load(Ordering::Relaxed) {
                return Fate::CutOff;
            }
            if matches!(command.verb, Verb::SetNx { .. } | Verb::Acquire { .. }) && command.subject.is_shared() {
                count.lock().unwrap().insert(command.subject.token);
            }
            Fate::Answered
        });
        let manager = LockManager::new(Arc::new(LocalQueue::new(Arc::new(node.shared()), None)));
        Self { manager, node, is_cut_off, asked }
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    fn read(&self, wait: Wait) -> Pin<Box<dyn Future<Output = Result<LockGuard, LockError>> + Send>> {
        let (manager, mut request) = (self.manager.clone(), LockRequest::shared(KEY).ttl(TTL).wait(wait));
        request.inner.joins = true;
        Box::pin(async move { manager.acquire(request).await })
    }

    async fn reading(&self, wait: Wait) -> JoinHandle<Result<LockGuard, LockError>> {
        let call = tokio::spawn(self.read(wait));
        yield_now().await;
        call
    }

    async fn writer(&self) -> LockGuard {
        self.manager.acquire(LockRequest::new(KEY).ttl(TTL)).await.unwrap()
    }
}

fn is_pending<F: Future + Unpin>(call: &mut F) -> bool {
    Pin::new(call).poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

#[tokio::test(start_paused = true)]
async fn gathered_readers_survive_a_temporary_node_outage() {
    let scene = Scene::new();
    scene.is_cut_off.store(true, Ordering::Relaxed);
    let calls = [scene.reading(Wait::Forever).await, scene.reading(Wait::Forever).await];
    sleep(Duration::from_secs(5)).await;
    scene.is_cut_off.store(false, Ordering::Relaxed);
    for call in calls {
        drop(call.await.unwrap().unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn unpolled_reader_delays_only_one_gathering() {
    let scene = Scene::new();
    let writer = scene.writer().await;
    let mut unpolled = scene.read(Wait::Forever);
    assert!(is_pending(&mut unpolled));
    let calls = [scene.reading(Wait::Forever).await, scene.reading(Wait::Forever).await];
    drop(writer);
    let begun = scene.manager.shared().clock.now();
    let mut held = Vec::new();
    for call in calls {
        held.push(call.await.unwrap().unwrap());
    }
    assert_eq!(scene.manager.shared().clock.now().since(begun), LONGEST_GATHERING);
    // Other calls join these at once, or wait for no call that is not polled.
    let asked = scene.asked();
    for _ in 0..3 {
        held.push(scene.read(Wait::Forever).await.unwrap());
    }
    assert_eq!(scene.manager.shared().clock.now().since(begun), LONGEST_GATHERING);
    assert_eq!(scene.asked(), asked);
    // The call that was left behind does not affect them.
    drop(unpolled.await.unwrap());
    held.push(scene.read(Wait::Forever).await.unwrap());
    assert_eq!(scene.asked(), asked);
    drop(held);
    assert!(scene.node.is_empty());
}

#[tokio::test(start_paused = true)]
async fn gathering_uses_at_most_half_of_the_wait_of_a_call() {
    let scene = Scene::new();
    let writer = scene.writer().await;
    let mut unpolled = scene.read(Wait::Forever);
    assert!(is_pending(&mut unpolled));
    let impatient = scene.reading(Wait::For(LONGEST_GATHERING)).await;
    let patient = scene.reading(Wait::Forever).await;
    drop(writer);
    let begun = scene.manager.shared().clock.now();
    let impatient = impatient.await.unwrap().unwrap();
    assert_eq!(scene.manager.shared().clock.now().since(begun), LONGEST_GATHERING / 2);
    assert!(!patient.is_finished(), "it was not too long yet for others");
    drop((impatient, patient.await.unwrap().unwrap(), unpolled));
    assert!(scene.node.is_empty());
}

#[tokio::test(start_paused = true)]
async fn reader_does_not_join_if_writers_cannot_notify_it() {
    let scene = Scene::new();
    let first = scene.read(Wait::Forever).await.unwrap();
    assert!(scene.manager.shared().is_listening(), "the next one may come at once");
    let second = scene.read(Wait::Forever).await.unwrap();
    assert_eq!(scene.asked(), 1);
    scene.node.deafen();
    let third = scene.read(Wait::Forever).await.unwrap();
    assert_eq!(scene.asked(), 2);
    drop((first, second, third));
    assert!(scene.node.is_empty());
}

#[tokio::test(start_paused = true)]
async fn expired_reader_share_is_acquired_again() {
    let scene = Scene::new();
    let writer = scene.writer().await;
    let first = scene.reading(Wait::Forever).await;
    let mut late = scene.read(Wait::Forever);
    assert!(is_pending(&mut late));
    drop(writer);
    drop(first.await.unwrap().unwrap());
    assert!(!scene.node.is_empty(), "it is kept for the other one");
    sleep(2 * TTL).await;
    let late = late.await.unwrap();
    assert!(late.is_held(), "{late:?}");
    drop(late);
    assert!(scene.node.is_empty());
}

#[tokio::test(start_paused = true)]
async fn downgraded_writer_does_not_prevent_readers_from_joining() {
    let scene = Scene::new();
    let lowered = scene.writer().await;
    lowered.downgrade();
    let first = scene.reading(Wait::Forever).await.await.unwrap().unwrap();
    let asked = scene.asked();
    let second = scene.reading(Wait::Forever).await.await.unwrap().unwrap();
    assert_eq!(scene.asked(), asked);
    let writer = tokio::spawn({
        let manager = scene.manager.clone();
        async move { manager.acquire(LockRequest::new(KEY).ttl(TTL).wait(Wait::Forever)).await.map(drop) }
    });
    yield_now().await;
    let third = scene.reading(Wait::Forever).await.await.unwrap().unwrap();
    assert_eq!(scene.asked(), asked + 1, "nobody joins when a call of the process wants to be a writer");
    drop((lowered, first, second, third));
    writer.await.unwrap().unwrap();
    assert!(scene.node.is_empty());
}
