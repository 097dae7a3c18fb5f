//! Transfers between accounts in any order, by calls that arrive, give up and are dropped. Two bodies never use the same account at once.
//! Every patient call gets both accounts, and all nodes are empty at the end (defect 24 of peers; Redisson's `MultiLock`, #467, #1160 and
//! #4050).

use super::all;
use crate::support::{BRIEF, SIZES, assert_nothing_left, builder, connected};
use crate::waiters::{assert_all_gone, managers, patient};
use redlock_runtime::{LockError, LockManager, LockRequest};
use redlock_tests::{Nodes, PATIENCE, RedisServer};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

const ACCOUNTS: [&str; 4] = ["account:0", "account:1", "account:2", "account:3"];
const MANAGERS: usize = 3;
const TASKS: usize = 4 * MANAGERS;
const ROUNDS: usize = 10;

#[derive(Default)]
struct Bank {
    busy: [AtomicUsize; ACCOUNTS.len()],
    overlaps: AtomicUsize,
    transfers: AtomicUsize,
}

impl Bank {
    async fn work(&self, accounts: &[usize]) {
        for account in accounts {
            self.overlaps.fetch_add(self.busy[*account].fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
        }
        sleep(Duration::from_millis(1)).await;
        for account in accounts {
            self.busy[*account].fetch_sub(1, Ordering::SeqCst);
        }
        self.transfers.fetch_add(1, Ordering::SeqCst);
    }
}

fn request(accounts: &[usize]) -> LockRequest {
    match accounts {
        [one] => patient(ACCOUNTS[*one]),
        several => all(several.iter().map(|account| ACCOUNTS[*account])),
    }
}

async fn transfers(manager: LockManager, bank: Arc<Bank>, task: usize, cancels: bool) -> usize {
    let mut own = 0;
    for round in 0..ROUNDS {
        let from = (task + round) % ACCOUNTS.len();
        let to = (from + 1 + (task * 7 + round * 3) % (ACCOUNTS.len() - 1)) % ACCOUNTS.len();
        let accounts = if round % 5 == 4 { vec![from] } else { vec![from, to] };
        let call = manager.acquire(request(&accounts));
        let guard = if cancels && (task + round).is_multiple_of(3) {
            match timeout(Duration::from_millis((task + round) as u64 % 5), call).await {
                Err(_) => continue,
                Ok(guard) => guard,
            }
        } else {
            call.await
        };
        let guard = guard.unwrap_or_else(|error: LockError| panic!("{task} {round}: {error}"));
        bank.work(&accounts).await;
        drop(guard);
        own += 1;
    }
    own
}

async fn storm(size: usize, cancels: bool) {
    let nodes = Nodes::start(size).await;
    let managers = managers(&nodes, MANAGERS).await;
    let bank = Arc::new(Bank::default());
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let manager = managers[task % MANAGERS].clone();
        tasks.spawn(transfers(manager, Arc::clone(&bank), task, cancels));
    }
    let own = timeout(2 * PATIENCE, tasks.join_all()).await.expect("nobody waits for ever");
    assert_eq!(bank.overlaps.load(Ordering::SeqCst), 0);
    assert_eq!(bank.transfers.load(Ordering::SeqCst), own.iter().sum::<usize>());
    assert!(cancels || own.iter().all(|own| *own == ROUNDS), "{own:?}");
    nodes.assert_empty(PATIENCE).await;
    for manager in &managers {
        assert_nothing_left(manager, &nodes).await;
    }
}

#[tokio::test]
async fn transfers_in_opposite_orders_do_not_deadlock() {
    for size in SIZES {
        storm(size, false).await;
    }
}

#[tokio::test]
async fn dropped_transfers_leave_no_keys() {
    for size in SIZES {
        storm(size, true).await;
    }
}

#[tokio::test]
async fn transfers_continue_with_a_frozen_node() {
    let nodes = Nodes::start(3).await;
    let managers = [super::brief(&nodes).await, super::brief(&nodes).await];
    nodes[0].freeze();
    let bank = Arc::new(Bank::default());
    let mut tasks = JoinSet::new();
    for task in 0..4 {
        tasks.spawn(transfers(managers[task % 2].clone(), Arc::clone(&bank), task, false));
    }
    let own = timeout(2 * PATIENCE, tasks.join_all()).await.expect("nobody waits for ever");
    assert_eq!((bank.overlaps.load(Ordering::SeqCst), own), (0, vec![ROUNDS; 4]));
    nodes[0].thaw();
    nodes.assert_empty(PATIENCE).await;
    for manager in &managers {
        assert_nothing_left(manager, &nodes).await;
    }
}

/// Number of rivals for the same two accounts. Each half of them uses one order of the keys.
const RIVALS: usize = 8;
/// Average number of bodies of each rival.
const TURNS: usize = 120;

/// Returns the number of turns that this rival had until all rivals together reached their total.
async fn turns(manager: LockManager, bank: Arc<Bank>, accounts: [usize; 2]) -> usize {
    let mut own = 0;
    while bank.transfers.load(Ordering::SeqCst) < RIVALS * TURNS {
        let guard = manager.acquire(request(&accounts)).await.unwrap();
        bank.work(&accounts).await;
        drop(guard);
        own += 1;
    }
    own
}

#[tokio::test]
async fn rivals_in_opposite_orders_get_fair_turns_with_a_frozen_node() {
    // Rivals that take their keys one after the other would deadlock. A rival that is often skipped would have few turns, for example
    // because it is in no queue, or because a node is silent.
    for (size, frozen) in [(1, 0), (3, 1), (5, 1)] {
        let nodes = Nodes::start(size).await;
        let mut rivals = Vec::new();
        for _ in 0..RIVALS {
            let brief = builder(nodes.urls()).node_timeout(BRIEF).default_ttl(Duration::from_secs(5));
            rivals.push(connected(brief, &nodes).await);
        }
        nodes[..frozen].iter().for_each(RedisServer::freeze);
        let (bank, mut tasks) = (Arc::new(Bank::default()), JoinSet::new());
        for (rival, manager) in rivals.iter().enumerate() {
            let accounts = if rival % 2 == 0 { [0, 1] } else { [1, 0] };
            tasks.spawn(turns(manager.clone(), Arc::clone(&bank), accounts));
        }
        let own = timeout(3 * PATIENCE, tasks.join_all()).await.expect("nobody waits for ever");
        assert_eq!(bank.overlaps.load(Ordering::SeqCst), 0, "{size} nodes");
        let mean = own.iter().sum::<usize>() / RIVALS;
        assert!(own.iter().all(|own| 2 * own >= mean), "{size} nodes: {own:?}");
        nodes[..frozen].iter().for_each(RedisServer::thaw);
        for manager in &rivals {
            assert_all_gone(manager, &nodes).await;
        }
    }
}
