//! Readers, with nodes that are frozen, killed or restarted empty.

use super::{KEY, TTL, brief, cause, reader, writer};
use crate::support::{
    BRIEF, SIZES, acquired_everywhere, assert_nothing_left, builder, connected, holders, majority, manager,
    manager_through, wait_until_queued,
};
use crate::waiters::{assert_all_gone, managers, obtained, waiting};
use redlock_runtime::{LockError, LockGuard, LockManager, LockRequest, LossCause};
use redlock_tests::{Nodes, PATIENCE, RedisServer, eventually, eventually_eq};
use std::future::pending;
use tokio::time::{sleep, timeout};

/// Returns the error of a reader's body that never ends by itself.
async fn stopped(manager: &LockManager, begin: impl AsyncFnOnce()) -> LockError {
    let body = async |_: &LockGuard| -> Result<(), LockError> {
        begin().await;
        pending().await
    };
    timeout(PATIENCE, manager.with_lock(reader(), body)).await.expect("the body is stopped").unwrap_err()
}

#[tokio::test]
async fn readers_and_the_next_writer_proceed_with_a_frozen_minority() {
    for (size, frozen) in [(3, 1), (5, 2)] {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = [brief(&nodes).await, brief(&nodes).await];
        let guards = [ours.acquire(reader()).await.unwrap(), theirs.acquire(reader()).await.unwrap()];
        nodes[..frozen].iter().for_each(RedisServer::freeze);
        let third = ours.acquire(reader()).await.unwrap();
        sleep(3 * TTL).await;
        assert!(guards.iter().chain([&third]).all(LockGuard::is_held), "{size} nodes");
        let call = waiting(&theirs, writer());
        drop((guards, third));
        obtained(call).await.release().await.unwrap();
        nodes[..frozen].iter().for_each(RedisServer::thaw);
        nodes.assert_empty(PATIENCE).await;
        assert_nothing_left(&ours, &nodes).await;
        assert_nothing_left(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn readers_are_stopped_on_a_frozen_majority() {
    for (size, frozen) in [(1, 1), (3, 2), (5, 3)] {
        let nodes = Nodes::start(size).await;
        let manager = brief(&nodes).await;
        let error = stopped(&manager, async || nodes[..frozen].iter().for_each(RedisServer::freeze)).await;
        let LossCause::NotRenewed { causes, .. } = cause(error) else { panic!("{size} nodes") };
        assert!(causes.len() >= frozen, "{causes:?}");
        nodes[..frozen].iter().for_each(RedisServer::thaw);
        nodes.assert_empty(PATIENCE).await;
        assert_nothing_left(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn readers_are_stopped_after_all_nodes_are_killed() {
    let nodes = Nodes::start(3).await;
    let manager = brief(&nodes).await;
    let error = stopped(&manager, async || nodes.iter().for_each(RedisServer::kill)).await;
    assert!(matches!(cause(error), LossCause::NotRenewed { .. }));
}

/// Interference of another client with the key that readers share.
#[derive(Clone, Copy, Debug)]
enum Foreign {
    Deletes,
    Overwrites,
    Replaces,
    /// Replaces the key by a sorted set without any reader's share.
    Imitates,
}

impl Foreign {
    async fn strike(self, node: &RedisServer) {
        // Atomic, because a reader that has lost its share here would win it back from a free node.
        let replace = match self {
            Self::Deletes => "return redis.call('DEL', KEYS[1])",
            Self::Overwrites => "return redis.call('SET', KEYS[1], 'another', 'PX', 60000)",
            Self::Replaces => "redis.call('DEL', KEYS[1]) return redis.call('RPUSH', KEYS[1], 'a list')",
            Self::Imitates => {
                "redis.call('DEL', KEYS[1]) redis.call('ZADD', KEYS[1], 7, 'another') \
                 return redis.call('PEXPIRE', KEYS[1], 60000)"
            }
        };
        node.inspect().command::<()>(&["EVAL", replace, "1", KEY]).await;
    }
}

#[tokio::test]
async fn readers_are_stopped_at_the_next_renewal_if_a_majority_lost_their_key() {
    for foreign in [Foreign::Deletes, Foreign::Overwrites, Foreign::Replaces, Foreign::Imitates] {
        for size in [1, 3] {
            let nodes = Nodes::start(size).await;
            let manager = brief(&nodes).await;
            let strike = async || {
                for node in &nodes[..majority(size)] {
                    foreign.strike(node).await;
                }
            };
            let error = stopped(&manager, strike).await;
            assert_eq!(cause(error), LossCause::Taken, "{foreign:?}, {size} nodes");
        }
    }
}

#[tokio::test]
async fn shared_locks_are_restored_on_a_flushed_or_restarted_node() {
    for is_restarted in [false, true] {
        let nodes = Nodes::start(3).await;
        // Short, because an abstaining node waits for the longest ttl.
        let ttl = TTL * 3 / 2;
        let brief = || builder(nodes.urls()).node_timeout(BRIEF).default_ttl(ttl).tuning(|tuning| tuning.max_ttl(ttl));
        let (ours, theirs) = (connected(brief(), &nodes).await, connected(brief(), &nodes).await);
        let stranger = connected(brief(), &nodes).await;
        let guards = [
            acquired_everywhere(&ours, &nodes, reader()).await,
            acquired_everywhere(&ours, &nodes, reader()).await,
            acquired_everywhere(&theirs, &nodes, reader()).await,
        ];
        for node in nodes.iter() {
            if is_restarted {
                node.restart_empty().await;
                // The node abstains for one `max_ttl`.
                sleep(2 * ttl).await;
            } else {
                node.inspect().flush_all().await;
            }
            for guard in &guards {
                let holders = async || (holders(&nodes, guard).await, guard.is_held());
                eventually_eq(PATIENCE, "every node has the share", (3, true), holders).await;
            }
        }
        let [one, other, last] = guards;
        drop((one, other));
        stranger.try_acquire(KEY).await.expect_err("there is one left");
        last.release().await.unwrap();
        nodes.assert_empty(PATIENCE).await;
        assert_nothing_left(&ours, &nodes).await;
        assert_nothing_left(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn flushed_node_does_not_let_a_writer_in_beside_readers() {
    let nodes = Nodes::start(3).await;
    let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
    let guards =
        [acquired_everywhere(&ours, &nodes, reader()).await, acquired_everywhere(&theirs, &nodes, reader()).await];
    nodes[0].inspect().flush_all().await;
    for manager in [&ours, &theirs] {
        let error = manager.try_acquire(KEY).await.unwrap_err();
        assert!(error.is_contended(), "{error:?}");
    }
    assert!(guards.iter().all(LockGuard::is_held));
    drop(guards);
    assert_all_gone(&ours, &nodes).await;
}

#[tokio::test]
async fn waiting_readers_and_writers_survive_broken_connections() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let proxies = nodes.proxied().await;
        let holder = manager(&nodes).await;
        let through = manager_through(&proxies, &nodes).await;
        for (held, one) in [(writer(), reader()), (reader(), writer())] {
            let held = acquired_everywhere(&holder, &nodes, held).await;
            let call = waiting(&through, one);
            wait_until_queued(&nodes, KEY, 1).await;
            for proxy in &proxies {
                proxy.cut().await;
            }
            held.release().await.unwrap();
            let guard = obtained(call).await;
            // Repeats it while the lock is held.
            for proxy in &proxies {
                proxy.cut().await;
            }
            eventually(PATIENCE, "it is extended", async || guard.extend().await).await;
            guard.release().await.unwrap();
        }
        assert_all_gone(&through, &nodes).await;
    }
}

#[tokio::test]
async fn hand_off_survives_a_script_flush() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let [holder, ours, theirs] = managers(&nodes, 3).await.try_into().unwrap();
        let held = acquired_everywhere(&holder, &nodes, KEY).await;
        let calls = [waiting(&ours, reader()), waiting(&theirs, reader())];
        wait_until_queued(&nodes, KEY, 2).await;
        nodes.flush_scripts().await;
        held.release().await.unwrap();
        for call in calls {
            let guard = obtained(call).await;
            nodes.flush_scripts().await;
            guard.release().await.unwrap();
        }
        let guard = holder.acquire(LockRequest::shared(KEY)).await.unwrap();
        nodes.flush_scripts().await;
        guard.extend().await.unwrap();
        nodes.flush_scripts().await;
        guard.downgrade();
        guard.release().await.unwrap();
        assert_all_gone(&holder, &nodes).await;
    }
}

#[tokio::test]
async fn readers_and_writers_are_served_over_resp2() {
    let nodes = Nodes::start_with(3, |_, builder| builder.without_command("HELLO")).await;
    let [holder, ours, theirs] = managers(&nodes, 3).await.try_into().unwrap();
    let held = acquired_everywhere(&holder, &nodes, KEY).await;
    let calls = [waiting(&ours, reader()), waiting(&theirs, reader())];
    wait_until_queued(&nodes, KEY, 2).await;
    held.release().await.unwrap();
    let [one, other] = calls;
    let guards = [obtained(one).await, obtained(other).await];
    let call = waiting(&holder, writer());
    wait_until_queued(&nodes, KEY, 1).await;
    assert!(guards.iter().all(LockGuard::is_held) && !call.is_finished());
    drop(guards);
    obtained(call).await.release().await.unwrap();
    assert_all_gone(&holder, &nodes).await;
}
