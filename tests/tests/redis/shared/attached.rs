//! Shares that one worker detaches and another one attaches.

use super::{KEY, TTL, brief, reader, writer};
use crate::support::{acquired_everywhere, assert_nothing_left, holders, manager};
use crate::waiters::{assert_all_gone, managers, obtained, waiting};
use redlock_runtime::{DetachedLock, LockError, LockRequest, Mode};
use redlock_tests::{Nodes, PATIENCE, eventually_eq};
use tokio::time::sleep;

#[tokio::test]
async fn attaching_worker_holds_the_shared_lock_with_a_new_token() {
    for size in [1, 3, 5] {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
        let other = acquired_everywhere(&ours, &nodes, reader()).await;
        let guard = acquired_everywhere(&ours, &nodes, reader()).await;
        let token = *guard.token();
        let message = guard.detach().to_string();
        let detached: DetachedLock = message.parse().unwrap();
        assert_eq!((detached.mode(), detached.token()), (Mode::Shared, &token));
        let taken_up = theirs.attach(detached).await.unwrap();
        assert!(*taken_up.token() != token && taken_up.mode() == Mode::Shared);
        eventually_eq(PATIENCE, "held everywhere", size, async || holders(&nodes, &taken_up).await).await;
        nodes.assert_no_mention(PATIENCE, token.as_str()).await;
        other.release().await.unwrap();
        assert!(ours.try_acquire(KEY).await.unwrap_err().is_contended(), "one share is left");
        ours.try_acquire(LockRequest::shared(KEY)).await.unwrap().release().await.unwrap();
        taken_up.release().await.unwrap();
        let error = theirs.attach(message.parse().unwrap()).await.unwrap_err();
        assert!(matches!(error, LockError::Lost { .. }), "once: {error:?}");
        assert_nothing_left(&ours, &nodes).await;
        assert_nothing_left(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn detached_shared_lock_expires_after_its_ttl_despite_other_readers() {
    let nodes = Nodes::start(3).await;
    let [ours, theirs] = [brief(&nodes).await, brief(&nodes).await];
    let other = ours.acquire(reader()).await.unwrap();
    let left = ours.acquire(reader()).await.unwrap().detach();
    sleep(2 * TTL).await;
    other.release().await.unwrap();
    theirs.try_acquire(KEY).await.unwrap().release().await.unwrap();
    let error = theirs.attach(left).await.unwrap_err();
    assert!(matches!(error, LockError::Lost { .. }), "{error:?}");
    assert_nothing_left(&ours, &nodes).await;
    assert_nothing_left(&theirs, &nodes).await;
}

#[tokio::test]
async fn attached_shared_lock_is_renewed_while_a_writer_waits() {
    let nodes = Nodes::start(3).await;
    let [ours, theirs] = [brief(&nodes).await, brief(&nodes).await];
    let left = ours.acquire(reader()).await.unwrap().detach();
    let call = waiting(&ours, writer());
    let taken_up = theirs.attach(left).await.unwrap();
    sleep(3 * TTL).await;
    assert!(taken_up.is_held() && !call.is_finished());
    taken_up.release().await.unwrap();
    obtained(call).await.release().await.unwrap();
    assert_all_gone(&ours, &nodes).await;
    assert_all_gone(&theirs, &nodes).await;
}

#[tokio::test]
async fn downgraded_lock_is_attached_as_shared() {
    let nodes = Nodes::start(3).await;
    let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
    let held = acquired_everywhere(&ours, &nodes, KEY).await;
    held.downgrade();
    // After this, the nodes know the downgrade.
    held.extend().await.unwrap();
    let left = held.detach();
    assert_eq!(left.mode(), Mode::Shared);
    let taken_up = theirs.attach(left).await.unwrap();
    ours.acquire(reader()).await.unwrap().release().await.unwrap();
    taken_up.release().await.unwrap();
    let left = ours.acquire(writer()).await.unwrap().detach();
    assert_eq!(left.mode(), Mode::Exclusive);
    theirs.attach(left).await.unwrap().release().await.unwrap();
    assert_nothing_left(&ours, &nodes).await;
    assert_nothing_left(&theirs, &nodes).await;
}

#[tokio::test]
async fn lock_downgraded_just_before_the_detach_is_attached_as_shared() {
    // The nodes may not have received the downgrade yet.
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
        let held = acquired_everywhere(&ours, &nodes, KEY).await;
        held.downgrade();
        let taken_up = theirs.attach(held.detach()).await.unwrap();
        assert_eq!(taken_up.mode(), Mode::Shared);
        ours.acquire(reader()).await.unwrap().release().await.unwrap();
        taken_up.release().await.unwrap();
        assert_all_gone(&ours, &nodes).await;
        assert_all_gone(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn fenced_attach_of_a_shared_lock_is_rejected() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let left = manager.acquire(reader()).await.unwrap().detach();
    let error = manager.attach(left.clone().fencing()).await.unwrap_err();
    assert!(matches!(error, LockError::Configuration { .. }), "{error:?}");
    manager.attach(left).await.unwrap().release().await.unwrap();
    assert_nothing_left(&manager, &nodes).await;
}
