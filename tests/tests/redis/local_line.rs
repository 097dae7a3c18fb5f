//! Waiting inside one manager: in a local queue in memory, without a command between one call and the next.

use crate::support::{SIZES, acquired_everywhere, barrier, builder, connected, manager, wait_until_queued};
use crate::waiters::{
    Waiting, assert_all_gone, cancelled, line_up, most_scripts, obtained, patient, queue, reset_counts,
    wait_until_no_queue, waiting,
};
use redlock_runtime::{LockManager, LockRequest};
use redlock_tests::{Nodes, eventually_eq};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::{JoinSet, yield_now};

const KEY: &str = "order:7";

/// Returns the number of commands for locks at the busiest node.
async fn commands(nodes: &Nodes) -> u64 {
    barrier(nodes).await;
    most_scripts(nodes).await + nodes[0].inspect().calls("set").await
}

#[tokio::test]
async fn local_waiters_are_served_in_order_without_a_command() {
    const CALLS: usize = 50;
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let manager = manager(&nodes).await;
        let held = acquired_everywhere(&manager, &nodes, KEY).await;
        let (served, mut calls) = (Arc::new(Mutex::new(Vec::new())), JoinSet::new());
        for number in 0..CALLS {
            let (manager, served) = (manager.clone(), Arc::clone(&served));
            calls.spawn(async move {
                let guard = manager.acquire(patient(KEY)).await.unwrap();
                assert!(guard.is_held());
                served.lock().unwrap().push(number);
                // The last call keeps the lock until its commands are counted.
                (number == CALLS - 1).then_some(guard)
            });
            yield_now().await;
        }
        reset_counts(&nodes).await;
        drop(held);
        let last: Vec<_> = calls.join_all().await.into_iter().flatten().collect();
        assert_eq!(commands(&nodes).await, 0, "{CALLS} hand-overs on {size} nodes");
        assert_eq!(*served.lock().unwrap(), (0..CALLS).collect::<Vec<_>>());
        drop(last);
        assert_all_gone(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn local_hand_off_keeps_the_token_and_has_one_holder() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let held = acquired_everywhere(&manager, &nodes, KEY).await;
    let token = *held.token();
    let mut calls = line_up(&manager, KEY, 2).await.into_iter();
    // The release needs no confirmation.
    held.release().await.unwrap();
    let second = obtained(calls.next().unwrap()).await;
    let third = calls.next().unwrap();
    yield_now().await;
    assert!(!third.is_finished());
    assert_eq!(*second.token(), token);
    second.release().await.unwrap();
    let third = obtained(third).await;
    assert_eq!(*third.token(), token);
    third.release().await.unwrap();
    assert_all_gone(&manager, &nodes).await;
}

#[tokio::test]
async fn try_sends_no_command_while_a_local_call_holds_or_waits() {
    let nodes = Nodes::start(1).await;
    let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
    let held = acquired_everywhere(&theirs, &nodes, KEY).await;
    let call = waiting(&ours, patient(KEY));
    wait_until_queued(&nodes, KEY, 1).await;
    for manager in [&ours, &theirs] {
        reset_counts(&nodes).await;
        let error = manager.try_acquire(KEY).await.unwrap_err();
        assert!(error.is_contended(), "{error:?}");
        assert_eq!(commands(&nodes).await, 0);
    }
    drop(held);
    obtained(call).await.release().await.unwrap();
    assert_all_gone(&ours, &nodes).await;
}

/// Process whose calls hand the lock to each other for as long as they may.
struct Busy {
    calls: JoinSet<()>,
    is_over: Arc<AtomicBool>,
    passes: Arc<AtomicUsize>,
}

impl Busy {
    fn start(manager: &LockManager) -> Self {
        let (is_over, passes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut calls = JoinSet::new();
        for _ in 0..3 {
            let (manager, is_over, passes) = (manager.clone(), Arc::clone(&is_over), Arc::clone(&passes));
            calls.spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    let guard = manager.acquire(patient(KEY)).await.unwrap();
                    passes.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    drop(guard);
                }
            });
        }
        Self { calls, is_over, passes }
    }

    fn passes(&self) -> usize {
        self.passes.load(Ordering::Relaxed)
    }

    async fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.calls.join_all().await;
    }
}

#[tokio::test]
async fn local_hand_offs_yield_to_waiters_of_other_processes() {
    // Defect 18: the releasing process wins repeatedly, for as long as its token may be handed over: 30 s.
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
        let busy = Busy::start(&theirs);
        eventually_eq(redlock_tests::PATIENCE, "the lock goes round", true, async || busy.passes() > 10).await;
        let mut passes = Vec::new();
        for _ in 0..5 {
            let before = busy.passes();
            let guard = obtained(waiting(&ours, patient(KEY))).await;
            passes.push(busy.passes() - before);
            drop(guard);
        }
        // The limit is 16 hand-overs after the manager has learned of the waiter. That takes about a round trip, and longer on a busy
        // machine.
        assert!(passes.iter().any(|passes| *passes <= 100), "{passes:?} passes on {size} nodes");
        busy.end().await;
        assert_all_gone(&theirs, &nodes).await;
    }
}

/// Returns the number of local calls that are served before a known waiter of another manager.
async fn served_before_another(passes: u32, time: Duration) -> usize {
    let nodes = Nodes::start(1).await;
    let theirs = connected(builder(nodes.urls()).tuning(|tuning| tuning.local_handover(passes, time)), &nodes).await;
    let ours = manager(&nodes).await;
    let held = acquired_everywhere(&theirs, &nodes, KEY).await;
    let other = waiting(&ours, patient(KEY));
    wait_until_queued(&nodes, KEY, 1).await;
    let served = Arc::new(AtomicUsize::new(0));
    let mut line = JoinSet::new();
    for call in line_up(&theirs, KEY, LINE).await {
        let served = Arc::clone(&served);
        line.spawn(async move {
            let _guard = obtained(call).await;
            served.fetch_add(1, Ordering::Relaxed);
        });
    }
    // The answer reports the other waiter, in case the wake-up is late.
    held.extend().await.unwrap();
    drop(held);
    let guard = obtained(other).await;
    let before = served.load(Ordering::Relaxed);
    drop(guard);
    line.join_all().await;
    assert_all_gone(&ours, &nodes).await;
    before
}

const LINE: usize = 8;

#[tokio::test]
async fn local_handover_limits_apply() {
    const LONG: Duration = Duration::from_secs(3600);
    let table = [(0, LONG, 0), (3, LONG, 3), (u32::MAX, LONG, LINE), (u32::MAX, Duration::ZERO, 0)];
    for (passes, time, expected) in table {
        assert_eq!(served_before_another(passes, time).await, expected, "{passes} passes, {time:?}");
    }
}

#[tokio::test]
async fn cancelled_local_waiters_are_skipped() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let held = acquired_everywhere(&manager, &nodes, KEY).await;
    let mut calls = line_up(&manager, KEY, 6).await;
    let brief = waiting(&manager, LockRequest::new(KEY).wait(Duration::from_millis(30)));
    yield_now().await;
    calls.extend(line_up(&manager, KEY, 1).await);
    // The last, one in the middle, and the first.
    for leaving in [6, 3, 0] {
        cancelled(calls.remove(leaving)).await;
    }
    let error = brief.await.unwrap().unwrap_err();
    assert!(error.is_contended(), "{error:?}");
    reset_counts(&nodes).await;
    let token = *held.token();
    drop(held);
    for call in calls {
        let guard = obtained(call).await;
        assert_eq!(*guard.token(), token);
    }
    assert_all_gone(&manager, &nodes).await;
}

#[tokio::test]
async fn waiter_dropped_right_after_a_hand_off_passes_the_lock_to_the_next() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    for dropped in 1..4 {
        let held = manager.acquire(KEY).await.unwrap();
        let mut calls = line_up(&manager, KEY, 4).await;
        // Handed to the first call, while no task has run since.
        drop(held);
        calls[..dropped].iter().for_each(Waiting::abort);
        for call in calls.drain(..dropped) {
            cancelled(call).await;
        }
        for call in calls {
            drop(obtained(call).await);
        }
    }
    assert_all_gone(&manager, &nodes).await;
}

#[tokio::test]
async fn panicking_body_hands_off_the_lock() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let held = manager.acquire(KEY).await.unwrap();
    let panicking = tokio::spawn({
        let manager = manager.clone();
        async move {
            let _guard = manager.acquire(patient(KEY)).await.unwrap();
            panic!("as the test wants it");
        }
    });
    yield_now().await;
    let [call] = line_up(&manager, KEY, 1).await.try_into().unwrap();
    drop(held);
    assert!(panicking.await.unwrap_err().is_panic());
    obtained(call).await.release().await.unwrap();
    assert_all_gone(&manager, &nodes).await;
}

#[tokio::test]
async fn queue_place_is_kept_for_the_next_local_waiter() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
        let held = acquired_everywhere(&theirs, &nodes, KEY).await;
        let first = waiting(&ours, patient(KEY));
        wait_until_queued(&nodes, KEY, 1).await;
        let token = queue(nodes[0].inspect(), KEY).await;
        let [successor] = line_up(&ours, KEY, 1).await.try_into().unwrap();
        cancelled(first).await;
        barrier(&nodes).await;
        for node in nodes.iter() {
            assert_eq!(queue(node.inspect(), KEY).await, token);
        }
        held.release().await.unwrap();
        let guard = obtained(successor).await;
        assert_eq!([guard.token().as_str()], *token);
        guard.release().await.unwrap();
        assert_all_gone(&ours, &nodes).await;
    }
}

#[tokio::test]
async fn last_local_waiter_leaves_the_queue() {
    let nodes = Nodes::start(3).await;
    let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
    let held = acquired_everywhere(&theirs, &nodes, KEY).await;
    let calls = line_up(&ours, KEY, 3).await;
    wait_until_queued(&nodes, KEY, 1).await;
    for call in calls {
        cancelled(call).await;
    }
    wait_until_no_queue(&nodes, KEY).await;
    held.release().await.unwrap();
    assert_all_gone(&ours, &nodes).await;
}
