//! Permits that are handed from call to call of a process, without a command.

use super::entering::wait_until_in_line;
use super::{KEY, TTL, brief, permit};
use crate::support::{BRIEF, assert_nothing_left, manager, polled};
use crate::waiters::{Waiting, assert_all_gone, managers, obtained, reset_counts, waiting};
use redlock_runtime::{LockError, LockGuard, LockManager, Wait};
use redlock_tests::{Nodes, PATIENCE, eventually, eventually_eq};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;
use tokio::task::yield_now;

/// Queues `many` calls of `manager`, one behind the other.
async fn line_up(manager: &LockManager, permits: u32, many: usize) -> VecDeque<Waiting> {
    let mut calls = VecDeque::new();
    for _ in 0..many {
        calls.push_back(waiting(manager, permit(permits)));
        // The test has one thread, so the call is queued when this task runs again.
        yield_now().await;
    }
    calls
}

/// Returns the number of scripts that all nodes have run.
async fn scripts(nodes: &Nodes) -> u64 {
    let mut sum = 0;
    for node in nodes.iter() {
        sum += node.inspect().calls("evalsha").await;
    }
    sum
}

/// Releases the permit of `held` to the next call in `line`.
async fn pass(held: LockGuard, line: &mut VecDeque<Waiting>) -> LockGuard {
    drop(held);
    obtained(line.pop_front().expect("somebody waits")).await
}

/// Hands permits over until a hand-over costs no command. From then on, the first call in the queue knows the holders, and hears of
/// others.
async fn settled(nodes: &Nodes, mut held: LockGuard, line: &mut VecDeque<Waiting>) -> LockGuard {
    let mut before = scripts(nodes).await;
    loop {
        held = pass(held, line).await;
        let after = scripts(nodes).await;
        if after == before {
            return held;
        }
        before = after;
    }
}

#[tokio::test]
async fn local_permit_hand_offs_are_in_order_and_need_no_command() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let manager = manager(&nodes).await;
        let other = manager.acquire(permit(2)).await.unwrap();
        let held = manager.acquire(permit(2)).await.unwrap();
        let mut line = line_up(&manager, 2, 240).await;
        let mut held = settled(&nodes, held, &mut line).await;
        assert!(line.len() > 100, "{} are left of the line", line.len());
        reset_counts(&nodes).await;
        let token = *held.token();
        for _ in 0..100 {
            held = pass(held, &mut line).await;
        }
        assert_eq!(*held.token(), token, "{size} nodes");
        // Now and then, the first call in the queue asks for the holders.
        let scripts = scripts(&nodes).await;
        assert!(scripts < 50, "{scripts} scripts for 100 permits at {size} nodes");
        assert!(line.iter().all(|call| !call.is_finished()), "{size} nodes: nobody overtakes");
        line.iter().for_each(Waiting::abort);
        drop((other, held, line));
        assert_all_gone(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn local_permit_hand_offs_yield_to_a_remote_waiter() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
        let mut held = VecDeque::from([ours.acquire(permit(2)).await.unwrap()]);
        let second = ours.acquire(permit(2)).await.unwrap();
        let mut line = line_up(&ours, 2, 600).await;
        held.push_back(settled(&nodes, second, &mut line).await);
        let mut bodies = Vec::new();
        for _ in 0..5 {
            bodies.push(bodies_before(waiting(&theirs, permit(2)), &nodes, &mut held, &mut line).await);
        }
        // The count covers both permits. Before the manager hears of the other waiter, it hands over more, for example on a busy machine.
        assert!(*bodies.iter().min().unwrap() <= 4, "{bodies:?} at {size} nodes");
        line.iter().for_each(Waiting::abort);
        drop((held, line));
        assert_all_gone(&ours, &nodes).await;
        assert_all_gone(&theirs, &nodes).await;
    }
}

/// Returns the number of bodies under the two `held` permits that end before `waiter` gets a permit.
async fn bodies_before(
    mut waiter: Waiting,
    nodes: &Nodes,
    held: &mut VecDeque<LockGuard>,
    line: &mut VecDeque<Waiting>,
) -> usize {
    wait_until_in_line(nodes, 1).await;
    let mut bodies = 0;
    loop {
        drop(held.pop_front());
        bodies += 1;
        // The permit goes to either of them.
        let first = line.front_mut().expect("somebody waits");
        tokio::select! {
            entered = &mut waiter => {
                held.push_back(entered.unwrap().unwrap());
                return bodies;
            }
            next = first => {
                line.pop_front();
                held.push_back(next.unwrap().unwrap());
            }
        }
    }
}

#[tokio::test]
async fn permit_handed_off_to_a_dropped_call_goes_to_the_next() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let held = manager.acquire(permit(1)).await.unwrap();
    let mut line = line_up(&manager, 1, 100).await;
    let held = settled(&nodes, held, &mut line).await;
    let token = *held.token();
    // The permit is handed to this call, which is dropped before it notices.
    drop(held);
    let dropped = line.pop_front().unwrap();
    dropped.abort();
    assert!(dropped.await.unwrap_err().is_cancelled());
    let held = obtained(line.pop_front().unwrap()).await;
    assert_eq!(*held.token(), token);
    line.iter().for_each(Waiting::abort);
    drop((held, line));
    assert_all_gone(&manager, &nodes).await;
}

#[tokio::test]
async fn local_permit_waiter_dropped_at_any_poll_leaves_no_keys() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    for polls in 1..12 {
        let held = manager.acquire(permit(1)).await.unwrap();
        let other = waiting(&manager, permit(1));
        assert!(polled(manager.acquire(permit(1)), polls).await.is_none());
        let passed = pass(held, &mut VecDeque::from([other])).await;
        let last = waiting(&manager, permit(1));
        yield_now().await;
        last.abort();
        drop(passed);
    }
    manager.acquire(permit(1)).await.unwrap().release().await.unwrap();
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn panicking_body_hands_off_its_permit() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let held = manager.acquire(permit(1)).await.unwrap();
    let mut line = line_up(&manager, 1, 50).await;
    let held = settled(&nodes, held, &mut line).await;
    let panics = tokio::spawn(async move {
        let _held = held;
        panic!("planned");
    });
    assert!(panics.await.unwrap_err().is_panic());
    let next = obtained(line.pop_front().unwrap()).await;
    assert!(next.is_held());
    line.iter().for_each(Waiting::abort);
    drop((next, line));
    assert_all_gone(&manager, &nodes).await;
}

#[tokio::test]
async fn holder_of_a_handed_off_permit_is_stopped_when_it_is_lost() {
    let nodes = Nodes::start(1).await;
    let manager = brief(&nodes).await;
    let (begun, has_begun) = oneshot::channel();
    let held = manager.acquire(permit(1)).await.unwrap();
    let mut line = line_up(&manager, 1, 30).await;
    let ours = manager.clone();
    let body = tokio::spawn(async move {
        let body = async |_: &LockGuard| {
            begun.send(()).unwrap();
            std::future::pending::<Result<(), LockError>>().await
        };
        ours.with_lock(permit(1), body).await
    });
    yield_now().await;
    let mut last = held;
    while !line.is_empty() {
        last = pass(last, &mut line).await;
    }
    drop(last);
    has_begun.await.unwrap();
    nodes[0].inspect().command::<usize>(&["DEL", KEY]).await;
    let error = body.await.unwrap().unwrap_err();
    assert!(matches!(error, LockError::Lost { .. }), "{error}");
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn permit_is_not_handed_off_to_a_call_with_a_lower_limit() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let (one, two) = (manager.acquire(permit(3)).await.unwrap(), manager.acquire(permit(3)).await.unwrap());
    let three = manager.acquire(permit(3)).await.unwrap();
    let fewer = waiting(&manager, permit(2));
    // The call holds the admission lock.
    eventually_eq(PATIENCE, "four", 4, async || nodes[0].inspect().share_count(KEY).await).await;
    drop(one);
    eventually_eq(PATIENCE, "three", 3, async || nodes[0].inspect().share_count(KEY).await).await;
    assert!(!fewer.is_finished());
    drop(two);
    drop((obtained(fewer).await, three));
    assert_all_gone(&manager, &nodes).await;
}

#[tokio::test]
async fn permit_with_min_hold_is_not_handed_off() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let limited = || permit(1).min_hold(TTL);
    let begun = std::time::Instant::now();
    let held = manager.acquire(limited()).await.unwrap();
    let token = *held.token();
    let next = waiting(&manager, limited());
    eventually_eq(PATIENCE, "two", 2, async || nodes[0].inspect().share_count(KEY).await).await;
    drop(held);
    let next = obtained(next).await;
    assert_ne!(*next.token(), token);
    assert!(begun.elapsed() + std::time::Duration::from_millis(20) >= TTL, "{:?}", begun.elapsed());
    drop(next);
    eventually(PATIENCE, "its time is over", async || {
        let left = nodes[0].inspect().share_count(KEY).await;
        if left == 0 { Ok(()) } else { Err(left) }
    })
    .await;
}

#[tokio::test]
async fn shutdown_ends_local_permit_waiters_and_leaves_no_keys() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let held = manager.acquire(permit(1)).await.unwrap();
    let mut line = line_up(&manager, 1, 60).await;
    let held = settled(&nodes, held, &mut line).await;
    let closing = tokio::spawn({
        let manager = manager.clone();
        async move { manager.shutdown().await }
    });
    for call in line {
        assert!(matches!(call.await.unwrap(), Err(LockError::Closed)));
    }
    drop(held);
    closing.await.unwrap();
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn permit_handed_off_before_a_shutdown_is_released() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let manager = manager(&nodes).await;
        let held = manager.acquire(permit(1)).await.unwrap();
        let mut line = line_up(&manager, 1, 60).await;
        let held = settled(&nodes, held, &mut line).await;
        // The permit is handed to the next call, which is polled only during the shutdown.
        drop(held);
        assert!(manager.shutdown().await);
        for call in line {
            assert!(matches!(call.await.unwrap(), Err(LockError::Closed)), "{size} nodes");
        }
        assert_nothing_left(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn non_waiting_permit_call_uses_the_current_count() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let manager = manager(&nodes).await;
        let (one, two) = (manager.acquire(permit(2)).await.unwrap(), manager.acquire(permit(2)).await.unwrap());
        let mut line = line_up(&manager, 2, 1).await;
        eventually_eq(PATIENCE, "three", 3, async || nodes[0].inspect().share_count(KEY).await).await;
        let tries = waiting(&manager, permit(2).wait(Wait::None));
        yield_now().await;
        // The first permit goes to the waiter. The second one stays free until the next call in the admission lock asks.
        drop(one);
        drop(two);
        let passed = obtained(line.pop_front().unwrap()).await;
        drop((obtained(tries).await, passed));
        assert_all_gone(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn permit_is_not_handed_off_past_an_earlier_min_hold_waiter() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let held = manager.acquire(permit(1)).await.unwrap();
    let kept = waiting(&manager, permit(1).min_hold(BRIEF));
    eventually_eq(PATIENCE, "two", 2, async || nodes[0].inspect().share_count(KEY).await).await;
    let line = line_up(&manager, 1, 50).await;
    drop(held);
    let kept = obtained(kept).await;
    assert!(line.iter().all(|call| !call.is_finished()));
    drop(kept);
    let mut line = line;
    drop(obtained(line.pop_front().unwrap()).await);
    line.iter().for_each(Waiting::abort);
    drop(line);
    assert_all_gone(&manager, &nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permit_limits_hold_on_many_threads() {
    const CALLS: usize = 300;
    const MOST_PERMITS: u32 = 4;
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    // Limits of the calls that are inside. A call may be admitted between the end of another acquisition and its entry here. So only the
    // largest limit applies to all of them.
    let inside = Arc::new(Mutex::new(Vec::new()));
    let workers = (1..=2 * MOST_PERMITS).map(|worker| {
        let (manager, inside) = (manager.clone(), Arc::clone(&inside));
        tokio::spawn(async move {
            for call in 0..CALLS {
                let permits = 1 + (worker + u32::try_from(call).unwrap()) % MOST_PERMITS;
                let held = manager.acquire(permit(permits)).await.unwrap();
                {
                    let mut inside = inside.lock().unwrap();
                    inside.push(permits);
                    assert!(inside.len() <= *inside.iter().max().unwrap() as usize, "{inside:?}");
                }
                yield_now().await;
                {
                    let mut inside = inside.lock().unwrap();
                    let at = inside.iter().position(|other| *other == permits).unwrap();
                    inside.swap_remove(at);
                }
                drop(held);
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.unwrap();
    }
    assert_all_gone(&manager, &nodes).await;
}
