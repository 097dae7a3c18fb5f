//! A permit that is dropped, cancelled, lost or detached.

use super::{KEY, TTL, brief, permit};
use crate::support::{assert_nothing_left, manager, polled};
use crate::waiters::{assert_all_gone, managers, obtained, waiting};
use redlock_runtime::{LockError, LockGuard, LossCause, Wait};
use redlock_tests::{Nodes, PATIENCE, eventually_eq};
use std::time::Duration;
use tokio::time::sleep;

#[tokio::test]
async fn permit_call_dropped_at_any_poll_leaves_no_keys() {
    // Curator 315 and 462: a cancelled call kept its place, and no further call was admitted.
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let manager = manager(&nodes).await;
        let mut polls = 0;
        while polled(manager.acquire(permit(1)), polls).await.is_none() {
            polls += 1;
            assert!(polls < 1000, "it is never obtained");
        }
        assert!(polls > 1, "{polls} polls");
        assert_nothing_left(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn permit_waiter_dropped_at_any_poll_does_not_block_later_waiters() {
    let nodes = Nodes::start(3).await;
    let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
    let held = ours.acquire(permit(1)).await.unwrap();
    for polls in 1..12 {
        assert!(polled(theirs.acquire(permit(1)), polls).await.is_none());
    }
    held.release().await.unwrap();
    obtained(waiting(&ours, permit(1))).await.release().await.unwrap();
    assert_all_gone(&ours, &nodes).await;
    assert_all_gone(&theirs, &nodes).await;
}

#[tokio::test]
async fn permit_is_renewed_and_ends_after_max_hold() {
    let nodes = Nodes::start(3).await;
    let manager = brief(&nodes).await;
    let held = manager.acquire(permit(1)).await.unwrap();
    let capped = manager.acquire(permit(2).max_hold(2 * TTL)).await.unwrap();
    sleep(3 * TTL).await;
    assert!(held.is_held());
    let Err(LockError::Lost { cause, .. }) = capped.ensure_held() else { panic!("its time is over") };
    assert!(matches!(cause, LossCause::MaxHold), "{cause:?}");
    drop((held, capped));
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn permit_deleted_by_another_client_is_lost() {
    let nodes = Nodes::start(3).await;
    let manager = brief(&nodes).await;
    let body = async |_: &LockGuard| -> Result<(), LockError> {
        for node in nodes.iter() {
            node.inspect().command::<usize>(&["DEL", KEY]).await;
        }
        std::future::pending().await
    };
    let error = tokio::time::timeout(PATIENCE, manager.with_lock(permit(1), body)).await.unwrap().unwrap_err();
    assert!(matches!(error, LockError::Lost { cause: LossCause::Taken, .. }), "{error:?}");
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn detached_permit_is_released() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let detached = manager.acquire(permit(1)).await.unwrap().detach();
    manager.acquire(permit(1)).await.unwrap().release().await.unwrap();
    manager.attach(detached).await.unwrap_err();
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn shutdown_ends_all_permit_waiters() {
    let nodes = Nodes::start(3).await;
    let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
    let held = ours.acquire(permit(1)).await.unwrap();
    let calls = [waiting(&theirs, permit(1)), waiting(&theirs, permit(1))];
    eventually_eq(PATIENCE, "as it should be", 2, || async { nodes[0].inspect().share_count(KEY).await }).await;
    assert!(theirs.shutdown().await);
    for call in calls {
        assert!(matches!(call.await.unwrap(), Err(LockError::Closed)));
    }
    assert!(ours.try_acquire(permit(1).wait(Wait::None)).await.unwrap_err().is_contended());
    held.release().await.unwrap();
    ours.acquire(permit(1).wait(Duration::from_secs(2))).await.unwrap().release().await.unwrap();
    assert_all_gone(&ours, &nodes).await;
}
