//! Compatible and incompatible holders: readers, writers, other programs, and nested calls.

use super::{KEY, reader, writer};
use crate::support::{
    SHORT_WAIT, SIZES, acquired_everywhere, assert_nothing_left, barrier, causes, holders, majority, manager,
};
use crate::waiters::{assert_all_gone, managers, obtained, queue_of, waiting};
use redlock_runtime::__private::hold;
use redlock_runtime::{LockError, LockGuard, LockRequest, LossCause, Mode, NodeError, Wait};
use redlock_tests::{Nodes, PATIENCE, eventually, redis_cli};
use std::time::Duration;
use tokio::time::timeout;

#[tokio::test]
async fn readers_share_the_lock_and_a_writer_is_exclusive() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
        let guards = [
            ours.acquire(reader()).await.unwrap(),
            ours.acquire(reader()).await.unwrap(),
            theirs.acquire(reader()).await.unwrap(),
            theirs.try_acquire(LockRequest::shared(KEY)).await.unwrap(),
        ];
        for guard in &guards {
            assert!(guard.is_held() && guard.mode() == Mode::Shared);
            assert!(holders(&nodes, guard).await >= majority(size));
        }
        for manager in [&ours, &theirs] {
            let error = manager.try_acquire(KEY).await.unwrap_err();
            assert!(matches!(error, LockError::Contended { .. }), "{error:?}");
        }
        for guard in guards {
            let error = theirs.try_acquire(KEY).await.unwrap_err();
            assert!(error.is_contended(), "as long as one of them is left: {error:?}");
            guard.release().await.unwrap();
        }
        let alone = theirs.try_acquire(KEY).await.unwrap();
        assert_eq!(alone.mode(), Mode::Exclusive);
        for manager in [&ours, &theirs] {
            let error = manager.try_acquire(LockRequest::shared(KEY)).await.unwrap_err();
            assert!(matches!(error, LockError::Contended { .. }), "{error:?}");
        }
        alone.release().await.unwrap();
        assert_nothing_left(&ours, &nodes).await;
        assert_nothing_left(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn shared_locks_work_for_unusual_keys() {
    let long = "x".repeat(1024);
    let keys = ["{", "}", "{}", "a}b", "order:{7}", "a b", "\n", "\0", "granted x y", "ключ:7", "🔒", "'\"\\", &long];
    let nodes = Nodes::start(1).await;
    let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
    for key in keys {
        let held = ours.acquire(LockRequest::shared(key)).await.unwrap();
        let other = theirs.acquire(LockRequest::shared(key)).await.unwrap();
        let call = waiting(&theirs, crate::waiters::patient(key));
        assert_eq!(held.key().as_str(), key);
        drop((held, other));
        let alone = obtained(call).await;
        assert_eq!((alone.key().as_str(), alone.mode()), (key, Mode::Exclusive));
        alone.release().await.unwrap();
    }
    assert_all_gone(&ours, &nodes).await;
}

const SET: [&str; 6] = ["SET", KEY, "their-token", "NX", "PX", "60000"];

#[tokio::test]
async fn readers_exclude_a_plain_set_by_redis_cli() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let manager = manager(&nodes).await;
        let first = acquired_everywhere(&manager, &nodes, LockRequest::shared(KEY)).await;
        let second = acquired_everywhere(&manager, &nodes, LockRequest::shared(KEY)).await;
        for guard in [first, second] {
            for node in nodes.iter() {
                assert_eq!(redis_cli(node, &SET).await, "", "{size} nodes");
                assert!((1..=30_000).contains(&node.inspect().pttl(KEY).await), "it expires by itself");
            }
            guard.release().await.unwrap();
        }
        assert_nothing_left(&manager, &nodes).await;
        for node in nodes.iter() {
            assert_eq!(redis_cli(node, &SET).await, "OK");
        }
    }
}

#[tokio::test]
async fn plain_set_by_redis_cli_excludes_readers() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let manager = manager(&nodes).await;
        for node in nodes.iter() {
            assert_eq!(redis_cli(node, &SET).await, "OK");
        }
        let error = manager.try_acquire(LockRequest::shared(KEY)).await.unwrap_err();
        assert!(matches!(error, LockError::Contended { .. }), "{error:?}");
        let brief = LockRequest::shared(KEY).wait(SHORT_WAIT);
        let error = manager.acquire(brief).await.unwrap_err();
        assert!(matches!(error, LockError::TimedOut { .. }), "{error:?}");
        let calls = [waiting(&manager, reader()), waiting(&manager, reader())];
        crate::support::wait_until_queued(&nodes, KEY, calls.len()).await;
        for node in nodes.iter() {
            assert_eq!(redis_cli(node, &["GET", KEY]).await, "their-token", "it is left as it is");
            assert_eq!(redis_cli(node, &["DEL", KEY]).await, "1");
        }
        // The first still has its share when the second gets one.
        let mut guards = Vec::new();
        for call in calls {
            guards.push(obtained(call).await);
        }
        assert!(guards.iter().all(LockGuard::is_held));
        drop(guards);
        assert_all_gone(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn key_that_holds_data_is_rejected_for_readers() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let data: [&[&str]; 3] =
        [&["RPUSH", KEY, "a line"], &["SET", KEY, "a value"], &["ZADD", KEY, "7", "a member of somebody else"]];
    for command in data {
        for node in nodes.iter() {
            node.inspect().command::<()>(command).await;
        }
        for request in [LockRequest::shared(KEY), reader(), writer()] {
            let error = timeout(PATIENCE, manager.acquire(request)).await.expect("nobody waits for data").unwrap_err();
            assert!(matches!(error, LockError::Refused { .. }), "{command:?}: {error:?}");
            let of_data = causes(&error).iter().filter(|(_, cause)| **cause == NodeError::HoldsData).count();
            assert!(of_data >= 2, "{command:?}: {error}");
        }
        for node in nodes.iter() {
            let kept: i64 = node.inspect().command(&["DEL", KEY]).await;
            assert_eq!(kept, 1, "{command:?}: it is still there");
        }
    }
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn nested_reader_enters_unless_a_writer_waits_between() {
    // tokio #2849, async-rwlock #2: a nested reader waits for itself, behind the writer.
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
        let outer = ours.acquire(reader()).await.unwrap();
        let nested = async |request: LockRequest| {
            let nested = timeout(PATIENCE, hold(&outer, ours.acquire(request))).await;
            nested.expect("it does not wait for itself").unwrap()
        };
        drop(nested(reader()).await.unwrap());
        drop(nested(reader().reentrant()).await.unwrap());
        let call = waiting(&theirs, writer());
        crate::support::wait_until_queued(&nodes, KEY, 1).await;
        let error = nested(reader()).await.unwrap_err();
        assert!(matches!(error, LockError::WouldDeadlock { .. }), "{size} nodes: {error:?}");
        let view = nested(reader().reentrant()).await.unwrap();
        assert_eq!((view.token(), view.mode()), (outer.token(), Mode::Shared), "in the share of its caller");
        drop((view, outer));
        obtained(call).await.release().await.unwrap();
        assert_nothing_left(&ours, &nodes).await;
        assert_nothing_left(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn nested_writer_in_the_body_of_a_reader_fails() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let outer = manager.acquire(reader()).await.unwrap();
    for request in [writer(), writer().reentrant()] {
        let nested = timeout(PATIENCE, hold(&outer, manager.acquire(request))).await;
        let error = nested.expect("two of them would wait for each other").unwrap().unwrap_err();
        assert!(matches!(error, LockError::WouldDeadlock { .. }), "{error:?}");
    }
    let error = hold(&outer, manager.try_acquire(KEY)).await.unwrap().unwrap_err();
    assert!(matches!(error, LockError::Contended { .. }), "{error:?}");
    outer.ensure_held().unwrap();
    drop(outer);
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn nested_reader_in_the_body_of_a_writer_must_be_reentrant() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let outer = manager.acquire(writer()).await.unwrap();
    let error = hold(&outer, manager.acquire(reader())).await.unwrap().unwrap_err();
    assert!(matches!(error, LockError::WouldDeadlock { .. }), "{error:?}");
    let view = hold(&outer, manager.acquire(reader().reentrant())).await.unwrap().unwrap();
    assert_eq!((view.token(), view.mode()), (outer.token(), Mode::Exclusive), "that of its caller");
    view.downgrade();
    assert_eq!(outer.mode(), Mode::Exclusive, "it is not its own to give away");
    drop((view, outer));
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn min_hold_of_a_reader_excludes_writers_but_not_readers() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
        let request = LockRequest::shared(KEY).min_hold(Duration::from_secs(2));
        let begun = std::time::Instant::now();
        ours.acquire(request).await.unwrap().release().await.unwrap();
        for manager in [&ours, &theirs] {
            let error = manager.try_acquire(KEY).await.unwrap_err();
            assert!(error.is_contended(), "{error:?}");
            manager.try_acquire(LockRequest::shared(KEY)).await.unwrap().release().await.unwrap();
        }
        theirs.acquire(writer()).await.unwrap().release().await.unwrap();
        assert!(begun.elapsed() + Duration::from_millis(50) > Duration::from_secs(2), "{:?}", begun.elapsed());
        assert_nothing_left(&ours, &nodes).await;
        assert_nothing_left(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn stuck_reader_ends_after_max_hold() {
    let nodes = Nodes::start(3).await;
    let [ours, theirs] = [super::brief(&nodes).await, super::brief(&nodes).await];
    let stuck = ours.acquire(reader().max_hold(super::TTL / 2)).await.unwrap();
    let other = ours.acquire(reader()).await.unwrap();
    assert_eq!(super::cause(stuck.lost().await), LossCause::MaxHold);
    other.ensure_held().unwrap();
    drop(other);
    // The guard is leaked: a task may hang without being dropped.
    theirs.acquire(writer()).await.unwrap().release().await.unwrap();
    drop(stuck);
    assert_nothing_left(&ours, &nodes).await;
    assert_nothing_left(&theirs, &nodes).await;
}

#[tokio::test]
async fn shared_lock_does_not_linger() {
    let nodes = Nodes::start(3).await;
    let lingering = crate::support::builder(nodes.urls()).linger(PATIENCE);
    let manager = crate::support::connected(lingering, &nodes).await;
    for _ in 0..3 {
        drop(manager.acquire(reader()).await.unwrap());
    }
    barrier(&nodes).await;
    nodes.assert_empty(PATIENCE).await;
    for node in nodes.iter() {
        assert!(!node.inspect().keys().await.contains(&queue_of(KEY)));
    }
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn sorted_set_of_another_program_is_not_changed() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    // Scores as other programs write them: small numbers, and times in seconds, milliseconds and microseconds.
    for score in ["7", "1800000000", "1800000000000", "1800000000000000"] {
        nodes[0].inspect().command::<()>(&["ZADD", KEY, score, "alice"]).await;
        nodes[0].inspect().command::<()>(&["PEXPIRE", KEY, "60000"]).await;
        for request in [LockRequest::shared(KEY), LockRequest::new(KEY)] {
            for wait in [Wait::None, Wait::For(Duration::from_millis(20))] {
                let error = manager.acquire(request.clone().wait(wait)).await.unwrap_err();
                // A short wait may end before the node has answered.
                let is_unanswered = wait != Wait::None && matches!(error, LockError::NoQuorum { .. });
                let is_refused = error.is_contended() || matches!(error, LockError::Refused { .. });
                assert!(is_refused || is_unanswered, "{score}: {error:?}");
            }
        }
        let members: Vec<String> = nodes[0].inspect().command(&["ZRANGE", KEY, "0", "-1"]).await;
        assert_eq!(members, ["alice"], "{score}");
        assert!((1..=60_000).contains(&nodes[0].inspect().pttl(KEY).await), "{score}");
        nodes[0].inspect().command::<()>(&["DEL", KEY]).await;
    }
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn key_of_readers_expires_with_the_last_reader() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let long = LockRequest::shared(KEY).ttl(Duration::from_secs(30));
    let kept = long.clone().min_hold(Duration::from_millis(300));
    manager.acquire(kept).await.unwrap().release().await.unwrap();
    let left = nodes[0].inspect().pttl(KEY).await;
    assert!(left <= 300, "{left}");
    eventually(PATIENCE, "a plain SET has it", async || {
        let set: Option<String> = nodes[0].inspect().command(&["SET", KEY, "theirs", "NX", "PX", "60000"]).await;
        set.ok_or("it is taken")
    })
    .await;
    nodes[0].inspect().command::<()>(&["DEL", KEY]).await;
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn shared_lock_is_released_despite_a_foreign_key_at_the_queue_name() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let queue = format!("{{{KEY}}}:q");
    nodes[0].inspect().command::<()>(&["SET", &queue, "a text", "PX", "60000"]).await;
    for request in [LockRequest::shared(KEY), LockRequest::new(KEY)] {
        manager.try_acquire(request).await.unwrap().release().await.unwrap();
        assert_eq!(nodes[0].inspect().get(KEY).await, None);
    }
    nodes[0].inspect().command::<()>(&["DEL", &queue]).await;
    assert_nothing_left(&manager, &nodes).await;
}
