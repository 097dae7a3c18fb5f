//! Tests of idle locks, at a node that records every command.

use super::super::{LocalQueue, lock};
use crate::admin::LingerStats;
use crate::client::acquisition::Acquisition;
use crate::client::hooked_node::{Fate, HookedNode};
use crate::lock::OwnerToken;
use crate::lock::owner_token::ManagerId;
use crate::protocol::candidate::Wanted;
use crate::protocol::command::{Notice, Verb};
use crate::protocol::hold_options::HoldOptions;
use crate::protocol::quorum::Verdict;
use crate::request::Place;
use crate::time::clock::Clock;
use crate::time::token_clock::TokenTime;
use crate::{LockGuard, LockManager, LockRequest};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;

const KEY: &str = "order:7";
const TTL: Duration = Duration::from_secs(30);
const LINGER: Duration = Duration::from_secs(2);

/// Manager, and the commands that its node has seen.
struct Scene {
    manager: LockManager,
    node: Arc<HookedNode>,
    commands: Arc<Mutex<String>>,
}

impl Scene {
    fn new() -> Self {
        let commands = Arc::new(Mutex::new(String::new()));
        let seen = Arc::clone(&commands);
        let node = HookedNode::new(Clock::tokio(), move |command| {
            let letter = match command.verb {
                Verb::SetNx { .. } => 'S',
                Verb::Release { .. } => 'R',
                _ => '?',
            };
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(letter);
            Fate::Answered
        });
        let mut shared = node.shared();
        shared.policy.max_idle = 4;
        let manager = LockManager::new(Arc::new(LocalQueue::new(Arc::new(shared), None)));
        Self { manager, node, commands }
    }

    /// Creates a manager with one idle lock.
    async fn idle() -> Self {
        let scene = Self::new();
        scene.use_twice(KEY).await;
        assert_eq!((scene.commands().as_str(), scene.idle_locks()), ("SRS", 1));
        scene
    }

    async fn take(&self, key: &str) -> LockGuard {
        self.manager.try_acquire(request(key)).await.unwrap()
    }

    async fn use_twice(&self, key: &str) {
        for _ in 0..2 {
            drop(self.take(key).await);
        }
    }

    fn commands(&self) -> String {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn idle_locks(&self) -> u64 {
        let LingerStats { started, reused, reclaimed, expired } = self.manager.stats().linger;
        started - reused - reclaimed - expired
    }

    /// Lets another token wait for the lock.
    fn is_recalled(&self) -> bool {
        let ours = self.manager.local.acquisition(KEY).unwrap();
        let by = OwnerToken::new(ManagerId::random(), TokenTime::new(1, 0));
        ours.notice(0, Notice::Contended { by }) && self.manager.local.recall(&ours, by)
    }
}

/// Returns the token of a call of another process that does not wait.
fn asking(time: u64) -> OwnerToken {
    OwnerToken::new(ManagerId::random(), TokenTime::new(time, 0)).asking()
}

fn request(key: &str) -> LockRequest {
    LockRequest::new(key).ttl(TTL).linger(LINGER)
}

#[tokio::test(start_paused = true)]
async fn call_within_the_linger_time_reuses_the_lock_without_a_command() {
    let scene = Scene::idle().await;
    for _ in 0..8 {
        sleep(LINGER / 2).await;
        drop(scene.take(KEY).await);
    }
    assert_eq!(scene.commands(), "SRS");
    sleep(LINGER * 2).await;
    assert_eq!(scene.commands(), "SRSR");
    assert!(scene.node.is_empty());
    let stats = LingerStats { started: 9, reused: 8, reclaimed: 0, expired: 1 };
    assert_eq!(scene.manager.stats().linger, stats);
}

#[tokio::test(start_paused = true)]
async fn lock_lingers_neither_by_default_nor_after_an_explicit_release() {
    let scene = Scene::new();
    for _ in 0..3 {
        drop(scene.manager.try_acquire(KEY).await.unwrap());
    }
    for _ in 0..3 {
        scene.take(KEY).await.release().await.unwrap();
    }
    for _ in 0..3 {
        drop(scene.manager.try_acquire(request(KEY).linger(Duration::ZERO)).await.unwrap());
    }
    assert_eq!(scene.manager.stats().linger, LingerStats::default());
    assert!(scene.node.is_empty());
}

#[tokio::test(start_paused = true)]
async fn different_ttl_release_or_detach_ends_the_idle_lock() {
    let scene = Scene::idle().await;
    drop(scene.manager.try_acquire(request(KEY).ttl(TTL / 2).linger(Duration::ZERO)).await.unwrap());
    assert_eq!(scene.commands(), "SRSRSR");
    let scene = Scene::idle().await;
    scene.take(KEY).await.release().await.unwrap();
    assert_eq!((scene.commands().as_str(), scene.idle_locks()), ("SRSR", 0));
    let scene = Scene::idle().await;
    drop(scene.take(KEY).await.detach());
    assert_eq!((scene.commands().as_str(), scene.idle_locks()), ("SRS", 0));
}

#[tokio::test(start_paused = true)]
async fn try_acquire_succeeds_while_another_thread_releases_the_idle_lock() {
    let scene = Scene::idle().await;
    // Another thread has begun to release it, and has sent nothing yet.
    let ended: Vec<_> = scene.manager.local.shards.iter().filter_map(|shard| lock(shard).end_oldest()).collect();
    let guard = scene.take(KEY).await;
    assert_eq!(scene.commands(), "SRSRS");
    scene.manager.local.give_back(&ended);
    assert!(guard.is_held());
    drop(guard);
    assert_eq!((scene.commands().as_str(), scene.idle_locks()), ("SRSRS", 1));
}

#[tokio::test(start_paused = true)]
async fn shutdown_completes_an_idle_release_begun_by_another_thread() {
    let scene = Scene::idle().await;
    let ended: Vec<_> = scene.manager.local.shards.iter().filter_map(|shard| lock(shard).end_oldest()).collect();
    assert!(scene.manager.shutdown().await);
    assert_eq!(scene.commands(), "SRSR");
    scene.manager.local.give_back(&ended);
    assert_eq!((scene.commands().as_str(), scene.idle_locks()), ("SRSR", 0));
}

#[tokio::test(start_paused = true)]
async fn asking_token_is_notified_once_when_the_body_begins() {
    let (node, by) = (HookedNode::new(Clock::tokio(), |_| Fate::Answered), [asking(1), asking(2)]);
    let shared = Arc::new(node.shared());
    let ours = Acquisition::of_key(&shared, &KEY.into(), TTL, shared.clock.now());
    assert_eq!(ours.try_at_once(shared.clock.now(), TTL).await, Verdict::Reached);
    ours.resume(Wanted { ttl: TTL, is_fenced: false, is_kept: false, linger: LINGER });
    let asks = |by| assert!(ours.notice(0, Notice::Contended { by }));
    asks(by[0]);
    assert_eq!(node.told(), []);
    let site = shared.sites.at(Place::unknown(), None).id;
    ours.begin(HoldOptions::default(), site, None, shared.clock.now());
    assert_eq!(node.told(), by[..1]);
    asks(by[0]);
    asks(by[1]);
    assert_eq!(node.told(), by);
}

#[tokio::test(start_paused = true)]
async fn calls_behind_an_asking_call_keep_waiting_after_its_busy_reply() {
    let scene = Scene::new();
    let holder = LockManager::new(Arc::new(LocalQueue::new(Arc::new(scene.node.shared()), None)));
    let held = holder.try_acquire(KEY).await.unwrap();
    let asks = tokio::spawn({
        let manager = scene.manager.clone();
        async move { manager.try_acquire(request(KEY)).await }
    });
    let ours = async || {
        for _ in 0..100 {
            tokio::task::yield_now().await;
            if let Some(ours) = scene.manager.local.acquisition(KEY).filter(|ours| ours.is_waiting()) {
                return ours;
            }
        }
        panic!("nobody here stands in the queue")
    };
    let asking = ours().await;
    assert!(asking.token().asks());
    let waits = tokio::spawn({
        let manager = scene.manager.clone();
        async move { manager.acquire(request(KEY).wait(TTL)).await }
    });
    tokio::task::yield_now().await;
    assert!(asking.notice(0, Notice::Busy));
    assert!(asks.await.unwrap().unwrap_err().is_contended());
    let waiting = ours().await;
    assert!(!waiting.token().asks());
    // Any user with the permission to publish can send this.
    assert!(waiting.notice(0, Notice::Busy));
    sleep(LINGER).await;
    drop(held);
    assert!(waits.await.unwrap().unwrap().is_held());
}

#[tokio::test(start_paused = true)]
async fn contended_lock_is_released_at_once_if_idle() {
    let scene = Scene::idle().await;
    let guard = scene.take(KEY).await;
    assert!(!scene.is_recalled(), "a call has it");
    drop(guard);
    assert_eq!((scene.commands().as_str(), scene.idle_locks()), ("SRSR", 0), "wanted, so that it is not kept");
    let scene = Scene::idle().await;
    let token = *scene.manager.local.acquisition(KEY).unwrap().token();
    assert!(scene.is_recalled());
    assert!(scene.node.is_empty());
    let shared = scene.manager.shared();
    assert!(shared.kept_tokens.is_kept(&token, shared.clock.now()), "what other nodes say of it is no news");
    scene.use_twice(KEY).await;
    assert_eq!(scene.commands(), "SRSRSRSR", "the key is not kept for a while");
    let stats = LingerStats { started: 1, reused: 0, reclaimed: 1, expired: 0 };
    assert_eq!(scene.manager.stats().linger, stats);
}

#[tokio::test(start_paused = true)]
async fn shutdown_releases_idle_locks_and_prevents_new_ones() {
    let scene = Scene::idle().await;
    scene.use_twice("order:8").await;
    let guard = scene.take(KEY).await;
    assert!(scene.manager.shutdown().await);
    assert_eq!(scene.commands(), "SRSSRSR");
    drop(guard);
    assert!(scene.node.is_empty());
}

#[tokio::test(start_paused = true)]
async fn last_manager_handle_releases_idle_locks_despite_live_guards() {
    let Scene { manager, node, commands } = Scene::idle().await;
    let (held, other) = (manager.try_acquire(request("order:8")).await.unwrap(), manager.clone());
    drop(manager);
    assert_eq!(*commands.lock().unwrap(), "SRSS");
    drop(other);
    assert_eq!(*commands.lock().unwrap(), "SRSSR");
    drop(held);
    assert!(node.is_empty());
}

#[tokio::test(start_paused = true)]
async fn number_of_idle_locks_is_limited() {
    let scene = Scene::new();
    for key in 0..20 {
        scene.use_twice(&format!("order:{key}")).await;
        assert!(scene.idle_locks() <= 4, "{:?}", scene.manager.stats().linger);
    }
    assert_eq!(scene.idle_locks(), 4);
    drop(scene.manager);
    assert!(scene.node.is_empty());
}

/// Two calls at once for each of several keys, while other threads release idle locks, and other processes ask for
/// them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lock_stays_exclusive_while_other_threads_end_idle_locks() {
    const KEYS: usize = 64;
    const CALLS: usize = 4000;
    let node = HookedNode::new(Clock::Boot, |_| Fate::Answered);
    let manager = LockManager::new(Arc::new(LocalQueue::new(Arc::new(node.shared()), None)));
    let in_use: Arc<[AtomicBool; KEYS]> = Arc::new([const { AtomicBool::new(false) }; KEYS]);
    let mut callers = JoinSet::new();
    for _ in 0..4 {
        let (manager, in_use) = (manager.clone(), Arc::clone(&in_use));
        callers.spawn(async move {
            // Continues until every kind of event has happened.
            let has_seen_all = |LingerStats { reused, reclaimed, expired, .. }| reused.min(reclaimed).min(expired) > 0;
            for call in (0..100 * CALLS).take_while(|call| *call < CALLS || !has_seen_all(manager.stats().linger)) {
                // All calls want the first key, and the others in runs.
                let key = if call % 7 == 0 { 0 } else { (call / 50) % KEYS };
                let guard = manager.acquire(request(&format!("order:{key}"))).await.unwrap();
                assert!(!in_use[key].swap(true, Ordering::SeqCst), "two calls have {guard:?}");
                tokio::task::yield_now().await;
                assert!(guard.is_held() && in_use[key].swap(false, Ordering::SeqCst));
            }
        });
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let disturber = thread::spawn({
        let (local, is_over) = (Arc::clone(&manager.local), Arc::clone(&is_over));
        move || {
            // An asking token is not contention, and a waiting one is.
            let by = [asking(1), OwnerToken::new(ManagerId::random(), TokenTime::new(1, 0))];
            for round in 0.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                // Some idle locks are left for the asking tokens.
                for shard in local.shards.iter().skip(round % 4).step_by(4) {
                    let ended: Vec<_> = lock(shard).end_oldest().into_iter().collect();
                    local.give_back(&ended);
                }
                if let Some(ours) = local.acquisition(&format!("order:{}", round % KEYS)) {
                    let by = by[usize::from(round % 16 == 0)];
                    ours.notice(0, Notice::Contended { by });
                    local.recall(&ours, by);
                }
                thread::yield_now();
            }
        }
    });
    callers.join_all().await;
    is_over.store(true, Ordering::Relaxed);
    disturber.join().unwrap();
    assert!(manager.shutdown().await);
    let stats = manager.stats().linger;
    let LingerStats { started, reused, reclaimed, expired } = stats;
    assert!(reused > 0 && expired > 0 && reclaimed > 0, "{stats:?}");
    assert_eq!(
        (started, manager.local.idling.count.load(Ordering::Relaxed)),
        (reused + reclaimed + expired, 0),
        "{stats:?}"
    );
    assert!(node.is_empty());
}
