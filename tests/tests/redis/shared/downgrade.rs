//! A writer that downgrades to a reader: no writer is admitted in between, and an upgrade is impossible.

use super::{KEY, TTL, brief, cause, reader, writer};
use crate::support::{SIZES, acquired_everywhere, assert_nothing_left, barrier, builder, connected, holders, majority};
use crate::support::{manager, wait_until_queued};
use crate::waiters::{assert_all_gone, managers, obtained, waiting};
use redlock_runtime::__private::hold;
use redlock_runtime::{LockError, LockGuard, LockRequest, LossCause, Mode};
use redlock_tests::{Nodes, PATIENCE, RedisServer, eventually_eq};
use tokio::time::{sleep, timeout};

#[tokio::test]
async fn downgrade_admits_waiting_readers_but_not_the_writer_behind_them() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let [ours, theirs, others] = managers(&nodes, 3).await.try_into().unwrap();
        let held = acquired_everywhere(&ours, &nodes, KEY).await;
        let token = *held.token();
        let mut calls = Vec::new();
        for (manager, request) in [(&theirs, reader()), (&theirs, reader()), (&others, writer())] {
            calls.push(waiting(manager, request));
            wait_until_queued(&nodes, KEY, calls.len()).await;
        }
        held.downgrade();
        assert_eq!((held.mode(), held.token()), (Mode::Shared, &token));
        let [one, other, alone] = calls.try_into().unwrap();
        let guards = [obtained(one).await, obtained(other).await];
        assert!(held.is_held() && guards.iter().all(LockGuard::is_held) && !alone.is_finished());
        assert!(holders(&nodes, &held).await >= majority(size));
        drop(guards);
        held.extend().await.unwrap();
        assert!(!alone.is_finished(), "as long as the first one reads");
        held.release().await.unwrap();
        obtained(alone).await.release().await.unwrap();
        assert_all_gone(&ours, &nodes).await;
        assert_all_gone(&others, &nodes).await;
    }
}

#[tokio::test]
async fn downgrade_admits_no_reader_behind_a_waiting_writer() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let [ours, theirs, others] = managers(&nodes, 3).await.try_into().unwrap();
        let held = acquired_everywhere(&ours, &nodes, KEY).await;
        let alone = waiting(&theirs, writer());
        wait_until_queued(&nodes, KEY, 1).await;
        let behind = waiting(&others, reader());
        wait_until_queued(&nodes, KEY, 2).await;
        held.downgrade();
        held.extend().await.unwrap();
        barrier(&nodes).await;
        assert!(held.is_held() && !alone.is_finished() && !behind.is_finished());
        held.release().await.unwrap();
        let guard = obtained(alone).await;
        assert!(!behind.is_finished());
        guard.release().await.unwrap();
        obtained(behind).await.release().await.unwrap();
        assert_all_gone(&ours, &nodes).await;
    }
}

#[tokio::test]
async fn downgrade_admits_readers_before_the_next_renewal() {
    // The lease is renewed after a third of it, which is longer than the harness waits.
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
        let held = acquired_everywhere(&ours, &nodes, writer().ttl(4 * PATIENCE / 2)).await;
        let call = waiting(&theirs, reader().wait(PATIENCE / 2));
        wait_until_queued(&nodes, KEY, 1).await;
        held.downgrade();
        let guard = obtained(call).await;
        assert!(held.is_held() && guard.is_held());
        drop((held, guard));
        assert_all_gone(&ours, &nodes).await;
    }
}

#[tokio::test]
async fn downgraded_lock_is_renewed_as_shared() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = [brief(&nodes).await, brief(&nodes).await];
        let held = ours.acquire(writer()).await.unwrap();
        held.downgrade();
        held.downgrade();
        let other = theirs.acquire(reader()).await.unwrap();
        sleep(3 * TTL).await;
        assert!(held.is_held() && other.is_held());
        assert!(theirs.try_acquire(KEY).await.unwrap_err().is_contended());
        held.release().await.unwrap();
        other.release().await.unwrap();
        theirs.try_acquire(KEY).await.unwrap().release().await.unwrap();
        assert_nothing_left(&ours, &nodes).await;
        assert_nothing_left(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn downgraded_lock_cannot_be_upgraded() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let held = manager.acquire(writer()).await.unwrap();
    held.downgrade();
    for request in [writer(), writer().reentrant()] {
        let nested = timeout(PATIENCE, hold(&held, manager.acquire(request))).await;
        let error = nested.expect("it would wait for itself").unwrap().unwrap_err();
        assert!(matches!(error, LockError::WouldDeadlock { .. }), "{error:?}");
    }
    let view = hold(&held, manager.acquire(reader().reentrant())).await.unwrap().unwrap();
    assert_eq!(view.mode(), Mode::Shared);
    drop((view, held));
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn downgraded_lock_is_not_handed_off_to_a_local_writer() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
        let held = acquired_everywhere(&ours, &nodes, KEY).await;
        let next = waiting(&ours, writer());
        tokio::task::yield_now().await;
        held.downgrade();
        let other = theirs.acquire(reader()).await.unwrap();
        held.release().await.unwrap();
        wait_until_queued(&nodes, KEY, 1).await;
        assert!(other.is_held() && !next.is_finished());
        other.release().await.unwrap();
        let guard = obtained(next).await;
        assert_eq!(guard.mode(), Mode::Exclusive);
        guard.release().await.unwrap();
        assert_all_gone(&ours, &nodes).await;
    }
}

#[tokio::test]
async fn downgraded_lock_does_not_linger() {
    let nodes = Nodes::start(3).await;
    let manager = connected(builder(nodes.urls()).linger(PATIENCE), &nodes).await;
    for _ in 0..5 {
        let held = manager.acquire(KEY).await.unwrap();
        held.downgrade();
        drop(held);
        barrier(&nodes).await;
        nodes.assert_empty(PATIENCE).await;
    }
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn downgrade_of_a_released_or_lost_guard_has_no_effect() {
    let nodes = Nodes::start(3).await;
    let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
    let released = ours.acquire(writer()).await.unwrap();
    released.release().await.unwrap();
    // The lock belongs to another call of the same process.
    let held = ours.acquire(writer()).await.unwrap();
    released.downgrade();
    held.extend().await.unwrap();
    barrier(&nodes).await;
    assert_eq!(held.mode(), Mode::Exclusive);
    assert!(theirs.try_acquire(LockRequest::shared(KEY)).await.unwrap_err().is_contended());
    drop((released, held));
    let brief = brief(&nodes).await;
    let lost = brief.acquire(writer().without_renewal()).await.unwrap();
    assert_eq!(cause(lost.lost().await), LossCause::Expired);
    lost.downgrade();
    let error = lost.ensure_held().unwrap_err();
    assert!(matches!(error, LockError::Lost { .. }), "{error:?}");
    drop(lost);
    nodes.assert_empty(PATIENCE).await;
    assert_nothing_left(&brief, &nodes).await;
    assert_nothing_left(&ours, &nodes).await;
    assert_nothing_left(&theirs, &nodes).await;
}

#[tokio::test]
async fn downgrade_keeps_the_fencing_token_and_the_next_writer_exceeds_it() {
    let nodes = Nodes::start(3).await;
    let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
    let held = ours.acquire(LockRequest::new(KEY).fencing()).await.unwrap();
    let number = held.fencing_token();
    held.downgrade();
    let other = theirs.acquire(reader()).await.unwrap();
    assert_eq!(held.fencing_token(), number);
    drop((held, other));
    let next = theirs.acquire(writer().fencing()).await.unwrap();
    assert!(next.fencing_token() > number);
    drop(next);
    assert!(ours.shutdown().await && theirs.shutdown().await);
}

#[tokio::test]
async fn downgrade_reaches_a_frozen_node_after_the_thaw() {
    let nodes = Nodes::start(3).await;
    let [ours, theirs] = [brief(&nodes).await, brief(&nodes).await];
    let held = acquired_everywhere(&ours, &nodes, KEY).await;
    nodes[0].freeze();
    held.downgrade();
    let other = theirs.acquire(reader()).await.unwrap();
    nodes[0].thaw();
    for guard in [&held, &other] {
        eventually_eq(PATIENCE, "every node has the share", 3, async || holders(&nodes, guard).await).await;
    }
    assert!(held.is_held() && other.is_held());
    drop((held, other));
    assert_all_gone(&ours, &nodes).await;
    assert_all_gone(&theirs, &nodes).await;
}

#[tokio::test]
async fn downgraded_lock_is_lost_on_a_frozen_majority() {
    let nodes = Nodes::start(3).await;
    let manager = brief(&nodes).await;
    let held = manager.acquire(writer()).await.unwrap();
    nodes[..2].iter().for_each(RedisServer::freeze);
    held.downgrade();
    let error = timeout(PATIENCE, held.lost()).await.expect("its lease ends");
    assert!(matches!(cause(error), LossCause::NotRenewed { .. }));
    nodes[..2].iter().for_each(RedisServer::thaw);
    drop(held);
    nodes.assert_empty(PATIENCE).await;
    assert_nothing_left(&manager, &nodes).await;
}
