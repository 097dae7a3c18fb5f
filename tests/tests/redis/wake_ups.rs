//! Lost, late or impossible wake-ups: the lock is still handed over (defect 19 of peers).

use crate::support::{
    SIZES, acquired_everywhere, answered, asked, builder, connected, manager, manager_through, wait_until_asked,
    wait_until_queued,
};
use crate::waiters::{
    assert_all_gone, managers, most_scripts, obtained, patient, queue, queue_up, reset_counts, waiting,
};
use redlock_runtime::{LockManager, LockRequest, Mode};
use redlock_tests::{Builder, Flow, Nodes, PATIENCE, Proxy, RedisServer};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const KEY: &str = "order:7";
/// Longer than the harness waits, so a waiter does not get the lock by the end of the lease.
const LONG: Duration = Duration::from_secs(30);

/// Wake-ups arrive together with the answers in RESP3, and on a separate connection in RESP2.
const PROTOCOLS: [fn(Builder) -> Builder; 2] = [|resp3| resp3, |resp2| resp2.without_command("HELLO")];

async fn each_protocol(size: usize, scene: impl AsyncFn(Nodes)) {
    for configure in PROTOCOLS {
        scene(Nodes::start_with(size, |_, builder| configure(builder)).await).await;
    }
}

/// Request for a share that gives up long before the lease of a writer ends.
fn reader() -> LockRequest {
    patient(KEY).mode(Mode::Shared)
}

/// Gives the lock to the waiters one after the other.
async fn drain(calls: Vec<crate::waiters::Waiting>) {
    for call in calls {
        obtained(call).await.release().await.unwrap();
    }
}

#[tokio::test]
async fn waiters_are_notified_in_order_over_both_protocols() {
    for size in [1, 3] {
        each_protocol(size, async |nodes| {
            let (holder, managers) = (manager(&nodes).await, managers(&nodes, 3).await);
            let held = acquired_everywhere(&holder, &nodes, KEY).await;
            let calls = queue_up(&managers, &nodes, KEY).await;
            held.release().await.unwrap();
            drain(calls).await;
            assert_all_gone(&holder, &nodes).await;
        })
        .await;
    }
}

#[tokio::test]
async fn waiters_with_killed_connections_are_served() {
    each_protocol(3, async |nodes| {
        let (holder, managers) = (manager(&nodes).await, managers(&nodes, 3).await);
        let held = acquired_everywhere(&holder, &nodes, KEY).await;
        let calls = queue_up(&managers, &nodes, KEY).await;
        for node in nodes.iter() {
            assert!(node.inspect().kill_clients().await >= 4);
        }
        drop(held);
        // In any order: a waiter that is not reconnected at the release is skipped, and asks again.
        let mut served = JoinSet::new();
        for call in calls {
            served.spawn(async { obtained(call).await.release().await });
        }
        served.join_all().await;
        assert_all_gone(&holder, &nodes).await;
    })
    .await;
}

#[tokio::test]
async fn waiter_with_repeatedly_killed_notification_connection_is_served() {
    // Defect 19. With RESP3, wake-ups and commands have one connection.
    each_protocol(1, async |nodes| {
        let (holder, waiter) = (manager(&nodes).await, manager(&nodes).await);
        for _ in 0..5 {
            let held = acquired_everywhere(&holder, &nodes, KEY).await;
            let call = waiting(&waiter, patient(KEY));
            wait_until_queued(&nodes, KEY, 1).await;
            let kill = ["CLIENT", "KILL", "TYPE", "pubsub", "SKIPME", "yes"];
            nodes[0].inspect().command::<u64>(&kill).await;
            drop(held);
            obtained(call).await.release().await.unwrap();
        }
        assert_all_gone(&holder, &nodes).await;
    })
    .await;
}

#[tokio::test]
async fn readers_with_killed_notification_connections_are_served() {
    // Redisson #3891. A node that takes an unreceived wake-up for a received one removes the readers from the queue.
    // If they do not ask again on a new connection, they wait for the end of the writer's lease.
    for size in SIZES {
        each_protocol(size, async |nodes| {
            let (writer, managers) = (manager(&nodes).await, managers(&nodes, 2).await);
            for _ in 0..3 {
                let held = acquired_everywhere(&writer, &nodes, patient(KEY).ttl(LONG)).await;
                let calls = managers.iter().map(|manager| waiting(manager, reader().ttl(LONG))).collect();
                wait_until_queued(&nodes, KEY, managers.len()).await;
                for node in nodes.iter() {
                    let kill = ["CLIENT", "KILL", "TYPE", "pubsub", "SKIPME", "yes"];
                    assert!(node.inspect().command::<usize>(&kill).await >= managers.len());
                }
                drop(held);
                drain(calls).await;
            }
            assert_all_gone(&writer, &nodes).await;
        })
        .await;
    }
}

#[tokio::test]
async fn readers_detect_by_polling_a_writer_that_vanished_without_notification() {
    // No wake-up is sent at all: readers that rely on one, or on the end of the lease, would wait too long.
    for size in SIZES {
        each_protocol(size, async |nodes| {
            let (writer, managers) = (manager(&nodes).await, managers(&nodes, 2).await);
            let held = acquired_everywhere(&writer, &nodes, patient(KEY).ttl(LONG).without_renewal()).await;
            let calls = managers.iter().map(|manager| waiting(manager, reader().ttl(LONG))).collect();
            wait_until_queued(&nodes, KEY, managers.len()).await;
            for node in nodes.iter() {
                node.inspect().command::<usize>(&["DEL", KEY]).await;
            }
            drain(calls).await;
            drop(held);
            assert_all_gone(&writer, &nodes).await;
        })
        .await;
    }
}

/// Loses the messages to a waiter, and breaks its connections. Returns the time until it has the lock.
async fn after_a_lost_grant(
    nodes: &Nodes,
    proxies: &[Proxy],
    [holder, waiter]: [&LockManager; 2],
    request: LockRequest,
) -> Duration {
    let held = acquired_everywhere(holder, nodes, KEY).await;
    let call = waiting(waiter, request);
    wait_until_queued(nodes, KEY, 1).await;
    proxies.iter().for_each(Proxy::drop_replies);
    let lost: Vec<_> = proxies.iter().map(|proxy| proxy.traffic().replies.dropped).collect();
    held.release().await.unwrap();
    for (proxy, lost) in proxies.iter().zip(lost) {
        proxy.wait_until("the wake-up is lost", |traffic| traffic.replies.dropped > lost).await;
        proxy.cut().await;
        proxy.pass();
    }
    let cut = Instant::now();
    obtained(call).await.release().await.unwrap();
    nodes.assert_empty(PATIENCE).await;
    cut.elapsed()
}

#[tokio::test]
async fn waiter_that_lost_its_grant_with_its_connection_asks_at_once() {
    for size in [1, 3] {
        each_protocol(size, async |nodes| {
            let proxies = nodes.proxied().await;
            let managers = [&manager(&nodes).await, &manager_through(&proxies, &nodes).await];
            for request in [patient(KEY), reader()] {
                let mut shortest = Duration::MAX;
                for _ in 0..3 {
                    shortest = shortest.min(after_a_lost_grant(&nodes, &proxies, managers, request.clone()).await);
                }
                // Well before the end of the claim, which lasts a second.
                assert!(shortest < Duration::from_millis(500), "{shortest:?} on {size} nodes: {request:?}");
            }
            assert_all_gone(managers[1], &nodes).await;
        })
        .await;
    }
}

#[tokio::test]
async fn grant_without_notification_is_found_by_polling() {
    // The connection stays open without a message, an answer or an error.
    each_protocol(1, async |nodes| {
        let (holder, waiter) = (manager(&nodes).await, manager(&nodes).await);
        let held = acquired_everywhere(&holder, &nodes, KEY).await;
        let call = waiting(&waiter, patient(KEY));
        wait_until_queued(&nodes, KEY, 1).await;
        let [token] = queue(nodes[0].inspect(), KEY).await.try_into().unwrap();
        // Does the same as a hand-over, without the wake-up.
        let inspect = nodes[0].inspect();
        let pipeline = "redis.call('DEL', KEYS[2]) return redis.call('SET', KEYS[1], ARGV[1], 'PX', 1000)";
        inspect.command::<()>(&["EVAL", pipeline, "2", KEY, "{order:7}:q", &token]).await;
        obtained(call).await.release().await.unwrap();
        drop(held);
        assert_all_gone(&waiter, &nodes).await;
    })
    .await;
}

#[tokio::test]
async fn grant_for_a_dropped_token_triggers_one_release() {
    each_protocol(1, async |nodes| {
        let proxies = nodes.proxied().await;
        let (inspect, proxy) = (nodes[0].inspect(), &proxies[0]);
        let (holder, waiter) = (manager(&nodes).await, manager_through(&proxies, &nodes).await);
        let held = acquired_everywhere(&holder, &nodes, KEY).await;
        let call = waiting(&waiter, patient(KEY));
        wait_until_queued(&nodes, KEY, 1).await;
        let [token] = queue(inspect, KEY).await.try_into().unwrap();
        answered(&waiter).await;
        reset_counts(&nodes).await;
        let before = asked(&proxies);
        proxy.requests(Flow::Hold);
        call.abort();
        wait_until_asked(&proxies, &before).await;
        let told = proxy.traffic().replies.received;
        held.release().await.unwrap();
        proxy.wait_until("the claim is announced", |traffic| traffic.replies.received > told).await;
        // A reaction to the second message shows that the first one was read, even if messages have a separate connection.
        let (attempt, id) = token.split_once('@').unwrap();
        let (rest, last) = attempt.split_at(attempt.len() - 1);
        let stranger = format!("{rest}{}@{id}", u8::from(last == "0"));
        let before = asked(&proxies);
        inspect.command::<u64>(&["PUBLISH", &format!("redlock::{id}"), &format!("granted {stranger} order:9")]).await;
        wait_until_asked(&proxies, &before).await;
        proxy.pass();
        answered(&waiter).await;
        assert_eq!(most_scripts(&nodes).await, 4, "a release of each token");
        // As if a command arrived late.
        inspect.command::<()>(&["SET", KEY, &token, "PX", "600000"]).await;
        inspect.command::<u64>(&["PUBLISH", &format!("redlock::{id}"), &format!("granted {token} {KEY}")]).await;
        assert_all_gone(&waiter, &nodes).await;
    })
    .await;
}

#[tokio::test]
async fn waiters_without_notifications_poll() {
    let rules = "resetchannels ~* +@all -subscribe -publish";
    for configure in PROTOCOLS {
        let user = |builder: Builder| configure(builder).password("x").user("alice", "w0nder", rules);
        let nodes = Nodes::start_with(1, |_, builder| user(builder)).await;
        let (holder, waiter) = (manager(&nodes).await, manager(&nodes).await);
        let held = acquired_everywhere(&holder, &nodes, KEY).await;
        let call = waiting(&waiter, patient(KEY));
        wait_until_queued(&nodes, KEY, 1).await;
        held.release().await.unwrap();
        obtained(call).await.release().await.unwrap();
        assert_all_gone(&holder, &nodes).await;
    }
}

async fn subscriptions(node: &RedisServer) -> usize {
    node.inspect().command::<Vec<String>>(&["PUBSUB", "CHANNELS", "redlock:*"]).await.len()
}

async fn contended(ours: &LockManager, theirs: &LockManager, nodes: &Nodes, key: &str) {
    let held = acquired_everywhere(theirs, nodes, key).await;
    let call = waiting(ours, patient(key));
    wait_until_queued(nodes, key, 1).await;
    drop(held);
    obtained(call).await.release().await.unwrap();
}

#[tokio::test]
async fn manager_subscribes_once_and_only_while_waiting() {
    // Defect 19: a pool of subscriptions with one for each waiter would be exhausted.
    each_protocol(1, async |nodes| {
        let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
        assert_eq!(subscriptions(&nodes[0]).await, 0);
        for key in ["order:1", "order:2", "order:3"] {
            contended(&ours, &theirs, &nodes, key).await;
            assert_eq!(subscriptions(&nodes[0]).await, 1, "the holder does not listen");
        }
        assert_all_gone(&ours, &nodes).await;
    })
    .await;
}

#[tokio::test]
async fn waiting_works_with_a_frozen_minority() {
    let nodes = Nodes::start(3).await;
    let brief = || builder(nodes.urls()).node_timeout(crate::support::BRIEF);
    let managers = [connected(brief(), &nodes).await, connected(brief(), &nodes).await];
    let held = acquired_everywhere(&managers[0], &nodes, KEY).await;
    let call = waiting(&managers[1], patient(KEY));
    wait_until_queued(&nodes, KEY, 1).await;
    nodes[2].freeze();
    drop(held);
    let guard = obtained(call).await;
    assert!(guard.is_held());
    nodes[2].thaw();
    drop(guard);
    assert_all_gone(&managers[0], &nodes).await;
}
