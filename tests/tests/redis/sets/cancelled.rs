//! A call for several keys that is dropped at any point leaves no key, no queue and no reservation (defect 24 of peers,
//! Redisson #4456).

use super::place;
use crate::support::{SIZES, acquired_everywhere, assert_nothing_left, barrier, manager, polled};
use crate::waiters::assert_all_gone;
use redlock_runtime::{LockPart, LockRequest};
use redlock_tests::{Nodes, PATIENCE, RedisServer};

/// More polls than any acquisition of free locks takes.
const MOST_POLLS: usize = 200;

fn requests() -> [LockRequest; 3] {
    [
        LockRequest::all(["a", "b", "c"]),
        LockRequest::all([LockPart::shared("a"), "b".into()]),
        LockRequest::path("/A/C/D"),
    ]
}

#[tokio::test]
async fn acquisition_dropped_at_any_poll_leaves_no_keys() {
    for (size, request) in SIZES.into_iter().flat_map(|size| requests().map(|request| (size, request))) {
        let nodes = Nodes::start(size).await;
        let mut is_done = false;
        for polls in 1..MOST_POLLS {
            let manager = manager(&nodes).await;
            is_done = polled(manager.acquire(request.clone()), polls).await.is_some();
            assert_nothing_left(&manager, &nodes).await;
            if is_done {
                assert!(polls > 1, "dropped before its end at least once");
                break;
            }
        }
        assert!(is_done, "still pending after {MOST_POLLS} polls");
    }
}

#[tokio::test]
async fn waiter_dropped_at_any_poll_does_not_affect_the_holder() {
    // Covers the tries before the queues, with a poll for each answer and each pause, and the entry into the queues.
    const POLLS: usize = 30;
    for size in SIZES {
        for (held, request) in [("b", &requests()[0]), ("/{A}/C", &requests()[2])] {
            let nodes = Nodes::start(size).await;
            let holder = manager(&nodes).await;
            let mut managers = Vec::new();
            for _ in 1..POLLS {
                managers.push(manager(&nodes).await);
            }
            let held = acquired_everywhere(&holder, &nodes, held).await;
            for (polls, manager) in (1..POLLS).zip(managers) {
                let dropped = polled(manager.acquire(request.clone().wait(PATIENCE)), polls).await;
                assert!(dropped.is_none(), "{dropped:?}");
                assert!(manager.shutdown().await);
                barrier(&nodes).await;
                for node in nodes.iter() {
                    assert_eq!(node.inspect().keys().await, [held.key().as_str()]);
                }
            }
            held.release().await.unwrap();
            assert_nothing_left(&holder, &nodes).await;
        }
    }
}

#[tokio::test]
async fn dropped_call_for_several_keys_is_released_after_the_thaw() {
    for (size, frozen) in [(1, 1), (3, 1), (3, 2), (5, 2)] {
        for request in requests() {
            let nodes = Nodes::start(size).await;
            let manager = manager(&nodes).await;
            nodes[..frozen].iter().for_each(RedisServer::freeze);
            drop(polled(manager.acquire(request), 3).await);
            nodes[..frozen].iter().for_each(RedisServer::thaw);
            assert_all_gone(&manager, &nodes).await;
        }
    }
}

#[tokio::test]
async fn shutdown_with_held_and_waiting_paths_leaves_no_keys() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let held = manager.acquire(place("/A/C")).await.unwrap();
    let waiting = crate::waiters::waiting(&manager, place("/A"));
    crate::support::wait_until_queued(&nodes, "/{A}", 0).await;
    let other = manager.clone();
    let closing = tokio::spawn(async move { other.shutdown().await });
    let error = waiting.await.unwrap().unwrap_err();
    assert!(matches!(error, redlock_runtime::LockError::Closed), "{error:?}");
    drop(held);
    assert!(closing.await.unwrap());
    nodes.assert_empty(PATIENCE).await;
}
