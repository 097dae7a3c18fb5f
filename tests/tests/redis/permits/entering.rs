//! Admission of calls with permits: their order, and the locks beside them.

use super::{KEY, permit};
use crate::support::{SHORT_WAIT, SIZES, acquired_everywhere, assert_nothing_left, manager, wait_until_queued};
use crate::waiters::{assert_all_gone, managers, obtained, patient, queue, waiting};
use redlock_runtime::__private::hold;
use redlock_runtime::{LockError, LockGuard, LockManager, LockRequest, Mode, Wait};
use redlock_tests::{Nodes, PATIENCE, eventually_eq};
use std::time::Duration;
use tokio::time::timeout;

/// Waits until `many` calls are queued at every node for the admission lock, which is an ordinary lock.
pub(super) async fn wait_until_in_line(nodes: &Nodes, many: usize) {
    for node in nodes.iter() {
        let queue = ["ZCARD", "{export}:q:{export}:t"];
        eventually_eq(PATIENCE, "they wait", many, || async { node.inspect().command::<usize>(&queue).await }).await;
    }
}

/// Acquires a permit at every node, and waits until the admission lock is free everywhere. A majority is enough for a permit.
/// So a node whose admission lock is still held gives the next call no permit before its renewal.
pub(super) async fn entered_everywhere(manager: &LockManager, nodes: &Nodes, request: LockRequest) -> LockGuard {
    let guard = acquired_everywhere(manager, nodes, request).await;
    for node in nodes.iter() {
        let is_there = async || node.inspect().command::<usize>(&["EXISTS", "{export}:t"]).await;
        eventually_eq(PATIENCE, "nobody stands in the admission lock", 0, is_there).await;
    }
    guard
}

#[tokio::test]
async fn permit_limit_is_enforced_and_a_release_admits_the_next_waiter() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
        let one = entered_everywhere(&ours, &nodes, permit(2)).await;
        let other = theirs.acquire(permit(2)).await.unwrap();
        assert_eq!(one.mode(), Mode::Permit);
        assert!(theirs.try_acquire(permit(2).wait(Wait::None)).await.unwrap_err().is_contended(), "{size} nodes");
        let third = waiting(&theirs, permit(2));
        // The third call holds the admission lock, with a provisional permit.
        eventually_eq(PATIENCE, "as it should be", 3, || async { nodes[0].inspect().share_count(KEY).await }).await;
        assert!(!third.is_finished());
        one.release().await.unwrap();
        let third = obtained(third).await;
        assert!(third.is_held());
        drop((other, third));
        assert_all_gone(&ours, &nodes).await;
        assert_all_gone(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn each_permit_call_applies_its_own_limit() {
    let nodes = Nodes::start(3).await;
    let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
    let one = entered_everywhere(&ours, &nodes, permit(2)).await;
    let two = theirs.acquire(permit(2)).await.unwrap();
    // Redisson #6664 and #6687: the order of arrival alone does not decide, because each call has its own limit.
    let three = theirs.acquire(permit(3)).await.unwrap();
    assert!(ours.try_acquire(permit(3).wait(Wait::None)).await.unwrap_err().is_contended());
    let waiter = waiting(&ours, permit(2));
    drop(one);
    // Two holders are left beside it, so it keeps waiting.
    eventually_eq(PATIENCE, "one is gone", 3, || async { nodes[0].inspect().share_count(KEY).await }).await;
    assert!(!waiter.is_finished());
    drop(two);
    obtained(waiter).await.release().await.unwrap();
    drop(three);
    assert_all_gone(&ours, &nodes).await;
    assert_all_gone(&theirs, &nodes).await;
}

#[tokio::test]
async fn released_permit_admits_every_waiter_within_its_limit() {
    // Redisson #6664 and #6687: one free permit can admit several waiters, and they were not woken.
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let managers = managers(&nodes, 3).await;
        let held = entered_everywhere(&managers[0], &nodes, permit(1)).await;
        let first = waiting(&managers[1], permit(1));
        eventually_eq(PATIENCE, "it asks for a permit", 2, || async { nodes[0].inspect().share_count(KEY).await })
            .await;
        // There would be room for it, but it arrived later.
        let second = waiting(&managers[2], permit(2));
        wait_until_in_line(&nodes, 1).await;
        drop(held);
        let (first, second) = (obtained(first).await, obtained(second).await);
        assert!(first.is_held() && second.is_held(), "{size} nodes");
        drop((first, second));
        for manager in &managers {
            assert_all_gone(manager, &nodes).await;
        }
    }
}

#[tokio::test]
async fn permit_waiters_enter_in_order_of_arrival() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let managers = managers(&nodes, 4).await;
        let held = managers[0].acquire(permit(1)).await.unwrap();
        let first = waiting(&managers[1], permit(1));
        eventually_eq(PATIENCE, "as it should be", 2, || async { nodes[0].inspect().share_count(KEY).await }).await;
        let second = waiting(&managers[2], permit(1));
        wait_until_in_line(&nodes, 1).await;
        let third = waiting(&managers[3], permit(1));
        wait_until_in_line(&nodes, 2).await;
        drop(held);
        let first = obtained(first).await;
        assert!(!second.is_finished() && !third.is_finished(), "{size} nodes");
        drop(first);
        let second = obtained(second).await;
        assert!(!third.is_finished(), "{size} nodes");
        drop(second);
        drop(obtained(third).await);
        for manager in &managers {
            assert_all_gone(manager, &nodes).await;
        }
    }
}

#[tokio::test]
async fn exclusive_locks_and_permits_wait_for_each_other() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
        let one = ours.acquire(permit(2)).await.unwrap();
        let alone = waiting(&theirs, patient(KEY));
        wait_until_queued(&nodes, KEY, 1).await;
        // The call does not overtake the waiting exclusive call.
        assert!(ours.try_acquire(permit(2).wait(Wait::None)).await.unwrap_err().is_contended());
        drop(one);
        let alone = obtained(alone).await;
        let next = waiting(&ours, permit(2));
        assert!(!next.is_finished());
        drop(alone);
        drop(obtained(next).await);
        assert_all_gone(&ours, &nodes).await;
        assert_all_gone(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn permit_call_waits_in_the_queue_of_the_key_and_enters_before_later_writers() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let [ours, theirs, last] = managers(&nodes, 3).await.try_into().unwrap();
        let alone = acquired_everywhere(&theirs, &nodes, patient(KEY)).await;
        let permitted = waiting(&ours, permit(1));
        wait_until_queued(&nodes, KEY, 1).await;
        let later = waiting(&last, patient(KEY));
        wait_until_queued(&nodes, KEY, 2).await;
        alone.release().await.unwrap();
        let permitted = obtained(permitted).await;
        assert!(permitted.is_held() && !later.is_finished(), "{size} nodes");
        permitted.release().await.unwrap();
        drop(obtained(later).await);
        for manager in [ours, theirs, last] {
            assert_all_gone(&manager, &nodes).await;
        }
    }
}

#[tokio::test]
async fn foreign_lock_and_permits_exclude_each_other() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    for node in nodes.iter() {
        node.inspect().command::<()>(&["SET", KEY, "another", "NX", "PX", "300"]).await;
    }
    assert!(manager.try_acquire(permit(2).wait(Wait::None)).await.unwrap_err().is_contended());
    let held = manager.acquire(permit(2)).await.unwrap();
    for node in nodes.iter() {
        let taken: Option<String> = node.inspect().command(&["SET", KEY, "another", "NX", "PX", "300"]).await;
        assert_eq!(taken, None, "and they keep it out");
    }
    held.release().await.unwrap();
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn timed_out_permit_calls_leave_no_keys() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
        let held = ours.acquire(permit(1)).await.unwrap();
        let brief = || permit(1).wait(SHORT_WAIT);
        let (first, second) = tokio::join!(theirs.acquire(brief()), theirs.acquire(brief()));
        for error in [first.unwrap_err(), second.unwrap_err()] {
            assert!(matches!(&error, LockError::TimedOut { key, .. } if key.as_str() == KEY), "{error:?}");
        }
        held.release().await.unwrap();
        assert_all_gone(&ours, &nodes).await;
        assert_all_gone(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn permits_with_min_hold_form_a_rate_limit() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let least = Duration::from_millis(400);
    let call = || permit(2).min_hold(least);
    let begun = std::time::Instant::now();
    for _ in 0..6 {
        manager.acquire(call()).await.unwrap().release().await.unwrap();
    }
    // Two at once, two after these have ended, and two more: never earlier.
    assert!(begun.elapsed() >= least * 19 / 10, "{:?}", begun.elapsed());
    nodes.assert_empty(PATIENCE).await;
}

#[tokio::test]
async fn permits_of_different_keys_are_independent() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let _one = manager.acquire(permit(1)).await.unwrap();
    drop(manager.acquire(LockRequest::new("import").permits(1)).await.unwrap());
}

#[tokio::test]
async fn permit_call_and_exclusive_call_do_not_deadlock() {
    let nodes = Nodes::start(2).await;
    let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
    // Meanwhile, each of the two calls can win only the other node.
    nodes[1].inspect().command::<()>(&["SET", KEY, "another", "NX", "PX", "1500"]).await;
    let few = waiting(&ours, permit(2));
    eventually_eq(PATIENCE, "it stands in the admission lock", 1, || async {
        nodes[1].inspect().command::<usize>(&["EXISTS", "{export}:t"]).await
    })
    .await;
    let alone = waiting(&theirs, patient(KEY));
    // The call for a permit has arrived first, and waits there as a reader.
    eventually_eq(PATIENCE, "both wait", 2, || async { queue(nodes[1].inspect(), KEY).await.len() }).await;
    drop(obtained(few).await);
    drop(obtained(alone).await);
    assert_all_gone(&ours, &nodes).await;
    assert_all_gone(&theirs, &nodes).await;
}

#[tokio::test]
async fn foreign_entry_among_the_permits_counts_as_one() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let _held = [manager.acquire(permit(2)).await.unwrap(), manager.acquire(permit(2)).await.unwrap()];
    for node in nodes.iter() {
        let [_, score]: [String; 2] = node.inspect().command(&["ZRANGE", KEY, "0", "0", "WITHSCORES"]).await;
        node.inspect().command::<()>(&["ZADD", KEY, &score, "another"]).await;
    }
    assert!(manager.try_acquire(permit(3).wait(Wait::None)).await.unwrap_err().is_contended());
    manager.acquire(permit(4)).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn nested_permit_call_behind_a_writer_waiting_for_its_caller_fails() {
    let nodes = Nodes::start(1).await;
    let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
    let outer = ours.acquire(permit(2)).await.unwrap();
    let nested = async || timeout(PATIENCE, hold(&outer, ours.acquire(permit(2)))).await.unwrap().unwrap();
    drop(nested().await.unwrap());
    let alone = waiting(&theirs, patient(KEY));
    wait_until_queued(&nodes, KEY, 1).await;
    let error = nested().await.unwrap_err();
    assert!(matches!(error, LockError::WouldDeadlock { .. }), "{error}");
    drop(outer);
    drop(obtained(alone).await);
    assert_all_gone(&ours, &nodes).await;
    assert_all_gone(&theirs, &nodes).await;
}

#[tokio::test]
async fn reentrant_permit_call_does_not_reuse_a_shared_lock() {
    let nodes = Nodes::start(1).await;
    let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
    let nested = || permit(1).reentrant().wait(Wait::None);
    let other = theirs.acquire(permit(2)).await.unwrap();
    let outer = ours.acquire(LockRequest::shared(KEY)).await.unwrap();
    let error = hold(&outer, ours.acquire(nested())).await.unwrap().unwrap_err();
    assert!(error.is_contended(), "{error}");
    drop((outer, other));
    let outer = ours.acquire(permit(2)).await.unwrap();
    let view = hold(&outer, ours.acquire(nested())).await.unwrap().unwrap();
    assert_eq!(view.token(), outer.token());
}
