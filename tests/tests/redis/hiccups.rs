//! Nodes that are away for less than a second: no call fails because of it, with or without a wait for holders.

use crate::support::{
    BRIEF, acquired_everywhere, asked, assert_nothing_left, builder, connected, manager_through, wait_until_asked,
};
use redlock_runtime::{LockError, LockManager, LockRequest};
use redlock_tests::{Nodes, PATIENCE, Proxy, RedisServer, eventually};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

const KEY: &str = "order:7";
/// Much longer than the node timeout, and much shorter than the second for which calls wait for silent nodes.
const HICCUP: Duration = BRIEF.saturating_mul(4);
/// Time for which a call waits for silent nodes.
const LONGEST_SILENCE: Duration = Duration::from_secs(1);
/// Number of attempts. A busy machine may make a hiccup longer than the silence, and such an attempt proves nothing.
const MOST_TRIES: usize = 5;

fn trying(manager: &LockManager, request: LockRequest) -> JoinHandle<Result<(), LockError>> {
    let manager = manager.clone();
    tokio::spawn(async move { manager.try_acquire(request).await.map(drop) })
}

/// Makes a call at the beginning of a pause of the nodes. Returns its outcome and its duration.
async fn tried_in_a_hiccup(
    manager: &LockManager,
    nodes: &Nodes,
    request: &LockRequest,
) -> (Result<(), LockError>, Duration) {
    let answered = async || manager.try_acquire("another").await.map(drop);
    eventually(PATIENCE, "the nodes answer", answered).await;
    nodes.iter().for_each(RedisServer::freeze);
    let (begun, call) = (Instant::now(), trying(manager, request.clone()));
    tokio::time::sleep(HICCUP).await;
    nodes.iter().for_each(RedisServer::thaw);
    let outcome = tokio::time::timeout(PATIENCE, call).await.unwrap().unwrap();
    (outcome, begun.elapsed())
}

#[tokio::test]
async fn non_waiting_call_survives_a_short_pause_of_the_nodes() {
    survives_nodes_that_pause(&LockRequest::new(KEY)).await;
}

#[tokio::test]
async fn non_waiting_permit_call_survives_a_short_pause_of_the_nodes() {
    survives_nodes_that_pause(&LockRequest::new(KEY).permits(1)).await;
}

async fn survives_nodes_that_pause(request: &LockRequest) {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let manager = connected(builder(nodes.urls()).node_timeout(BRIEF), &nodes).await;
        for is_held in [false, true] {
            if is_held {
                for node in nodes.iter() {
                    node.inspect().command::<()>(&["SET", KEY, "their-token", "PX", "60000"]).await;
                }
            }
            let (mut outcome, mut took) = tried_in_a_hiccup(&manager, &nodes, request).await;
            for _ in 1..MOST_TRIES {
                if took < LONGEST_SILENCE {
                    break;
                }
                (outcome, took) = tried_in_a_hiccup(&manager, &nodes, request).await;
            }
            let is_contended = matches!(outcome, Err(LockError::Contended { .. }));
            assert!(if is_held { is_contended } else { outcome.is_ok() }, "{outcome:?}");
            for node in nodes.iter() {
                node.inspect().command::<()>(&["DEL", KEY]).await;
            }
        }
        assert_nothing_left(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn non_waiting_call_survives_broken_connections() {
    let nodes = Nodes::start(3).await;
    let proxies = nodes.proxied().await;
    let manager = crate::support::manager_through(&proxies, &nodes).await;
    for _ in 0..5 {
        for proxy in &proxies {
            proxy.cut().await;
        }
        trying(&manager, LockRequest::new(KEY)).await.unwrap().unwrap();
    }
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn non_waiting_call_fails_if_the_node_stays_frozen() {
    let nodes = Nodes::start(1).await;
    let manager = connected(builder(nodes.urls()).node_timeout(BRIEF), &nodes).await;
    nodes[0].freeze();
    let outcome = tokio::time::timeout(PATIENCE, trying(&manager, LockRequest::new(KEY))).await.unwrap().unwrap();
    assert!(matches!(outcome, Err(LockError::NoQuorum { .. })), "{outcome:?}");
    nodes[0].thaw();
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn extension_and_release_tolerate_late_replies() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let proxies = nodes.proxied().await;
        let manager = connected(builder(proxies.iter().map(Proxy::url)).node_timeout(BRIEF), &nodes).await;
        let guard = acquired_everywhere(&manager, &nodes, KEY).await;
        for proxy in &proxies {
            proxy.delay(Duration::ZERO, HICCUP);
        }
        guard.extend().await.unwrap();
        guard.release().await.unwrap();
        proxies.iter().for_each(Proxy::pass);
        assert_nothing_left(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn extension_and_release_are_retried_after_broken_connections() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let proxies = nodes.proxied().await;
        let manager = manager_through(&proxies, &nodes).await;
        for releases in [false, true] {
            let guard = acquired_everywhere(&manager, &nodes, KEY).await;
            let before = asked(&proxies);
            proxies.iter().for_each(Proxy::drop_replies);
            let call = tokio::spawn(async move { if releases { guard.release().await } else { guard.extend().await } });
            // The nodes execute the command, and the answer is lost.
            wait_until_asked(&proxies, &before).await;
            for proxy in &proxies {
                proxy.refuse(true).await;
                proxy.cut().await;
                proxy.pass();
                proxy.refuse(false).await;
            }
            tokio::time::timeout(PATIENCE, call).await.unwrap().unwrap().unwrap();
        }
        assert_nothing_left(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn wait_that_ends_before_any_reply_is_timed_out() {
    let nodes = Nodes::start(1).await;
    let manager = connected(builder(nodes.urls()).node_timeout(BRIEF), &nodes).await;
    nodes[0].freeze();
    // No task is polled before the wait is over.
    let brief = Duration::from_nanos(1);
    let kinds = [
        LockRequest::new(KEY),
        LockRequest::shared(KEY),
        LockRequest::new(KEY).permits(1),
        LockRequest::all([KEY, "another"]),
    ];
    for request in kinds {
        let outcome = manager.acquire(request.wait(brief)).await;
        assert!(matches!(outcome, Err(LockError::TimedOut { .. })), "{outcome:?}");
    }
    nodes[0].thaw();
    assert_nothing_left(&manager, &nodes).await;
}
