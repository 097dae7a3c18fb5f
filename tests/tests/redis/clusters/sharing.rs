//! Locks that readers share, in a cluster.

use super::load::Load;
use super::{assert_nothing_left, connected, keys, ready};
use crate::support::builder;
use redlock_runtime::{LockError, LockGuard, LockManager, LockRequest, Mode};
use redlock_tests::{Cluster, PATIENCE, eventually};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::sleep;

/// Short, so that a share which is not renewed expires soon.
const TTL: Duration = Duration::from_secs(2);

/// Number of bodies that run between two moves.
const BODIES: usize = 50;

fn waiting(manager: &LockManager, request: LockRequest) -> crate::waiters::Waiting {
    crate::waiters::waiting(manager, request.wait(PATIENCE))
}

#[tokio::test]
async fn each_cluster_master_stores_the_shared_locks_of_its_slots() {
    let cluster = Cluster::start(3, 0).await;
    let (manager, other) = (connected(&cluster).await, connected(&cluster).await);
    for (number, key) in keys(&cluster, "config").await.into_iter().enumerate() {
        let guards = [
            manager.acquire(LockRequest::shared(&key)).await.unwrap(),
            other.acquire(LockRequest::shared(&key)).await.unwrap(),
        ];
        let shares = cluster.member(number).inspect().share_count(&key).await;
        assert_eq!(shares, guards.len());
        assert!(other.try_acquire(&key).await.unwrap_err().is_contended());
        let alone = waiting(&manager, key.clone().into());
        eventually(PATIENCE, "the writer waits", async || {
            let queue = format!("{{{key}}}:q");
            match cluster.member(number).inspect().command::<usize>(&["ZCOUNT", &queue, "0", "0"]).await {
                1 => Ok(()),
                other => Err(other),
            }
        })
        .await;
        let behind = waiting(&other, LockRequest::shared(&key));
        drop(guards);
        let guard = alone.await.unwrap().unwrap();
        guard.downgrade();
        let readers = [guard, behind.await.unwrap().unwrap()];
        assert!(readers.iter().all(|guard| guard.is_held() && guard.mode() == Mode::Shared));
    }
    assert_nothing_left(&[&manager, &other], &cluster).await;
}

#[tokio::test]
async fn shared_locks_are_renewed_after_their_slot_moved() {
    let cluster = Cluster::start(3, 0).await;
    let manager = ready(builder([cluster.url()]).node_timeout(TTL / 4)).await;
    let other = connected(&cluster).await;
    let key = cluster.key_on(0, "config").await;
    let request = || LockRequest::shared(&key).ttl(TTL);
    let guards = [manager.acquire(request()).await.unwrap(), manager.acquire(request()).await.unwrap()];
    let alone = waiting(&other, key.clone().into());
    for to in [1, 2, 0] {
        cluster.move_slot(cluster.slot(&key).await, to).await;
        sleep(TTL).await;
        assert!(guards.iter().all(LockGuard::is_held) && !alone.is_finished(), "at member {to}");
    }
    drop(guards);
    alone.await.unwrap().unwrap().release().await.unwrap();
    assert_nothing_left(&[&manager, &other], &cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_and_writers_continue_while_slots_move() {
    let cluster = Cluster::start(3, 0).await;
    let managers = [connected(&cluster).await, connected(&cluster).await];
    let keys = keys(&cluster, "config").await;
    let load = Load::mostly_shared(&managers, &keys);
    // Moves there and back.
    for round in 0..2 {
        for key in &keys {
            load.witness.more(BODIES).await;
            let (slot, owner) = (cluster.slot(key).await, cluster.owner(key).await);
            cluster.move_slot(slot, if round == 0 { (owner + 1) % 3 } else { (owner + 2) % 3 }).await;
        }
    }
    load.witness.more(BODIES).await;
    let witness = std::sync::Arc::clone(&load.witness);
    let errors = load.end().await;
    println!("{} bodies", witness.bodies.load(Ordering::SeqCst));
    assert_eq!(witness.overlaps.load(Ordering::SeqCst), 0);
    assert!(witness.together.load(Ordering::SeqCst) > 1);
    assert!(errors.is_empty(), "{errors:?}");
    assert_nothing_left(&[&managers[0], &managers[1]], &cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_and_writers_continue_after_a_cluster_failover() {
    let cluster = Cluster::start(3, 1).await;
    let managers = [connected(&cluster).await, connected(&cluster).await];
    let keys = keys(&cluster, "config").await;
    let load = Load::mostly_shared(&managers, &keys);
    load.witness.more(BODIES).await;
    cluster.member(0).kill();
    cluster.fail_over(0).await;
    for manager in &managers {
        eventually(PATIENCE, "it is ready again", async || manager.ready().await).await;
    }
    load.witness.more(BODIES).await;
    let witness = std::sync::Arc::clone(&load.witness);
    let errors = load.end().await;
    assert_eq!(witness.overlaps.load(Ordering::SeqCst), 0);
    let is_of_failover = |error: &LockError| matches!(error, LockError::NoQuorum { .. } | LockError::Lost { .. });
    assert!(errors.iter().all(is_of_failover), "{errors:?}");
    assert_nothing_left(&[&managers[0], &managers[1]], &cluster).await;
}
