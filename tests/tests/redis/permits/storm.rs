//! Many tasks of several managers that come, give up and are dropped, over connections that break. What counts is that never more
//! are inside than there are permits, that whoever has patience enters, and that nothing is left.

use super::permit;
use crate::support::{assert_nothing_left, manager};
use crate::waiters::managers;
use redlock_runtime::{LockError, LockManager, LockRequest};
use redlock_tests::{Nodes, PATIENCE};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{interval, sleep, timeout};

const MANAGERS: usize = 4;
const TASKS: usize = 6 * MANAGERS;
const ROUNDS: usize = 8;
const PERMITS: u32 = 2;

#[derive(Default)]
struct Witness {
    inside: AtomicUsize,
    most: AtomicUsize,
    entered: AtomicUsize,
}

async fn enter(manager: &LockManager, request: LockRequest, witness: &Witness) {
    match manager.acquire(request).await {
        Ok(guard) => {
            let inside = witness.inside.fetch_add(1, Ordering::SeqCst) + 1;
            witness.most.fetch_max(inside, Ordering::SeqCst);
            witness.entered.fetch_add(1, Ordering::SeqCst);
            sleep(Duration::from_millis(2)).await;
            witness.inside.fetch_sub(1, Ordering::SeqCst);
            drop(guard);
        }
        Err(LockError::Contended { .. } | LockError::TimedOut { .. } | LockError::NoQuorum { .. }) => {}
        Err(other) => panic!("{other:?}"),
    }
}

async fn one_of_many(manager: LockManager, number: usize, witness: Arc<Witness>) {
    for round in 0..ROUNDS {
        let brief = Duration::from_millis(3);
        match (number * 7 + round * 3) % 4 {
            0 | 1 => enter(&manager, permit(PERMITS), &witness).await,
            2 => enter(&manager, permit(PERMITS).wait(brief), &witness).await,
            // Dropped while it waits, or as it has just entered; never inside.
            _ => drop(timeout(brief, manager.acquire(permit(PERMITS))).await),
        }
    }
}

/// Breaks all connections to one node after the other, for ever.
async fn cut_connections(nodes: &Nodes) {
    let mut pause = interval(Duration::from_millis(60));
    for node in nodes.iter().cycle() {
        pause.tick().await;
        node.inspect().kill_clients().await;
    }
}

async fn storm(size: usize, cuts: bool) {
    let nodes = Nodes::start(size).await;
    let (managers, last) = (managers(&nodes, MANAGERS).await, manager(&nodes).await);
    let witness = Arc::new(Witness::default());
    let mut calls = JoinSet::new();
    for number in 0..TASKS {
        calls.spawn(one_of_many(managers[number % MANAGERS].clone(), number, Arc::clone(&witness)));
    }
    let cutting = async {
        if cuts {
            cut_connections(&nodes).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        done = timeout(3 * PATIENCE, calls.join_all()) => drop(done.unwrap()),
        () = cutting => {}
    }
    assert_eq!(witness.most.load(Ordering::SeqCst), PERMITS as usize, "never more, and no fewer");
    assert!(witness.entered.load(Ordering::SeqCst) >= TASKS * ROUNDS / 4, "{:?}", witness.entered);
    last.acquire(permit(1)).await.unwrap().release().await.unwrap();
    for manager in &managers {
        assert!(manager.shutdown().await, "{:?}", manager.stats().releases);
    }
    assert_nothing_left(&last, &nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn never_more_are_inside_than_there_are_permits() {
    // The naive count lets three in, and so do locks that a majority counts for itself.
    for size in [1, 3] {
        storm(size, false).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn never_more_are_inside_although_connections_break() {
    for size in [1, 3] {
        storm(size, true).await;
    }
}
