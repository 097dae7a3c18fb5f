//! Tests of long holds, with virtual time.

use crate::client::hooked_node::{Fate, HookedNode};
use crate::client::local_queue::LocalQueue;
use crate::protocol::command::Verb;
use crate::time::clock::Clock;
use crate::{LockGuard, LockManager, LockRequest};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep};

const TTL: Duration = Duration::from_secs(30);

fn request(ttl: Duration) -> LockRequest {
    LockRequest::new(format!("order:{ttl:?}")).ttl(ttl)
}

async fn hold(manager: &LockManager, ttl: Duration) -> LockGuard {
    manager.acquire(request(ttl)).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn locks_of_every_ttl_are_held_for_as_long_as_their_guards_live() {
    let manager = LockManager::in_memory();
    let mut guards = Vec::new();
    for millis in [50, 200, 1000, 30_000, 3_600_000] {
        guards.push(hold(&manager, Duration::from_millis(millis)).await);
        // A short lease begins after the watchdog has planned a long sleep.
        sleep(TTL).await;
    }
    sleep(10 * TTL).await;
    for guard in guards {
        assert!(guard.remaining() > guard.ttl() / 3, "{guard:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn many_locks_are_held_for_many_ttls() {
    let manager = LockManager::in_memory();
    let mut guards = Vec::new();
    for lock in 0..1000 {
        guards.push(manager.acquire(LockRequest::new(format!("order:{lock}")).ttl(TTL)).await.unwrap());
        sleep(Duration::from_millis(1)).await;
    }
    for _ in 0..40 {
        sleep(TTL / 4).await;
        let least = guards.iter().map(LockGuard::remaining).min().unwrap();
        assert!(least > TTL / 2, "{least:?} left");
    }
}

#[tokio::test(start_paused = true)]
async fn body_of_ten_seconds_runs_on_leases_of_200_ms() {
    let body = async |_: &LockGuard| {
        sleep(Duration::from_secs(10)).await;
        Ok::<_, crate::LockError>(())
    };
    LockManager::in_memory().with_lock(request(Duration::from_millis(200)), body).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn short_lease_after_a_long_one_is_renewed() {
    // The plan for one holder must not apply to the next.
    let manager = LockManager::in_memory();
    for (first, second) in [(TTL, TTL / 15), (TTL, TTL)] {
        let key = format!("order:{second:?}");
        let request = LockRequest::new(&*key).ttl(first);
        let request = if first == second { request.without_renewal() } else { request };
        let held = manager.acquire(request).await.unwrap();
        let waiting = tokio::spawn({
            let (manager, request) = (manager.clone(), LockRequest::new(&*key).ttl(second));
            async move { manager.acquire(request).await }
        });
        sleep(TTL / 4).await;
        drop(held);
        let guard = waiting.await.unwrap().unwrap();
        sleep(5 * TTL).await;
        guard.ensure_held().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn watchdog_wakes_up_after_an_idle_period() {
    let manager = LockManager::in_memory();
    for _ in 0..3 {
        drop(hold(&manager, TTL).await);
        sleep(10 * TTL).await;
        let guard = hold(&manager, TTL).await;
        sleep(10 * TTL).await;
        assert!(guard.is_held());
    }
}

/// Creates a manager whose only node records the requests for new leases, and answers only if `answers` returns `true`.
fn noting(answers: impl Fn(usize) -> bool + Send + Sync + 'static) -> (LockManager, Arc<Mutex<Vec<Duration>>>) {
    let (renewed, clock) = (Arc::new(Mutex::new(Vec::new())), Clock::tokio());
    let (noted, begun) = (Arc::clone(&renewed), clock.now());
    let node = HookedNode::new(clock, move |command| {
        if !matches!(command.verb, Verb::Renew { .. }) {
            return Fate::Answered;
        }
        let mut noted = noted.lock().unwrap();
        noted.push(clock.now().since(begun));
        if answers(noted.len()) { Fate::Answered } else { Fate::CutOff }
    });
    (LockManager::new(Arc::new(LocalQueue::new(Arc::new(node.shared()), None))), renewed)
}

#[tokio::test(start_paused = true)]
async fn renewals_due_soon_are_sent_together() {
    let (manager, renewed) = noting(|_| true);
    let mut guards = Vec::new();
    for lock in 0..250 {
        guards.push(manager.acquire(LockRequest::new(format!("order:{lock}")).ttl(TTL)).await.unwrap());
        sleep(TTL / 1000).await;
    }
    sleep(10 * TTL).await;
    let mut moments = renewed.lock().unwrap().clone();
    let renewals = moments.len();
    assert!((30 * 250..40 * 250).contains(&renewals), "each after a third of its lease: {renewals}");
    moments.dedup();
    // Two renewals are at least a 64th of the ttl apart, in ten and a quarter ttls.
    assert!(moments.len() <= 658, "{} times for {renewals} renewals", moments.len());
    assert!(guards.iter().all(LockGuard::is_held));
}

#[tokio::test(start_paused = true)]
async fn failed_renewal_is_retried_after_a_third_of_the_remaining_lease() {
    // The first renewal is cut off: the next check must be earlier than after a granted one.
    let (manager, renewed) = noting(|renewal| renewal > 1);
    let guard = hold(&manager, TTL).await;
    sleep(TTL).await;
    let renewed = renewed.lock().unwrap().clone();
    let [first, second, ..] = renewed[..] else { panic!("{renewed:?}") };
    assert!(first <= TTL / 3, "{renewed:?}");
    assert!(second.saturating_sub(first) <= TTL.saturating_sub(first) / 3 + TTL / 100, "{renewed:?}");
    guard.ensure_held().unwrap();
}

#[test]
fn in_memory_manager_renews_on_every_runtime() {
    let manager = LockManager::in_memory();
    for _ in 0..2 {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let guard = hold(&manager, Duration::from_millis(600)).await;
            let begun = Instant::now();
            while begun.elapsed() < 3 * guard.ttl() {
                guard.ensure_held().unwrap();
                sleep(Duration::from_millis(5)).await;
            }
        });
    }
}

#[tokio::test(start_paused = true)]
async fn watchdog_ends_with_the_manager_and_its_last_guard() {
    let manager = LockManager::in_memory();
    let guard = hold(&manager, TTL).await;
    let local = std::sync::Arc::downgrade(&manager.local);
    drop(manager);
    sleep(3 * TTL).await;
    assert!(guard.is_held(), "the guard lives on");
    drop(guard);
    sleep(3 * TTL).await;
    assert_eq!(local.strong_count(), 0);
}
