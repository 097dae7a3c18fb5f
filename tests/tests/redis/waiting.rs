//! Waiting for a lock that another call holds: its duration, and the state afterwards (defects 7 and 8 of peers).

use crate::support::{
    SIZES, acquired_everywhere, assert_nothing_left, holders, majority, manager, wait_until_queued,
    wait_until_settings_are_left,
};
use redlock_runtime::{LockError, LockRequest, Wait};
use redlock_tests::{Nodes, PATIENCE, eventually};
use std::time::{Duration, Instant};

const KEY: &str = "order:7";

#[tokio::test]
async fn waiter_gets_a_released_lock_with_a_fresh_lease() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
        let held = theirs.acquire(KEY).await.unwrap();
        let waiting = tokio::spawn({
            let ours = ours.clone();
            async move { ours.acquire(LockRequest::new(KEY).wait(PATIENCE)).await }
        });
        wait_until_queued(&nodes, KEY, 1).await;
        let released = Instant::now();
        held.release().await.unwrap();
        let guard = waiting.await.unwrap().unwrap();
        // Defect 8: a lease that counts from the start of the wait would be older than the release.
        eventually(PATIENCE, "the nodes have answered", async || {
            let is_fresh = guard.remaining() + released.elapsed() > guard.ttl().mul_f64(0.98);
            if is_fresh { Ok(()) } else { Err(guard.remaining()) }
        })
        .await;
        assert!(holders(&nodes, &guard).await >= majority(size));
        drop(guard);
        assert_nothing_left(&ours, &nodes).await;
    }
}

#[tokio::test]
async fn waiter_gets_the_lock_of_a_crashed_holder() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    for node in nodes.iter() {
        node.inspect().command::<()>(&["SET", KEY, "crashed", "PX", "100"]).await;
    }
    let guard = manager.acquire(LockRequest::new(KEY).wait(PATIENCE)).await.unwrap();
    assert!(guard.is_held());
    drop(guard);
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn timed_out_wait_lasts_exactly_its_limit() {
    // Defect 7.
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let guard = manager.acquire(KEY).await.unwrap();
    let wait = Duration::from_millis(100);
    let begun = Instant::now();
    let error = manager.acquire(LockRequest::new(KEY).wait(wait)).await.unwrap_err();
    let elapsed = begun.elapsed();
    let LockError::TimedOut { waited, .. } = error else { panic!("{error:?}") };
    assert!(waited <= elapsed && waited + Duration::from_millis(2) >= wait, "{waited:?} of {elapsed:?}");
    drop(guard);
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn no_wait_is_one_try() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
        let guard = acquired_everywhere(&theirs, &nodes, KEY).await;
        // A lock that this process holds is known without a command.
        for (manager, tries) in [(&ours, 2), (&theirs, 0)] {
            let before = nodes[0].inspect().calls("set").await;
            for request in [LockRequest::new(KEY).wait(Wait::None), LockRequest::new(KEY).wait(Duration::ZERO)] {
                let error = manager.acquire(request).await.unwrap_err();
                assert!(matches!(error, LockError::Contended { .. }), "{error:?}");
            }
            crate::support::barrier(&nodes).await;
            assert_eq!(nodes[0].inspect().calls("set").await, before + tries);
        }
        drop(guard);
        assert_nothing_left(&ours, &nodes).await;
        assert_nothing_left(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn uncontended_lock_takes_two_commands_per_node() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    wait_until_settings_are_left(&nodes).await;
    for node in nodes.iter() {
        node.inspect().command::<()>(&["CONFIG", "RESETSTAT"]).await;
    }
    manager.acquire(KEY).await.unwrap().release().await.unwrap();
    assert_nothing_left(&manager, &nodes).await;
    for node in nodes.iter() {
        let inspect = node.inspect();
        assert_eq!((inspect.calls("set").await, inspect.calls("evalsha").await), (1, 1));
        // Only the script's own comparison and deletion.
        assert_eq!((inspect.calls("get").await, inspect.calls("del").await), (1, 1));
        for queue in ["zcard", "zrange", "zrem", "zpopmin"] {
            assert_eq!(inspect.calls(queue).await, 0, "{queue}");
        }
    }
}
