//! Many tasks of several managers that arrive, give up and are dropped, over connections that break. The number of holders never exceeds
//! the number of permits. Every patient call is admitted, and all nodes are empty at the end.

use super::permit;
use crate::support::{BRIEF, assert_nothing_left, builder, connected, cut_connections, manager};
use crate::waiters::{assert_all_gone, managers};
use redlock_runtime::{LockError, LockManager, LockRequest, Wait};
use redlock_tests::{Nodes, PATIENCE, RedisServer};
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

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

async fn one_of_many(manager: LockManager, number: usize, rounds: usize, witness: Arc<Witness>) {
    for round in 0..rounds {
        let brief = Duration::from_millis(3);
        match (number * 7 + round * 3) % 4 {
            0 | 1 => enter(&manager, permit(PERMITS), &witness).await,
            2 => enter(&manager, permit(PERMITS).wait(brief), &witness).await,
            // Dropped while it waits, or at its admission, but never inside.
            _ => drop(timeout(brief, manager.acquire(permit(PERMITS))).await),
        }
    }
}

/// Lease of a permit without a renewal, and time for which a restarted node abstains.
const BRIEF_TTL: Duration = Duration::from_secs(5);

/// Freezes, kills and restarts one node without its data, without end.
async fn strike(node: &RedisServer) {
    let mut pause = interval(Duration::from_millis(60));
    pause.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        pause.tick().await;
        node.freeze();
        pause.tick().await;
        node.thaw();
        pause.tick().await;
        node.kill();
        pause.tick().await;
        node.restart_empty().await;
    }
}

async fn storm(nodes: &Nodes, managers: &[LockManager], rounds: usize, trouble: impl AsyncFnOnce(&Witness)) {
    let last = manager(nodes).await;
    let witness = Arc::new(Witness::default());
    let mut calls = JoinSet::new();
    for number in 0..TASKS {
        calls.spawn(one_of_many(managers[number % MANAGERS].clone(), number, rounds, Arc::clone(&witness)));
    }
    tokio::select! {
        done = timeout(3 * PATIENCE, calls.join_all()) => drop(done.unwrap()),
        () = trouble(&witness) => unreachable!("it has no end"),
    }
    for node in nodes.iter() {
        if node.is_running() { node.thaw() } else { node.restart_empty().await }
    }
    assert_eq!(witness.most.load(Ordering::SeqCst), PERMITS as usize, "never more, and no fewer");
    assert!(witness.entered.load(Ordering::SeqCst) >= TASKS * rounds / 4, "{:?}", witness.entered);
    last.acquire(permit(1)).await.unwrap().release().await.unwrap();
    for manager in managers {
        assert!(manager.shutdown().await, "{:?}", manager.stats().releases);
    }
    assert_nothing_left(&last, nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permit_limit_holds_under_load() {
    // A naive count admits three, and so do locks that each count a majority by themselves.
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        storm(&nodes, &managers(&nodes, MANAGERS).await, ROUNDS, async |_| pending().await).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permit_limit_holds_while_connections_break() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        storm(&nodes, &managers(&nodes, MANAGERS).await, ROUNDS, async |witness| {
            cut_connections(&nodes, || witness.entered.load(Ordering::SeqCst)).await;
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permit_limit_holds_while_a_node_fails_and_loses_its_data() {
    // A count that skips holders unknown to a returning node admits a third one. A release that is not repeated at a
    // silent node would occupy a permit for ever.
    let nodes = Nodes::start(5).await;
    let mut managers = Vec::new();
    for _ in 0..MANAGERS {
        let brief =
            builder(nodes.urls()).node_timeout(BRIEF).default_ttl(BRIEF_TTL).tuning(|tuning| tuning.max_ttl(BRIEF_TTL));
        managers.push(connected(brief, &nodes).await);
    }
    // Long enough that the node fails again after it has voted again.
    storm(&nodes, &managers, 20 * ROUNDS, async |_| strike(&nodes[0]).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_tasks_share_two_permits() {
    // A naive count admits a third one (redlock4j does not limit at all, kazoo #213).
    // A lost wake-up in a long queue would leave the rest of the queue outside.
    const CALLS: usize = 500;
    let nodes = Nodes::start(3).await;
    let managers = managers(&nodes, MANAGERS).await;
    let (witness, mut calls) = (Arc::new(Witness::default()), JoinSet::new());
    for manager in managers.iter().cycle().take(CALLS) {
        let (manager, witness) = (manager.clone(), Arc::clone(&witness));
        calls.spawn(async move { enter(&manager, permit(PERMITS).wait(Wait::Forever), &witness).await });
    }
    timeout(3 * PATIENCE, calls.join_all()).await.expect("all of them enter");
    let (most, entered) = (witness.most.load(Ordering::SeqCst), witness.entered.load(Ordering::SeqCst));
    assert_eq!((most, entered), (PERMITS as usize, CALLS));
    for manager in &managers {
        assert_all_gone(manager, &nodes).await;
    }
}
