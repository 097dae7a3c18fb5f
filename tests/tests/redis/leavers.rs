//! Waiters that leave the queue, in any way, do not delay others (defect 20 of peers).

use crate::support::{
    SHORT_WAIT, SIZES, acquired_everywhere, builder, connected, manager, manager_through, owner_at, wait_until_queued,
};
use crate::waiters::{
    assert_all_gone, cancelled, managers, most_scripts, obtained, patient, queue, queue_of, queue_up, reset_counts,
    wait_until_no_queue, waiting,
};
use redlock_runtime::{LockError, LockGuard, LockRequest};
use redlock_tests::{Flow, Nodes, PATIENCE, RedisServer, eventually, eventually_eq};
use std::env;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

const KEY: &str = "order:7";
const URLS: &str = "REDLOCK_TESTS_LEAVERS_URLS";
/// Token of another manager with a time in 2001: it precedes all others in every queue.
const DEAD: &str = "00e0bbba-4c00-7000-8000-000000000000@00000000000000000000000";

#[tokio::test]
async fn waiters_cancelled_anywhere_in_the_queue_leave_it_at_once() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let (holder, managers) = (manager(&nodes).await, managers(&nodes, 5).await);
        let held = acquired_everywhere(&holder, &nodes, KEY).await;
        let mut calls = queue_up(&managers, &nodes, KEY).await;
        let mut left = calls.len();
        // The last, one in the middle, and the first.
        for leaving in [4, 2, 0] {
            cancelled(calls.remove(leaving)).await;
            left -= 1;
            wait_until_queued(&nodes, KEY, left).await;
        }
        held.release().await.unwrap();
        for call in calls {
            obtained(call).await.release().await.unwrap();
        }
        assert_all_gone(&holder, &nodes).await;
    }
}

#[tokio::test]
async fn timed_out_waiter_leaves_the_queue_on_every_node() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
        let held = acquired_everywhere(&theirs, &nodes, KEY).await;
        let request = LockRequest::new(KEY).wait(SHORT_WAIT);
        let error = ours.acquire(request).await.unwrap_err();
        assert!(matches!(error, LockError::TimedOut { .. }), "{error:?}");
        wait_until_no_queue(&nodes, KEY).await;
        assert!(held.is_held());
        held.release().await.unwrap();
        assert_all_gone(&ours, &nodes).await;
    }
}

#[tokio::test]
async fn waiter_with_a_panicking_task_leaves_the_queue() {
    let nodes = Nodes::start(3).await;
    let (holder, managers) = (manager(&nodes).await, managers(&nodes, 2).await);
    let held = acquired_everywhere(&holder, &nodes, KEY).await;
    let (panics, panicking) = tokio::sync::oneshot::channel::<()>();
    let first = managers[0].clone();
    let task = tokio::spawn(async move {
        tokio::select! {
            guard = first.acquire(patient(KEY)) => drop(guard),
            _ = panicking => panic!("as the test wants it"),
        }
    });
    wait_until_queued(&nodes, KEY, 1).await;
    let second = waiting(&managers[1], patient(KEY));
    wait_until_queued(&nodes, KEY, 2).await;
    panics.send(()).unwrap();
    assert!(task.await.unwrap_err().is_panic());
    wait_until_queued(&nodes, KEY, 1).await;
    held.release().await.unwrap();
    obtained(second).await.release().await.unwrap();
    assert_all_gone(&holder, &nodes).await;
}

#[tokio::test]
async fn shutdown_of_a_manager_leaves_its_queues() {
    let nodes = Nodes::start(3).await;
    let (holder, managers) = (manager(&nodes).await, managers(&nodes, 2).await);
    let held = acquired_everywhere(&holder, &nodes, KEY).await;
    let mut calls = queue_up(&managers, &nodes, KEY).await.into_iter();
    assert!(managers[0].shutdown().await);
    let error = calls.next().unwrap().await.unwrap().unwrap_err();
    assert!(matches!(error, LockError::Closed), "{error:?}");
    wait_until_queued(&nodes, KEY, 1).await;
    held.release().await.unwrap();
    obtained(calls.next().unwrap()).await.release().await.unwrap();
    assert_all_gone(&holder, &nodes).await;
}

/// Releases the lock, and checks that the release itself skips dead waiters. An offer of a second for each of them would be too slow.
async fn released_to(nodes: &Nodes, held: LockGuard, next: &str) {
    let holder = held.token().to_string();
    held.release().await.unwrap();
    for node in nodes.iter() {
        // The release does not wait for the answers of all nodes.
        let next_owner = async || match owner_at(node, KEY).await {
            Some(owner) if owner == holder => Err(owner),
            other => Ok(other),
        };
        assert_eq!(eventually(PATIENCE, "the release is executed", next_owner).await.as_deref(), Some(next));
    }
}

async fn enqueue_the_dead(nodes: &Nodes) {
    for node in nodes.iter() {
        node.inspect().command::<()>(&["ZADD", &queue_of(KEY), "0", DEAD]).await;
    }
}

#[tokio::test]
async fn dead_process_at_the_head_of_the_queue_is_skipped() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let (holder, next) = (manager(&nodes).await, manager(&nodes).await);
        let held = acquired_everywhere(&holder, &nodes, KEY).await;
        enqueue_the_dead(&nodes).await;
        let call = waiting(&next, patient(KEY));
        wait_until_queued(&nodes, KEY, 2).await;
        let [first, second] = queue(nodes[0].inspect(), KEY).await.try_into().unwrap();
        assert_eq!(first, DEAD);
        released_to(&nodes, held, &second).await;
        obtained(call).await.release().await.unwrap();
        assert_all_gone(&holder, &nodes).await;
    }
}

/// Subscribes to every channel of `node` as a monitoring program does, until the connection is dropped.
async fn subscribed_to_all(node: &RedisServer) -> BufReader<TcpStream> {
    let mut connection = BufReader::new(TcpStream::connect(("127.0.0.1", node.port())).await.unwrap());
    connection.get_mut().write_all(b"PSUBSCRIBE *\r\n").await.unwrap();
    let mut answer = String::new();
    for _ in 0..6 {
        connection.read_line(&mut answer).await.unwrap();
    }
    assert!(answer.contains("psubscribe"), "{answer}");
    connection
}

#[tokio::test]
async fn dead_process_is_skipped_despite_a_pattern_subscriber() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let (holder, next) = (manager(&nodes).await, manager(&nodes).await);
        // First with the program, and then without it.
        for is_subscribed in [true, false] {
            let mut programs = Vec::new();
            if is_subscribed {
                for node in nodes.iter() {
                    programs.push(subscribed_to_all(node).await);
                }
            }
            let text = "other clients subscribe to patterns that match the channels of locks";
            let is_warned = async || holder.check().await.warnings().iter().filter(|told| told.contains(text)).count();
            let expected = if is_subscribed { size } else { 0 };
            eventually_eq(PATIENCE, "warnings about patterns", expected, is_warned).await;
            let held = acquired_everywhere(&holder, &nodes, KEY).await;
            enqueue_the_dead(&nodes).await;
            let call = waiting(&next, patient(KEY));
            wait_until_queued(&nodes, KEY, 2).await;
            let [_, second] = queue(nodes[0].inspect(), KEY).await.try_into().unwrap();
            released_to(&nodes, held, &second).await;
            obtained(call).await.release().await.unwrap();
            drop(programs);
        }
        assert_all_gone(&holder, &nodes).await;
    }
}

#[tokio::test]
async fn expired_lock_is_not_reserved_for_a_dead_waiter() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    enqueue_the_dead(&nodes).await;
    nodes[0].inspect().command::<()>(&["SET", KEY, "crashed", "PX", "100"]).await;
    manager.acquire(patient(KEY)).await.unwrap().release().await.unwrap();
    assert_all_gone(&manager, &nodes).await;
}

/// Starts another process that waits in the queue. It is killed, so it does not leave the queue.
async fn process_that_waits(nodes: &Nodes) -> Child {
    let mut process = Command::new(env::current_exe().unwrap());
    let name = "leavers::killed_waiting_process_is_skipped";
    process.args(["--exact", name]).env(URLS, nodes.urls().join(",")).stdout(Stdio::null());
    let process = process.kill_on_drop(true).spawn().unwrap();
    wait_until_queued(nodes, KEY, 1).await;
    process
}

#[tokio::test]
async fn killed_waiting_process_is_skipped() {
    if let Ok(urls) = env::var(URLS) {
        let manager = builder(urls.split(',')).build().unwrap();
        let _guard = manager.acquire(patient(KEY)).await;
        return;
    }
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let (holder, next) = (manager(&nodes).await, manager(&nodes).await);
        let held = acquired_everywhere(&holder, &nodes, KEY).await;
        let mut process = process_that_waits(&nodes).await;
        let call = waiting(&next, patient(KEY));
        wait_until_queued(&nodes, KEY, 2).await;
        process.kill().await.unwrap();
        for node in nodes.iter() {
            eventually_eq(PATIENCE, "its connection is gone", 2, async || node.inspect().clients().await.len()).await;
        }
        let [_, second] = queue(nodes[0].inspect(), KEY).await.try_into().unwrap();
        released_to(&nodes, held, &second).await;
        obtained(call).await.release().await.unwrap();
        assert_all_gone(&holder, &nodes).await;
    }
}

#[tokio::test]
async fn disconnected_head_of_the_queue_is_skipped_and_served_later() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let proxies = nodes.proxied().await;
        let (holder, next) = (manager(&nodes).await, manager(&nodes).await);
        let ours = manager_through(&proxies, &nodes).await;
        let held = acquired_everywhere(&holder, &nodes, KEY).await;
        let first = waiting(&ours, patient(KEY));
        wait_until_queued(&nodes, KEY, 1).await;
        let second = waiting(&next, patient(KEY));
        wait_until_queued(&nodes, KEY, 2).await;
        for proxy in &proxies {
            proxy.refuse(true).await;
            proxy.cut().await;
        }
        held.release().await.unwrap();
        obtained(second).await.release().await.unwrap();
        for proxy in &proxies {
            proxy.refuse(false).await;
        }
        obtained(first).await.release().await.unwrap();
        assert_all_gone(&ours, &nodes).await;
    }
}

#[tokio::test]
async fn lock_handed_to_a_just_dropped_waiter_goes_to_the_next() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let proxies = nodes.proxied().await;
        let (holder, next) = (manager(&nodes).await, manager(&nodes).await);
        let ours = manager_through(&proxies, &nodes).await;
        let held = acquired_everywhere(&holder, &nodes, KEY).await;
        let first = waiting(&ours, patient(KEY));
        wait_until_queued(&nodes, KEY, 1).await;
        let [token] = queue(nodes[0].inspect(), KEY).await.try_into().unwrap();
        let second = waiting(&next, patient(KEY));
        wait_until_queued(&nodes, KEY, 2).await;
        for proxy in &proxies {
            proxy.replies(Flow::Hold);
        }
        released_to(&nodes, held, &token).await;
        // The wake-up is still on its way when the call is dropped.
        cancelled(first).await;
        obtained(second).await.release().await.unwrap();
        proxies.iter().for_each(redlock_tests::Proxy::pass);
        assert_all_gone(&ours, &nodes).await;
    }
}

#[tokio::test]
async fn lock_handed_to_an_unknown_token_is_released() {
    let nodes = Nodes::start(1).await;
    let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
    let held = acquired_everywhere(&theirs, &nodes, KEY).await;
    let call = waiting(&ours, patient(KEY));
    wait_until_queued(&nodes, KEY, 1).await;
    let [token] = queue(nodes[0].inspect(), KEY).await.try_into().unwrap();
    cancelled(call).await;
    wait_until_no_queue(&nodes, KEY).await;
    // Simulates a command of that token that is executed late.
    nodes[0].inspect().command::<()>(&["ZADD", &queue_of(KEY), "0", &token]).await;
    reset_counts(&nodes).await;
    held.release().await.unwrap();
    eventually_eq(PATIENCE, "the grant is answered by a release", 2, async || most_scripts(&nodes).await).await;
    assert_all_gone(&ours, &nodes).await;
}

async fn wait_with_frozen_nodes(size: usize, frozen: usize) {
    let nodes = Nodes::start(size).await;
    let brief = builder(nodes.urls()).node_timeout(Duration::from_millis(20));
    let (holder, ours) = (manager(&nodes).await, connected(brief, &nodes).await);
    let held = acquired_everywhere(&holder, &nodes, KEY).await;
    let call = waiting(&ours, LockRequest::new(KEY).wait(Duration::from_secs(2)));
    wait_until_queued(&nodes, KEY, 1).await;
    nodes[..frozen].iter().for_each(RedisServer::freeze);
    let error = tokio::time::timeout(PATIENCE, call).await.unwrap().unwrap().unwrap_err();
    assert!(matches!(error, LockError::TimedOut { .. } | LockError::NoQuorum { .. }), "{error:?}");
    nodes[..frozen].iter().for_each(RedisServer::thaw);
    wait_until_no_queue(&nodes, KEY).await;
    held.release().await.unwrap();
    assert_all_gone(&ours, &nodes).await;
}

#[tokio::test]
async fn wait_ends_in_time_with_frozen_nodes() {
    // Defect 7: a wait that does not include the commands. With a frozen majority, it ends after about a second of silence.
    tokio::join!(wait_with_frozen_nodes(1, 1), wait_with_frozen_nodes(3, 1), wait_with_frozen_nodes(3, 2));
}
