//! Slots that move to other masters while their locks are held, waited for and released.

use super::load::Load;
use super::{assert_nothing_left, connected, keys, ready};
use crate::support::{builder, causes};
use redlock_runtime::{LockError, LockRequest};
use redlock_tests::{Cluster, PATIENCE, eventually};
use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Short, so that a lock which is not renewed expires soon.
const TTL: Duration = Duration::from_secs(2);

/// Number of bodies that run between two moves.
const BODIES: usize = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_continue_without_errors_while_slots_move() {
    let cluster = Cluster::start(3, 0).await;
    let managers = [connected(&cluster).await, connected(&cluster).await];
    let keys = keys(&cluster, "order").await;
    let load = Load::start(&managers, &keys);
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
    assert!(errors.is_empty(), "{errors:?}");
    assert_nothing_left(&[&managers[0], &managers[1]], &cluster).await;
}

#[tokio::test]
async fn lock_is_renewed_and_released_during_a_slot_move() {
    let cluster = Cluster::start(3, 0).await;
    let manager = ready(builder([cluster.url()]).node_timeout(TTL / 4)).await;
    let other = connected(&cluster).await;
    for has_come in [false, true] {
        let key = cluster.key_on(0, "order").await;
        let held = manager.acquire(LockRequest::new(&key).ttl(TTL)).await.unwrap();
        let waiting = tokio::spawn({
            let (other, key) = (other.clone(), key.clone());
            async move { other.acquire(LockRequest::new(key).wait(PATIENCE)).await }
        });
        eventually(PATIENCE, "it waits", async || {
            match cluster.member(0).inspect().command::<usize>(&["ZCARD", &format!("{{{key}}}:q")]).await {
                1 => Ok(()),
                other => Err(other),
            }
        })
        .await;
        let migration = cluster.begin_move(cluster.slot(&key).await, 1).await;
        let at = if has_come {
            // Moves the key without its queue, which follows later.
            migration.move_key(&key).await;
            1
        } else {
            0
        };
        for _ in 0..2 {
            let before = Cell::new(i64::MAX);
            eventually(PATIENCE, "it is renewed", async || {
                if at == 1 {
                    cluster.member(1).inspect().command::<()>(&["ASKING"]).await;
                }
                let left = cluster.member(at).inspect().pttl(&key).await;
                let is_renewed = left > before.replace(left);
                if is_renewed { Ok(()) } else { Err(left) }
            })
            .await;
        }
        assert!(held.is_held());
        held.release().await.unwrap();
        let next = waiting.await.unwrap().unwrap();
        migration.move_keys().await;
        migration.finish().await;
        assert!(next.is_held());
        next.release().await.unwrap();
        cluster.move_slot(cluster.slot(&key).await, 0).await;
    }
    assert_nothing_left(&[&manager, &other], &cluster).await;
}

#[tokio::test]
async fn free_lock_is_acquired_at_the_importing_master_during_a_slot_move() {
    let cluster = Cluster::start(3, 0).await;
    let (manager, other) = (connected(&cluster).await, connected(&cluster).await);
    let key = cluster.key_on(0, "order").await;
    let migration = cluster.begin_move(cluster.slot(&key).await, 2).await;
    let held = manager.try_acquire(&key).await.unwrap();
    assert_eq!(cluster.member(0).inspect().keys().await, Vec::<String>::new());
    assert_eq!(cluster.member(2).inspect().keys().await, [key.as_str()]);
    assert!(other.try_acquire(&key).await.unwrap_err().is_contended());
    let waiting = tokio::spawn({
        let (other, key) = (other.clone(), key.clone());
        async move { other.acquire(LockRequest::new(key).wait(PATIENCE)).await }
    });
    held.release().await.unwrap();
    let next = waiting.await.unwrap().unwrap();
    migration.move_keys().await;
    migration.finish().await;
    next.release().await.unwrap();
    assert_nothing_left(&[&manager, &other], &cluster).await;
}

#[tokio::test]
async fn fencing_numbers_keep_increasing_across_slot_moves() {
    let cluster = Cluster::start(3, 0).await;
    let manager = connected(&cluster).await;
    let key = cluster.key_on(0, "order").await;
    let slot = cluster.slot(&key).await;
    let mut last = manager.acquire(LockRequest::new(&key).fencing()).await.unwrap().fencing_token();
    for to in [1, 2, 0] {
        let migration = cluster.begin_move(slot, to).await;
        let waiting = tokio::spawn({
            let (manager, key) = (manager.clone(), key.clone());
            async move { manager.acquire(LockRequest::new(key).wait(PATIENCE).fencing()).await }
        });
        migration.move_keys().await;
        migration.finish().await;
        let next = waiting.await.unwrap().unwrap().fencing_token();
        assert!(last < next, "{last} {next}");
        last = next;
    }
    assert_nothing_left(&[&manager], &cluster).await;
}

#[tokio::test]
async fn manager_follows_slots_to_a_new_cluster_master() {
    let cluster = Cluster::start(2, 0).await;
    let manager = connected(&cluster).await;
    let key = cluster.key_on(0, "order").await;
    let slot = cluster.slot(&key).await;
    // A master without slots does not appear in any slot map.
    for _ in 0..2 {
        cluster.move_slot(slot, 1).await;
        manager.acquire(&key).await.unwrap().release().await.unwrap();
        cluster.move_slot(slot, 0).await;
        manager.acquire(&key).await.unwrap().release().await.unwrap();
    }
    assert_nothing_left(&[&manager], &cluster).await;
}

/// The state after a move that ended between the two members.
#[tokio::test]
async fn redirect_loop_between_masters_does_not_end_a_waiting_call() {
    let cluster = Cluster::start(2, 0).await;
    let manager = connected(&cluster).await;
    let key = cluster.key_on(0, "order").await;
    let slot = cluster.slot(&key).await;
    cluster.make_slot_owners_disagree(slot, [0, 1]).await;
    let error = manager.try_acquire(&key).await.unwrap_err();
    assert!(matches!(error, LockError::NoQuorum { .. }), "{error:?}");
    let causes: Vec<_> = causes(&error).iter().map(|(_, error)| error.to_string()).collect();
    assert!(causes[0].contains("send the command to one another") && causes[0].contains("MOVED"), "{causes:?}");
    let waiting = tokio::spawn({
        let (manager, key) = (manager.clone(), key.clone());
        async move { manager.acquire(LockRequest::new(key).wait(PATIENCE)).await }
    });
    cluster.settle(slot, 1).await;
    waiting.await.unwrap().unwrap().release().await.unwrap();
    assert_nothing_left(&[&manager], &cluster).await;
}
