//! Permits in a cluster: a lock, its admission lock and their queues are in one slot.

use super::{assert_nothing_left, connected, keys};
use redlock_runtime::{LockError, LockManager, LockRequest, Wait};
use redlock_tests::{Cluster, PATIENCE, eventually};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;

const PERMITS: u32 = 2;
/// Number of calls for permits in each process.
const CALLS: usize = 4;
/// Number of bodies that run between two moves.
const BODIES: usize = 20;

fn permit(key: &str) -> LockRequest {
    LockRequest::new(key).permits(PERMITS).wait(PATIENCE)
}

#[tokio::test]
async fn each_cluster_master_stores_the_permits_of_its_slots() {
    let cluster = Cluster::start(3, 0).await;
    let (manager, other) = (connected(&cluster).await, connected(&cluster).await);
    for (number, key) in keys(&cluster, "export").await.into_iter().enumerate() {
        let one = manager.acquire(permit(&key)).await.unwrap();
        let two = other.acquire(permit(&key)).await.unwrap();
        assert_eq!(cluster.member(number).inspect().share_count(&key).await, 2);
        assert!(other.try_acquire(permit(&key).wait(Wait::None)).await.unwrap_err().is_contended());
        let third = crate::waiters::waiting(&other, permit(&key));
        eventually(PATIENCE, "it waits in the admission lock", async || {
            match cluster.member(number).inspect().share_count(&key).await {
                3 => Ok(()),
                other => Err(other),
            }
        })
        .await;
        drop(one);
        drop((third.await.unwrap().unwrap(), two));
    }
    assert_nothing_left(&[&manager, &other], &cluster).await;
}

/// Counters of the bodies.
#[derive(Default)]
struct Witness {
    inside: AtomicUsize,
    most: AtomicUsize,
    bodies: AtomicUsize,
    is_over: AtomicBool,
}

impl Witness {
    async fn calls(self: Arc<Self>, manager: LockManager, key: String) -> Result<(), LockError> {
        while !self.is_over.load(Ordering::SeqCst) {
            let guard = manager.acquire(permit(&key)).await?;
            let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(inside, Ordering::SeqCst);
            sleep(Duration::from_millis(2)).await;
            self.inside.fetch_sub(1, Ordering::SeqCst);
            self.bodies.fetch_add(1, Ordering::SeqCst);
            // The release is retried until the slot has arrived.
            drop(guard);
        }
        Ok(())
    }

    async fn more(&self) {
        let enough = self.bodies.load(Ordering::SeqCst) + BODIES;
        eventually(PATIENCE, "bodies run", async || {
            let bodies = self.bodies.load(Ordering::SeqCst);
            if bodies >= enough { Ok(()) } else { Err(bodies) }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permit_limit_holds_while_the_slot_moves() {
    let cluster = Cluster::start(3, 0).await;
    let managers = [connected(&cluster).await, connected(&cluster).await];
    let key = cluster.key_on(0, "export").await;
    let (witness, mut calls) = (Arc::new(Witness::default()), JoinSet::new());
    for manager in managers.iter().flat_map(|manager| [manager; CALLS]) {
        calls.spawn(Arc::clone(&witness).calls(manager.clone(), key.clone()));
    }
    for to in [1, 2, 0, 2] {
        witness.more().await;
        cluster.move_slot(cluster.slot(&key).await, to).await;
    }
    witness.more().await;
    witness.is_over.store(true, Ordering::SeqCst);
    while let Some(ended) = calls.join_next().await {
        ended.unwrap().unwrap();
    }
    assert_eq!(witness.most.load(Ordering::SeqCst), PERMITS as usize);
    assert_nothing_left(&[&managers[0], &managers[1]], &cluster).await;
}
