//! Two bodies with the same key never run at the same time.

use crate::support::{SIZES, assert_nothing_left, builder, majority, manager};
use redlock_runtime::{LockError, LockGuard, LockManager, LockRequest};
use redlock_tests::{Nodes, PATIENCE, RedisServer};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::task::JoinSet;

const KEY: &str = "order:7";
const MANAGERS: usize = 3;
const TASKS: usize = 9;
const ROUNDS: usize = 3;

/// Detects two simultaneous bodies, and counts without atomicity in Redis, as a user's program would.
struct Witness {
    is_inside: AtomicBool,
    overlaps: AtomicUsize,
    counter: RedisServer,
}

impl Witness {
    async fn start() -> Arc<Self> {
        let counter = RedisServer::start().await;
        Arc::new(Self { is_inside: AtomicBool::new(false), overlaps: AtomicUsize::new(0), counter })
    }

    async fn enter(&self) {
        if self.is_inside.swap(true, Ordering::SeqCst) {
            self.overlaps.fetch_add(1, Ordering::SeqCst);
        }
        let count: Option<usize> = self.counter.inspect().command(&["GET", "count"]).await;
        let next = (count.unwrap_or(0) + 1).to_string();
        tokio::task::yield_now().await;
        self.counter.inspect().command::<()>(&["SET", "count", &next]).await;
        self.is_inside.store(false, Ordering::SeqCst);
    }
}

/// Closes all of `managers` first, because dropped guards are released in the background.
async fn assert_nothing_of_any_left(managers: &[LockManager], nodes: &Nodes) {
    for manager in managers {
        assert!(manager.shutdown().await);
    }
    for manager in managers {
        assert_nothing_left(manager, nodes).await;
    }
}

async fn compete(manager: LockManager, witness: Arc<Witness>) {
    for _ in 0..ROUNDS {
        let request = LockRequest::new(KEY).wait(2 * PATIENCE);
        let body = async |_: &LockGuard| {
            witness.enter().await;
            Ok::<_, LockError>(())
        };
        manager.with_lock(request, body).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_never_overlap_on_1_3_and_5_nodes() {
    for size in SIZES {
        let (nodes, witness) = (Nodes::start(size).await, Witness::start().await);
        let mut tasks = JoinSet::new();
        let mut managers = Vec::new();
        for _ in 0..MANAGERS {
            let manager = manager(&nodes).await;
            for _ in 0..TASKS / MANAGERS {
                tasks.spawn(compete(manager.clone(), Arc::clone(&witness)));
            }
            managers.push(manager);
        }
        tasks.join_all().await;
        assert_eq!(witness.overlaps.load(Ordering::SeqCst), 0, "{size} nodes");
        let count = witness.counter.inspect().get("count").await;
        assert_eq!(count, Some((TASKS * ROUNDS).to_string()), "{size} nodes");
        assert_nothing_of_any_left(&managers, &nodes).await;
    }
}

#[tokio::test]
async fn concurrent_tries_yield_at_most_one_holder() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let managers = [manager(&nodes).await, manager(&nodes).await, manager(&nodes).await];
        for round in 0..20 {
            let mut tries = JoinSet::new();
            for manager in &managers {
                let manager = manager.clone();
                tries.spawn(async move { manager.try_acquire(format!("order:{round}")).await });
            }
            let guards: Vec<_> = tries.join_all().await.into_iter().filter_map(Result::ok).collect();
            assert!(guards.len() <= 1, "{guards:?}");
        }
        assert_nothing_of_any_left(&managers, &nodes).await;
    }
}

#[tokio::test]
async fn acquire_fails_without_a_majority_of_free_nodes() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let manager = manager(&nodes).await;
        let taken = size - majority(size) + 1;
        for node in &nodes[..taken] {
            node.inspect().command::<()>(&["SET", KEY, "another", "PX", "60000"]).await;
        }
        let error = manager.try_acquire(KEY).await.unwrap_err();
        assert!(matches!(error, LockError::Contended { .. }), "{error:?}");
        // The votes of the minority are released at once. The keys of the other manager stay.
        assert!(manager.shutdown().await);
        crate::support::barrier(&nodes).await;
        let left = nodes.contents().await;
        assert_eq!(left.keys().copied().collect::<Vec<_>>(), (0..taken).collect::<Vec<_>>(), "{left:?}");
        assert!(left.values().all(|keys| keys[KEY] == "another"), "{left:?}");
    }
}

#[tokio::test]
async fn different_keys_databases_and_namespaces_do_not_exclude_each_other() {
    let nodes = Nodes::start(1).await;
    let plain = manager(&nodes).await;
    let shop = builder(nodes.urls()).namespace("shop").build().unwrap();
    let second = builder([format!("{}2", nodes[0].url())]).build().unwrap();
    let guards = [
        plain.try_acquire(KEY).await.unwrap(),
        plain.try_acquire("order:70").await.unwrap(),
        shop.try_acquire(KEY).await.unwrap(),
        second.try_acquire(KEY).await.unwrap(),
    ];
    assert!(guards.iter().all(LockGuard::is_held));
    assert!(shop.try_acquire(KEY).await.unwrap_err().is_contended());
}

#[tokio::test]
async fn key_from_another_namespace_names_the_lock_in_the_own_namespace() {
    let nodes = Nodes::start(1).await;
    let plain = manager(&nodes).await;
    let shop = builder(nodes.urls()).namespace("shop").build().unwrap();
    let key = shop.acquire(KEY).await.unwrap().key().clone();
    let guard = plain.acquire(KEY).await.unwrap();
    assert_eq!(guard.key(), &key);
    let error = plain.try_acquire(key.clone()).await.unwrap_err();
    assert!(error.is_contended(), "{error:?}");
    let theirs = shop.try_acquire(guard.key().clone()).await.unwrap();
    assert_eq!(nodes[0].inspect().keys().await, ["order:7", "shop:order:7"]);
    drop((guard, theirs));
    assert!(shop.shutdown().await);
    assert_nothing_left(&plain, &nodes).await;
}
