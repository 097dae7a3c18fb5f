//! Locks that one worker detaches and another one attaches.

use crate::support::{
    BRIEF, acquired_everywhere, assert_nothing_left, builder, connected, holders, majority, manager, polled,
    wait_until_queued, warnings,
};
use crate::waiters::{obtained, patient, queue_of, waiting};
use redlock_runtime::{LockError, LockManager, LockRequest, NodeError};
use redlock_tests::{Nodes, PATIENCE, Proxy, RedisServer, eventually, eventually_eq};
use std::time::Duration;

const KEY: &str = "order:7";
/// Short enough to wait for its end, and long enough that a renewed lock survives a pause of one second.
const TTL: Duration = Duration::from_secs(2);

async fn brief(nodes: &Nodes) -> LockManager {
    connected(builder(nodes.urls()).node_timeout(BRIEF).default_ttl(TTL), nodes).await
}

/// Returns the text of a detached lock that every node holds.
async fn left(manager: &LockManager, nodes: &Nodes) -> String {
    acquired_everywhere(manager, nodes, KEY).await.detach().to_string()
}

/// Opens the channels of `manager`, and waits until it has received their messages.
async fn all_heard(manager: &LockManager) {
    assert!(warnings(&manager.check().await).is_empty());
}

#[tokio::test]
async fn attaching_worker_holds_the_lock_with_a_new_token() {
    for size in [1, 3, 5] {
        let nodes = Nodes::start(size).await;
        let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
        let guard = acquired_everywhere(&ours, &nodes, KEY).await;
        let token = *guard.token();
        let message = guard.detach().to_string();
        let taken_up = theirs.attach(message.parse().unwrap()).await.unwrap();
        assert_ne!(*taken_up.token(), token);
        eventually_eq(PATIENCE, "held everywhere", size, async || holders(&nodes, &taken_up).await).await;
        nodes.assert_no_mention(PATIENCE, token.as_str()).await;
        taken_up.release().await.unwrap();
        let error = theirs.attach(message.parse().unwrap()).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"order:7\" cannot be attached: another worker has attached it, or its lease has ended"
        );
        assert_nothing_left(&ours, &nodes).await;
        assert_nothing_left(&theirs, &nodes).await;
    }
}

/// The claims of a hand-over last for a second only, and are confirmed later than this call detaches its lock.
#[tokio::test]
async fn lock_detached_right_after_a_hand_over_lasts_for_its_ttl() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
        let held = acquired_everywhere(&theirs, &nodes, KEY).await;
        let call = waiting(&ours, patient(KEY));
        wait_until_queued(&nodes, KEY, 1).await;
        held.release().await.unwrap();
        let message = obtained(call).await.detach().to_string();
        eventually(PATIENCE, "a majority stores it for longer than a claim", async || {
            let mut left = Vec::new();
            for node in nodes.iter() {
                left.push(node.inspect().pttl(KEY).await);
            }
            let long = left.iter().filter(|left| **left > 2000).count();
            if long >= majority(size) { Ok(()) } else { Err(left) }
        })
        .await;
        theirs.attach(message.parse().unwrap()).await.unwrap().release().await.unwrap();
        assert_nothing_left(&ours, &nodes).await;
        assert_nothing_left(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn attached_lock_is_renewed_beyond_its_ttl_despite_waiters() {
    let nodes = Nodes::start(3).await;
    let (ours, theirs) = (brief(&nodes).await, brief(&nodes).await);
    let message = ours.acquire(KEY).await.unwrap().detach().to_string();
    let taken_up = theirs.attach(message.parse().unwrap()).await.unwrap();
    let error = ours.acquire(LockRequest::new(KEY).wait(3 * TTL)).await.unwrap_err();
    assert!(matches!(error, LockError::TimedOut { .. }), "{error:?}");
    taken_up.ensure_held().unwrap();
    assert!(holders(&nodes, &taken_up).await >= 2);
    taken_up.release().await.unwrap();
    assert_nothing_left(&ours, &nodes).await;
    assert_nothing_left(&theirs, &nodes).await;
}

#[tokio::test]
async fn detaching_process_does_not_release_the_lock_for_waiters() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let managers = [manager(&nodes).await, manager(&nodes).await, manager(&nodes).await];
        let [ours, theirs, others] = &managers;
        all_heard(ours).await;
        let message = left(ours, &nodes).await;
        let waiter = waiting(others, patient(KEY));
        wait_until_queued(&nodes, KEY, 1).await;
        // The nodes have reported the waiter before they answer this.
        all_heard(ours).await;
        let taken_up = theirs.attach(message.parse().unwrap()).await.unwrap();
        eventually_eq(PATIENCE, "held everywhere", size, async || holders(&nodes, &taken_up).await).await;
        assert!(!waiter.is_finished());
        taken_up.release().await.unwrap();
        obtained(waiter).await.release().await.unwrap();
        for manager in &managers {
            assert_nothing_left(manager, &nodes).await;
        }
    }
}

#[tokio::test]
async fn attaching_process_yields_the_lock_to_remote_waiters() {
    for is_waited_for_before in [true, false] {
        let nodes = Nodes::start(3).await;
        let (ours, others) = (manager(&nodes).await, manager(&nodes).await);
        let theirs =
            connected(builder(nodes.urls()).tuning(|tuning| tuning.local_handover(0, Duration::ZERO)), &nodes).await;
        let message = left(&ours, &nodes).await;
        let early = is_waited_for_before.then(|| waiting(&others, patient(KEY)));
        wait_until_queued(&nodes, KEY, usize::from(is_waited_for_before)).await;
        let taken_up = theirs.attach(message.parse().unwrap()).await.unwrap();
        all_heard(&theirs).await;
        let local = waiting(&theirs, patient(KEY));
        tokio::task::yield_now().await;
        let remote = early.unwrap_or_else(|| waiting(&others, patient(KEY)));
        wait_until_queued(&nodes, KEY, 1).await;
        all_heard(&theirs).await;
        taken_up.release().await.unwrap();
        let first = obtained(remote).await;
        assert!(!local.is_finished());
        first.release().await.unwrap();
        obtained(local).await.release().await.unwrap();
        assert_nothing_left(&theirs, &nodes).await;
        assert_nothing_left(&others, &nodes).await;
    }
}

#[tokio::test]
async fn attach_releases_the_remaining_keys_of_a_detached_set() {
    for (size, is_attached) in [(1, false), (3, true)] {
        let nodes = Nodes::start(size).await;
        let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
        let guard = ours.acquire(LockRequest::all(["order:7", "order:8"])).await.unwrap();
        let held = async || {
            let mut held = 0;
            for node in nodes.iter() {
                held += node.inspect().command::<usize>(&["EXISTS", "order:7", "order:8"]).await;
            }
            held
        };
        eventually_eq(PATIENCE, "every node holds both keys", 2 * size, held).await;
        let (token, message) = (*guard.token(), guard.detach().to_string());
        let deleted = nodes[0].inspect().command::<i64>(&["DEL", "order:8"]).await;
        assert_eq!(deleted, 1, "by another program");
        let attached = theirs.attach(message.parse().unwrap()).await;
        assert_eq!(attached.is_ok(), is_attached, "{attached:?}");
        nodes.assert_no_mention(PATIENCE, token.as_str()).await;
    }
}

#[tokio::test]
async fn attach_fails_after_the_ttl() {
    let nodes = Nodes::start(3).await;
    let (ours, theirs) = (brief(&nodes).await, brief(&nodes).await);
    let message = left(&ours, &nodes).await;
    nodes.assert_empty(PATIENCE).await;
    let error = theirs.attach(message.parse().unwrap()).await.unwrap_err();
    assert!(matches!(error, LockError::Lost { .. }), "{error:?}");
    assert_nothing_left(&theirs, &nodes).await;
}

#[tokio::test]
async fn node_unreachable_at_attach_is_won_back_by_a_renewal() {
    let nodes = Nodes::start(3).await;
    let proxies = nodes.proxied().await;
    let through = |urls: Vec<String>| builder(urls).node_timeout(BRIEF).default_ttl(5 * TTL);
    let ours = connected(through(nodes.urls()), &nodes).await;
    let theirs = connected(through(proxies.iter().map(Proxy::url).collect()), &nodes).await;
    proxies[0].refuse(true).await;
    proxies[0].cut().await;
    eventually_eq(PATIENCE, "it is known to be down", true, async || {
        matches!(theirs.check().await.nodes[0].error, Some(NodeError::Unreachable(_)))
    })
    .await;
    let message = left(&ours, &nodes).await;
    let taken_up = theirs.attach(message.parse().unwrap()).await.unwrap();
    assert_eq!(holders(&nodes, &taken_up).await, 2);
    proxies[0].refuse(false).await;
    // An extension would never create the lock there.
    eventually_eq(PATIENCE, "held everywhere", 3, async || holders(&nodes, &taken_up).await).await;
    taken_up.release().await.unwrap();
    assert_nothing_left(&theirs, &nodes).await;
}

#[tokio::test]
async fn attach_that_failed_on_a_frozen_majority_is_released_after_the_thaw() {
    for size in [1, 3, 5] {
        let nodes = Nodes::start(size).await;
        let ours = manager(&nodes).await;
        let theirs = connected(builder(nodes.urls()).node_timeout(BRIEF), &nodes).await;
        let message = left(&ours, &nodes).await;
        nodes[..majority(size)].iter().for_each(RedisServer::freeze);
        let error = theirs.attach(message.parse().unwrap()).await.unwrap_err();
        let causes = crate::support::causes(&error);
        assert!(causes.iter().all(|(_, cause)| **cause == NodeError::TimedOut(BRIEF)), "{error:?}");
        // On a busy machine, the other nodes may be late as well.
        assert!(causes.len() >= majority(size), "{error:?}");
        nodes[..majority(size)].iter().for_each(RedisServer::thaw);
        // A release follows each adoption that arrives late.
        assert_nothing_left(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn attach_dropped_at_any_poll_releases_the_lock() {
    let nodes = Nodes::start(3).await;
    let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
    for polls in 1..6 {
        let message = left(&ours, &nodes).await;
        let guard = polled(theirs.attach(message.parse().unwrap()), polls).await;
        assert!(polls > 1 || guard.is_none(), "nobody answers at once");
        drop(guard);
        nodes.assert_empty(PATIENCE).await;
    }
    assert_nothing_left(&theirs, &nodes).await;
}

#[tokio::test]
async fn detach_of_a_released_guard_yields_nothing_to_attach() {
    let nodes = Nodes::start(1).await;
    let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
    let guard = ours.acquire(KEY).await.unwrap();
    let waiting = waiting(&ours, patient(KEY));
    tokio::task::yield_now().await;
    guard.release().await.unwrap();
    let heir = obtained(waiting).await;
    assert_eq!(heir.token(), guard.token(), "it was passed on");
    let message = guard.detach().to_string();
    let error = theirs.attach(message.parse().unwrap()).await.unwrap_err();
    assert!(matches!(error, LockError::Lost { .. }), "{error:?}");
    heir.release().await.expect("it is still there");
    assert_nothing_left(&theirs, &nodes).await;
}

#[tokio::test]
async fn detach_leaves_the_queues_of_nodes_not_held() {
    let nodes = Nodes::start(3).await;
    let (ours, others) = (manager(&nodes).await, manager(&nodes).await);
    let held = acquired_everywhere(&others, &nodes, KEY).await;
    let call = waiting(&ours, patient(KEY));
    wait_until_queued(&nodes, KEY, 1).await;
    // Another program has taken this node, so we hold the others and wait there.
    nodes[2].inspect().command::<()>(&["SET", KEY, "another", "PX", "60000"]).await;
    drop(held);
    let guard = obtained(call).await;
    let waits = async || nodes[2].inspect().command::<usize>(&["EXISTS", &queue_of(KEY)]).await;
    assert_eq!(waits().await, 1);
    let detached = guard.detach();
    eventually_eq(PATIENCE, "out of the queue", 0, waits).await;
    let taken_up = others.attach(detached).await.unwrap();
    nodes[2].inspect().command::<()>(&["DEL", KEY]).await;
    drop(taken_up);
    assert_nothing_left(&others, &nodes).await;
    assert_nothing_left(&ours, &nodes).await;
}
