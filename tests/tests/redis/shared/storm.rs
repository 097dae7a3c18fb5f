//! Readers and writers that arrive, give up and are dropped, over connections that break. A writer is always alone.
//! Every patient call gets the lock, and all nodes are empty at the end.

use super::{KEY, reader, writer};
use crate::support::{assert_nothing_left, cut_connections, manager};
use crate::waiters::managers;
use redlock_runtime::{LockError, LockGuard, LockManager, LockRequest, Mode};
use redlock_tests::{Nodes, PATIENCE};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

const MANAGERS: usize = 3;
const TASKS: usize = 4 * MANAGERS;
const ROUNDS: usize = 12;
/// Weight of a writer: larger than the number of readers.
const WRITER: usize = 1000;

#[derive(Default)]
struct Witness {
    inside: AtomicUsize,
    overlaps: AtomicUsize,
    together: AtomicUsize,
    entered: [AtomicUsize; 2],
}

/// Weight of a running body: one for a reader, more for a writer. The drop subtracts it.
struct Inside<'w>(&'w Witness, usize);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(self.1, Ordering::SeqCst);
    }
}

impl Witness {
    fn enter(&self, mode: Mode) -> Inside<'_> {
        let weight = if mode == Mode::Shared { 1 } else { WRITER };
        let before = self.inside.fetch_add(weight, Ordering::SeqCst);
        let is_alone = if mode == Mode::Shared { before < WRITER } else { before == 0 };
        self.overlaps.fetch_add(usize::from(!is_alone), Ordering::SeqCst);
        if mode == Mode::Shared {
            self.together.fetch_max(before + 1, Ordering::SeqCst);
        }
        self.entered[usize::from(mode == Mode::Shared)].fetch_add(1, Ordering::SeqCst);
        Inside(self, weight)
    }
}

async fn work(guard: LockGuard, witness: &Witness, downgrades: bool) {
    let inside = witness.enter(guard.mode());
    sleep(Duration::from_millis(1)).await;
    // Leaves the count before it releases the lock: the other order would count an overlap that is none.
    drop(inside);
    if downgrades {
        guard.downgrade();
        let _reading = witness.enter(guard.mode());
        sleep(Duration::from_millis(1)).await;
    }
}

async fn enter(manager: &LockManager, request: LockRequest, witness: &Witness, downgrades: bool) {
    match manager.acquire(request).await {
        Ok(guard) => work(guard, witness, downgrades).await,
        Err(LockError::Contended { .. } | LockError::TimedOut { .. } | LockError::NoQuorum { .. }) => {}
        Err(other) => panic!("{other:?}"),
    }
}

async fn one_of_many(manager: LockManager, number: usize, witness: Arc<Witness>) {
    for round in 0..ROUNDS {
        let request = if (number + round).is_multiple_of(3) { writer() } else { reader() };
        let brief = Duration::from_millis(3);
        match (number * 7 + round * 3) % 5 {
            0 => enter(&manager, request, &witness, true).await,
            1 => enter(&manager, request.wait(brief), &witness, false).await,
            // Dropped while it waits, or when it has just acquired the lock. A drop inside the body would count as an overlap that is
            // none.
            2 => drop(timeout(brief, manager.acquire(request)).await),
            3 => enter(&manager, request.ttl(Duration::from_secs(25)), &witness, false).await,
            _ => enter(&manager, request.wait(Duration::ZERO), &witness, false).await,
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
        () = cut_connections(&nodes, || witness.entered.iter().map(|entered| entered.load(Ordering::SeqCst)).sum()) => {}
    }
    assert_eq!(witness.overlaps.load(Ordering::SeqCst), 0);
    assert!(witness.together.load(Ordering::SeqCst) > 1, "readers share the lock");
    for entered in &witness.entered {
        assert!(entered.load(Ordering::SeqCst) >= TASKS / 2, "most of those with patience had the lock: {entered:?}");
    }
    last.acquire(writer()).await.unwrap().release().await.unwrap();
    for manager in &managers {
        assert!(manager.shutdown().await, "{:?}", manager.stats().releases);
    }
    assert_nothing_left(&last, &nodes).await;
    assert_eq!(nodes[0].inspect().keys().await, [""; 0], "nor for {KEY:?}");
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
