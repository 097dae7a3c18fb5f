//! Several keys of one slot, and paths of one tree, while the slot moves to another master.
//! One command covers all of the keys, and each side has some of them for a while.

use super::load::Load;
use super::{assert_nothing_left, connected, ready};
use crate::support::builder;
use crate::waiters::{Waiting, obtained, waiting};
use redlock_runtime::{LockError, LockGuard, LockManager, LockPart, LockRequest, Wait};
use redlock_tests::{Cluster, PATIENCE};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Short, so that a lock which is not renewed expires soon.
const TTL: Duration = Duration::from_secs(2);

/// Number of bodies that run between two moves.
const BODIES: usize = 20;

/// Returns requests in the slot of `tag`. Each excludes only requests of its own kind.
fn requests(tag: &str) -> [LockRequest; 4] {
    let named = |name: &str| format!("{{{tag}}}:{name}");
    [
        LockRequest::all([named("from"), named("to")]),
        LockRequest::all([LockPart::shared(named("rates")), LockPart::key(named("total"))]),
        LockRequest::path(&*format!("/{tag}/reports")),
        LockRequest::new(named("export")).permits(1),
    ]
}

async fn brief(cluster: &Cluster) -> LockManager {
    ready(builder([cluster.url()]).node_timeout(TTL / 4)).await
}

async fn is_refused(manager: &LockManager, request: &LockRequest) -> bool {
    manager.acquire(request.clone().wait(Wait::None)).await.is_err()
}

#[tokio::test]
async fn every_kind_of_lock_is_renewed_after_its_slot_moved() {
    // Fails if the manager follows only one of several keys to the new master, or forgets the admission lock of a permit.
    let cluster = Cluster::start(3, 0).await;
    let (manager, other) = (brief(&cluster).await, brief(&cluster).await);
    let tag = cluster.key_on(0, "acme").await;
    let mut held = Vec::new();
    for request in requests(&tag) {
        held.push(manager.acquire(request.ttl(TTL)).await.unwrap());
    }
    let next = requests(&tag).map(|request| waiting(&other, request.wait(3 * PATIENCE)));
    for to in [1, 2, 0] {
        cluster.move_slot(cluster.slot(&tag).await, to).await;
        sleep(TTL).await;
        assert!(held.iter().all(LockGuard::is_held) && !next.iter().any(Waiting::is_finished), "at member {to}");
        for request in requests(&tag) {
            assert!(is_refused(&other, &request).await, "at member {to}: {request:?}");
        }
    }
    drop(held);
    for next in next {
        obtained(next).await.release().await.unwrap();
    }
    assert_nothing_left(&[&manager, &other], &cluster).await;
}

#[tokio::test]
async fn lock_for_several_keys_split_by_a_slot_move_is_lost_with_an_error() {
    // TRYAGAIN does not mean that the lock is held. A manager that takes it for a success continues without its lock, or admits a second
    // holder.
    let cluster = Cluster::start(3, 0).await;
    let (manager, other) = (brief(&cluster).await, brief(&cluster).await);
    let tag = cluster.key_on(0, "acme").await;
    let first = [format!("{{{tag}}}:from"), format!("{{{tag}}}:rates"), format!("/{{{tag}}}/reports")];
    for (request, first) in requests(&tag).into_iter().zip(first) {
        let held = manager.acquire(request.clone().ttl(TTL)).await.unwrap();
        let migration = cluster.begin_move(cluster.slot(&tag).await, 1).await;
        migration.move_key(&first).await;
        let rival = async {
            while held.is_held() {
                assert!(is_refused(&other, &request).await || !held.is_held(), "both have it: {request:?}");
                sleep(TTL / 40).await;
            }
        };
        timeout(PATIENCE, rival).await.expect("it cannot be renewed");
        assert!(matches!(held.lost().await, LockError::Lost { .. }), "{request:?}");
        drop(held);
        migration.move_keys().await;
        migration.finish().await;
        other.acquire(request.wait(PATIENCE)).await.unwrap().release().await.unwrap();
        cluster.move_slot(cluster.slot(&tag).await, 0).await;
    }
    assert_nothing_left(&[&manager, &other], &cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_with_several_keys_continue_while_their_slot_moves() {
    // Counting an answer of one side for both admits two holders. Failing on a moving slot ends calls that may still wait.
    let cluster = Cluster::start(3, 0).await;
    let managers = [connected(&cluster).await, connected(&cluster).await];
    let tag = cluster.key_on(0, "acme").await;
    let load = Load::of_pairs(&managers, std::slice::from_ref(&tag));
    for to in [1, 2, 0, 2] {
        load.witness.more(BODIES).await;
        cluster.move_slot(cluster.slot(&tag).await, to).await;
    }
    load.witness.more(BODIES).await;
    let witness = Arc::clone(&load.witness);
    let errors = load.end().await;
    assert_eq!(witness.overlaps.load(Ordering::SeqCst), 0);
    assert!(errors.is_empty(), "{errors:?}");
    assert_nothing_left(&[&managers[0], &managers[1]], &cluster).await;
}
