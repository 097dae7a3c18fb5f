//! An acquisition that is dropped at any point leaves no traces (defects 3 and 4 of peers).

use crate::support::{
    GENEROUS, SIZES, acquired_everywhere, asked, assert_nothing_left, barrier, builder, holders, majority, manager,
    manager_through, polled, wait_until_asked,
};
use redlock_runtime::{LockError, LockManager, LockRequest, Mode};
use redlock_tests::{Nodes, PATIENCE};
use std::time::Duration;

const KEY: &str = "order:7";

const MODES: [Mode; 2] = [Mode::Exclusive, Mode::Shared];

fn request(mode: Mode) -> LockRequest {
    LockRequest::new(KEY).mode(mode)
}

/// More polls than any acquisition of a free lock takes.
const MOST_POLLS: usize = 200;

/// Polls `acquire` once, twice, and so on until it is done, each time with a fresh manager.
async fn drop_at_every_poll(nodes: &Nodes, mode: Mode, make: impl AsyncFn() -> LockManager) -> usize {
    for polls in 1..MOST_POLLS {
        let manager = make().await;
        let acquired = polled(manager.acquire(request(mode)), polls).await;
        let is_done = acquired.is_some();
        drop(acquired.transpose().unwrap());
        assert_nothing_left(&manager, nodes).await;
        if is_done {
            return polls;
        }
    }
    panic!("still pending after {MOST_POLLS} polls")
}

#[tokio::test]
async fn acquisition_dropped_at_any_poll_leaves_no_keys() {
    for (size, mode) in SIZES.into_iter().flat_map(|size| MODES.map(|mode| (size, mode))) {
        let nodes = Nodes::start(size).await;
        let polls = drop_at_every_poll(&nodes, mode, async || manager(&nodes).await).await;
        assert!(polls > 1, "dropped before its end at least once");
    }
}

#[tokio::test]
async fn acquisition_dropped_at_any_poll_while_connecting_leaves_no_keys() {
    for (size, mode) in SIZES.into_iter().flat_map(|size| MODES.map(|mode| (size, mode))) {
        let nodes = Nodes::start(size).await;
        let polls = drop_at_every_poll(&nodes, mode, async || builder(nodes.urls()).build().unwrap()).await;
        assert!(polls > 1, "dropped before its end at least once");
    }
}

#[tokio::test]
async fn waiter_dropped_at_any_poll_does_not_affect_the_holder() {
    for [held, wanted] in
        [[Mode::Exclusive, Mode::Exclusive], [Mode::Exclusive, Mode::Shared], [Mode::Shared, Mode::Exclusive]]
    {
        dropped_at_every_poll_of_a_wait(held, wanted).await;
    }
}

/// Drops a call for the lock as `wanted` at every poll, while another call holds it as `held`.
async fn dropped_at_every_poll_of_a_wait(held: Mode, wanted: Mode) {
    const POLLS: usize = 12;
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let holder = manager(&nodes).await;
        let mut managers = Vec::new();
        for _ in 1..POLLS {
            managers.push(manager(&nodes).await);
        }
        let held = acquired_everywhere(&holder, &nodes, request(held)).await;
        for (polls, manager) in (1..POLLS).zip(managers) {
            let dropped = polled(manager.acquire(request(wanted)), polls).await;
            assert!(dropped.is_none(), "{dropped:?}");
            assert!(manager.shutdown().await);
            barrier(&nodes).await;
            assert_eq!(holders(&nodes, &held).await, size);
        }
        held.release().await.unwrap();
        assert_nothing_left(&holder, &nodes).await;
    }
}

/// Progress of an acquisition when it is dropped.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Polled once: the commands are queued.
    Queued,
    /// Every node has the command in its socket.
    OnTheWire,
}

async fn dropped_with_frozen_nodes(size: usize, frozen: usize, stage: Stage, mode: Mode) {
    println!("{frozen} of {size} nodes frozen, {stage:?}, {mode:?}");
    let nodes = Nodes::start(size).await;
    let proxies = nodes.proxied().await;
    let manager = manager_through(&proxies, &nodes).await;
    nodes[..frozen].iter().for_each(redlock_tests::RedisServer::freeze);
    let before = asked(&proxies);
    let is_possible = size - frozen >= majority(size);
    match stage {
        Stage::Queued => assert!(polled(manager.acquire(request(mode)), 1).await.is_none()),
        Stage::OnTheWire => {
            let task = tokio::spawn({
                let manager = manager.clone();
                async move { manager.acquire(request(mode)).await }
            });
            wait_until_asked(&proxies, &before).await;
            if is_possible {
                // Dropped while the frozen minority has yet to answer.
                drop(tokio::time::timeout(GENEROUS, task).await.unwrap().unwrap().unwrap());
            } else {
                task.abort();
                assert!(task.await.unwrap_err().is_cancelled());
            }
        }
    }
    nodes[..frozen].iter().for_each(redlock_tests::RedisServer::thaw);
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn acquisition_dropped_with_frozen_nodes_leaves_no_keys_after_the_thaw() {
    for (size, frozen) in [(1, 1), (3, 1), (3, 2), (5, 2), (5, 3)] {
        for stage in [Stage::Queued, Stage::OnTheWire] {
            for mode in MODES {
                dropped_with_frozen_nodes(size, frozen, stage, mode).await;
            }
        }
    }
}

#[tokio::test]
async fn acquisition_without_a_quorum_leaves_no_keys_after_the_thaw() {
    // Defect 4: the nodes that did not answer execute the command when they thaw.
    let sizes = [(1, 1), (3, 2), (5, 3)].into_iter();
    for ((size, frozen), mode) in sizes.flat_map(|size| MODES.map(|mode| (size, mode))) {
        let nodes = Nodes::start(size).await;
        let patient = manager(&nodes).await;
        let manager = builder(nodes.urls()).node_timeout(Duration::from_millis(20)).build().unwrap();
        crate::support::wait_until_all_vote(&manager, &nodes).await;
        nodes[..frozen].iter().for_each(redlock_tests::RedisServer::freeze);
        let request = request(mode).wait(Duration::from_millis(100));
        let error = tokio::time::timeout(PATIENCE, manager.acquire(request)).await.unwrap().unwrap_err();
        assert!(matches!(error, LockError::NoQuorum { .. }), "{error:?}");
        nodes[..frozen].iter().for_each(redlock_tests::RedisServer::thaw);
        assert_nothing_left(&manager, &nodes).await;
        patient.try_acquire(KEY).await.unwrap().release().await.unwrap();
    }
}
