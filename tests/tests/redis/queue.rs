//! Waiting across managers: first come, first served, and woken by the release (defect 18 of peers).

use crate::support::{SIZES, acquired_everywhere, barrier, holders, manager, wait_until_queued};
use crate::waiters::{
    assert_all_gone, managers, most_scripts, obtained, patient, queue, queue_up, reset_counts, wait_until_no_queue,
    waiting,
};
use redlock_runtime::{LockManager, LockRequest, Wait};
use redlock_tests::{Nodes, PATIENCE, eventually, eventually_eq};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const KEY: &str = "order:7";

/// Holders in the order of their turns.
type Served = Arc<Mutex<Vec<usize>>>;

async fn serve(manager: LockManager, number: usize, served: Served) {
    let guard = manager.acquire(patient(KEY)).await.unwrap();
    served.lock().unwrap().push(number);
    guard.release().await.unwrap();
}

#[tokio::test]
async fn managers_are_served_in_order_of_arrival() {
    const MANAGERS: usize = 5;
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let (holder, managers) = (manager(&nodes).await, managers(&nodes, MANAGERS).await);
        let held = acquired_everywhere(&holder, &nodes, KEY).await;
        let (served, mut calls) = (Served::default(), JoinSet::new());
        for (number, manager) in managers.iter().enumerate() {
            calls.spawn(serve(manager.clone(), number, Arc::clone(&served)));
            wait_until_queued(&nodes, KEY, number + 1).await;
        }
        held.release().await.unwrap();
        calls.join_all().await;
        assert_eq!(*served.lock().unwrap(), (0..MANAGERS).collect::<Vec<_>>(), "{size} nodes");
        assert_all_gone(&holder, &nodes).await;
    }
}

#[tokio::test]
async fn releasing_manager_that_reacquires_is_served_last() {
    // Defect 18: only the releasing manager is awake, and wins repeatedly.
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let (holder, managers) = (manager(&nodes).await, managers(&nodes, 3).await);
        let held = acquired_everywhere(&holder, &nodes, KEY).await;
        let calls = queue_up(&managers, &nodes, KEY).await;
        // Not awaited, so the next call starts before any other task runs.
        drop(held);
        let again = waiting(&holder, patient(KEY));
        for call in calls {
            let guard = obtained(call).await;
            assert!(!again.is_finished(), "overtook {guard:?}");
            drop(guard);
        }
        obtained(again).await.release().await.unwrap();
        assert_all_gone(&holder, &nodes).await;
    }
}

#[tokio::test]
async fn contended_acquisition_takes_three_commands_per_node_and_one_more_for_a_longer_body() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
        let (mut fewest, mut shortest) = (u64::MAX, Duration::MAX);
        let before_release = async || {
            let scripts = most_scripts(&nodes).await;
            if scripts == 3 { Ok(()) } else { Err(scripts) }
        };
        // The safety poll of a second does not belong to a hand-over. It may coincide with one on a busy machine, and so may a pause of
        // the body. The last body is longer than the time after which claims are confirmed.
        for round in 0..4 {
            let key = format!("order:{round}");
            let held = acquired_everywhere(&theirs, &nodes, &key).await;
            reset_counts(&nodes).await;
            let call = waiting(&ours, patient(&key));
            wait_until_queued(&nodes, &key, 1).await;
            let released = Instant::now();
            held.release().await.unwrap();
            let guard = obtained(call).await;
            shortest = shortest.min(released.elapsed());
            if round == 3 {
                eventually(PATIENCE, "the claims are confirmed while the body runs", before_release).await;
            }
            guard.release().await.unwrap();
            nodes.assert_empty(PATIENCE).await;
            barrier(&nodes).await;
            // Counts the first try by a plain SET, and not the release by the other manager.
            fewest = fewest.min(most_scripts(&nodes).await);
        }
        assert_eq!(fewest, 3, "{size} nodes: the first try, a place in the queue, and the release");
        // Without a wake-up, the waiter would get the lock only by the safety poll.
        assert!(shortest < Duration::from_millis(500), "{shortest:?} on {size} nodes");
        assert_all_gone(&ours, &nodes).await;
    }
}

#[tokio::test]
async fn waiters_do_not_poll_while_the_lock_is_held() {
    let nodes = Nodes::start(3).await;
    let (holder, managers) = (manager(&nodes).await, managers(&nodes, 4).await);
    let held = acquired_everywhere(&holder, &nodes, KEY).await;
    let calls = queue_up(&managers, &nodes, KEY).await;
    barrier(&nodes).await;
    reset_counts(&nodes).await;
    // Peers poll every 50 ms, so they would send 24 commands in this time. If the machine pauses, two safety polls of each waiter
    // may coincide with it.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let scripts = most_scripts(&nodes).await;
    assert!(scripts <= 2 * managers.len() as u64, "{scripts} scripts");
    calls.iter().for_each(tokio::task::JoinHandle::abort);
    drop(held);
    assert_all_gone(&holder, &nodes).await;
}

#[tokio::test]
async fn release_wakes_only_one_of_sixteen_waiters() {
    // Defect 18: a broadcast makes all waiters ask again, with 120 commands for these alone.
    const WAITERS: usize = 16;
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let (holder, managers) = (manager(&nodes).await, managers(&nodes, WAITERS).await);
        let mut fewest = u64::MAX;
        // A pause of the machine during a hand-over ends claims, which costs scripts. It rarely happens in each round.
        for _ in 0..3 {
            let held = acquired_everywhere(&holder, &nodes, KEY).await;
            let calls = queue_up(&managers, &nodes, KEY).await;
            reset_counts(&nodes).await;
            held.release().await.unwrap();
            // Awaits all at once: after a pause of the machine, a later call can be served before an earlier one.
            let mut served = JoinSet::new();
            for call in calls {
                served.spawn(async move { obtained(call).await.release().await.unwrap() });
            }
            served.join_all().await;
            nodes.assert_empty(PATIENCE).await;
            fewest = fewest.min(most_scripts(&nodes).await);
        }
        // The first release, then a lease and a release for each, plus a safety poll of each.
        assert!(fewest <= 1 + 3 * WAITERS as u64, "{fewest} scripts on one of {size} nodes");
        assert_all_gone(&holder, &nodes).await;
    }
}

#[tokio::test]
async fn waiting_works_for_unusual_keys() {
    let long = "x".repeat(1024);
    let keys = ["{", "}", "{}", "a}b", "order:{7}", "a b", "\n", "\0", "granted x y", "ключ:7", "🔒", "'\"\\", &long];
    let nodes = Nodes::start(1).await;
    let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
    for key in keys {
        let held = acquired_everywhere(&theirs, &nodes, key).await;
        let call = waiting(&ours, patient(key));
        eventually(PATIENCE, "the queue is there", async || {
            let keys = nodes[0].inspect().keys().await;
            if keys.iter().any(|name| name != key && name.contains(":q")) { Ok(()) } else { Err(keys) }
        })
        .await;
        held.release().await.unwrap();
        let guard = obtained(call).await;
        assert_eq!(guard.key().as_str(), key);
        guard.release().await.unwrap();
    }
    assert_all_gone(&ours, &nodes).await;
}

#[tokio::test]
async fn hand_off_survives_a_script_flush() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let (holder, managers) = (manager(&nodes).await, managers(&nodes, 2).await);
        let held = acquired_everywhere(&holder, &nodes, KEY).await;
        let mut calls = queue_up(&managers, &nodes, KEY).await.into_iter();
        nodes.flush_scripts().await;
        held.release().await.unwrap();
        let guard = obtained(calls.next().unwrap()).await;
        nodes.flush_scripts().await;
        guard.release().await.unwrap();
        obtained(calls.next().unwrap()).await.release().await.unwrap();
        assert_all_gone(&holder, &nodes).await;
    }
}

#[tokio::test]
async fn unlimited_wait_survives_a_restart_of_the_only_node() {
    let nodes = Nodes::start(1).await;
    let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
    let held = acquired_everywhere(&theirs, &nodes, KEY).await;
    let call = waiting(&ours, LockRequest::new(KEY).wait(Wait::Forever));
    wait_until_queued(&nodes, KEY, 1).await;
    nodes[0].restart_empty().await;
    // The node has forgotten the holder, too: that is the price of a single node.
    let guard = obtained(call).await;
    assert_eq!(holders(&nodes, &guard).await, 1);
    drop((guard, held));
    assert_all_gone(&ours, &nodes).await;
}

#[tokio::test]
async fn safety_poll_restores_an_expired_queue_entry() {
    // A queue lives for 30 s after the last entry. Every safety poll enters again.
    let nodes = Nodes::start(1).await;
    let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
    let held = acquired_everywhere(&theirs, &nodes, KEY).await;
    let call = waiting(&ours, patient(KEY));
    wait_until_queued(&nodes, KEY, 1).await;
    let before = queue(nodes[0].inspect(), KEY).await;
    nodes[0].inspect().command::<()>(&["PEXPIRE", "{order:7}:q", "1"]).await;
    wait_until_no_queue(&nodes, KEY).await;
    wait_until_queued(&nodes, KEY, 1).await;
    eventually_eq(PATIENCE, "it is the same one", before, async || queue(nodes[0].inspect(), KEY).await).await;
    held.release().await.unwrap();
    obtained(call).await.release().await.unwrap();
    assert_all_gone(&ours, &nodes).await;
}

#[tokio::test]
async fn full_server_still_hands_off_a_lock() {
    let nodes = Nodes::start(1).await;
    let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
    let held = theirs.acquire(KEY).await.unwrap();
    let waiting = tokio::spawn(async move { ours.acquire(LockRequest::new(KEY).wait(PATIENCE)).await });
    wait_until_queued(&nodes, KEY, 1).await;
    nodes[0].inspect().command::<()>(&["CONFIG", "SET", "maxmemory", "1"]).await;
    held.release().await.unwrap();
    waiting.await.unwrap().unwrap().release().await.unwrap();
}
