//! Transfers between accounts in any order, by calls that come, give up and are dropped. What counts is that no two are there
//! with the same account, that whoever has patience gets both, and that nothing is left (defect 24 of peers; Redisson's `MultiLock`, #467,
//! #1160 and #4050).

use super::all;
use crate::support::{SIZES, assert_nothing_left};
use crate::waiters::{managers, patient};
use redlock_runtime::{LockError, LockManager, LockRequest};
use redlock_tests::{Nodes, PATIENCE};
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
async fn transfers_in_opposite_orders_do_not_wait_in_a_circle() {
    for size in SIZES {
        storm(size, false).await;
    }
}

#[tokio::test]
async fn transfers_that_are_dropped_leave_nothing() {
    for size in SIZES {
        storm(size, true).await;
    }
}

#[tokio::test]
async fn transfers_go_on_although_a_node_is_frozen() {
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
