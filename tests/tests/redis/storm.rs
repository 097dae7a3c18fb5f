//! Everything at once: calls that arrive, give up and are dropped, over connections that break. Two calls never
//! hold the lock at once, every patient call gets it, and all nodes are empty at the end.

use crate::support::{assert_nothing_left, cut_connections, manager};
use crate::waiters::{managers, patient};
use redlock_runtime::{LockError, LockManager, LockRequest};
use redlock_tests::{Nodes, PATIENCE};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

const KEY: &str = "order:7";
const MANAGERS: usize = 3;
const TASKS: usize = 4 * MANAGERS;
const ROUNDS: usize = 12;

#[derive(Default)]
struct Witness {
    is_inside: AtomicBool,
    overlaps: AtomicUsize,
    entered: AtomicUsize,
}

impl Witness {
    async fn enter(&self) {
        let was_inside = self.is_inside.swap(true, Ordering::SeqCst);
        self.overlaps.fetch_add(usize::from(was_inside), Ordering::SeqCst);
        self.entered.fetch_add(1, Ordering::SeqCst);
        sleep(Duration::from_millis(1)).await;
        self.is_inside.store(false, Ordering::SeqCst);
    }
}

async fn enter(manager: &LockManager, request: LockRequest, witness: &Witness) {
    match manager.acquire(request).await {
        Ok(guard) => {
            witness.enter().await;
            drop(guard);
        }
        Err(LockError::Contended { .. } | LockError::TimedOut { .. } | LockError::NoQuorum { .. }) => {}
        Err(other) => panic!("{other:?}"),
    }
}

async fn one_of_many(manager: LockManager, number: usize, witness: Arc<Witness>) {
    for round in 0..ROUNDS {
        let brief = Duration::from_millis(3);
        match (number * 7 + round * 3) % 5 {
            0 => enter(&manager, patient(KEY), &witness).await,
            1 => enter(&manager, LockRequest::new(KEY).wait(brief), &witness).await,
            // Dropped while it waits, or when it has just acquired the lock. A drop inside the body would count as an overlap that is
            // none.
            2 => drop(timeout(brief, manager.acquire(patient(KEY))).await),
            3 => enter(&manager, patient(KEY).ttl(Duration::from_secs(25)), &witness).await,
            _ => enter(&manager, LockRequest::new(KEY).wait(Duration::ZERO), &witness).await,
        }
    }
}

async fn storm(nodes: Nodes) {
    let (managers, last) = (managers(&nodes, MANAGERS).await, manager(&nodes).await);
    let witness = Arc::new(Witness::default());
    let mut calls = JoinSet::new();
    for number in 0..TASKS {
        calls.spawn(one_of_many(managers[number % MANAGERS].clone(), number, Arc::clone(&witness)));
    }
    tokio::select! {
        done = timeout(3 * PATIENCE, calls.join_all()) => drop(done.unwrap()),
        () = cut_connections(&nodes, || witness.entered.load(Ordering::SeqCst)) => {}
    }
    assert_eq!(witness.overlaps.load(Ordering::SeqCst), 0);
    assert!(witness.entered.load(Ordering::SeqCst) >= TASKS, "most of those with patience had the lock");
    last.acquire(patient(KEY)).await.unwrap().release().await.unwrap();
    for manager in &managers {
        assert!(manager.shutdown().await, "{:?}", manager.stats().releases);
    }
    assert_nothing_left(&last, &nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_in_a_storm() {
    for size in [1, 3] {
        storm(Nodes::start(size).await).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_in_a_storm_over_resp2() {
    storm(Nodes::start_with(3, |_, builder| builder.without_command("HELLO")).await).await;
}
