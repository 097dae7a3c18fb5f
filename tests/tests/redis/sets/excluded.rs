//! All keys are acquired or none, and all other calls are excluded from each of them: calls for one key, calls for several, and other
//! programs (defect 24 of peers).

use super::tree::wait_until_queued_in;
use super::{TTL, all, brief, place};
use crate::support::{SIZES, assert_nothing_left, barrier, majority, manager, wait_until_queued};
use crate::waiters::{assert_all_gone, managers, obtained, patient, waiting};
use redlock_runtime::{LockError, LockPart, LockRequest, Mode};
use redlock_tests::{Nodes, PATIENCE, eventually_eq};
use tokio::time::sleep;

#[tokio::test]
async fn lock_for_several_keys_excludes_calls_for_each_key() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
        let held = ours.acquire(LockRequest::all(["b", "a"])).await.unwrap();
        assert_eq!((held.key().as_str(), held.mode()), (r#""a" + "b""#, Mode::Exclusive));
        for manager in [&ours, &theirs] {
            for key in ["a", "b"] {
                assert!(manager.try_acquire(key).await.unwrap_err().is_contended());
                assert!(manager.try_acquire(LockRequest::shared(key)).await.unwrap_err().is_contended());
                assert!(manager.try_acquire(LockRequest::all(["c", key])).await.unwrap_err().is_contended());
            }
            manager.try_acquire("c").await.unwrap().release().await.unwrap();
        }
        held.release().await.unwrap();
        let other = theirs.try_acquire("b").await.unwrap();
        let error = ours.try_acquire(LockRequest::all(["a", "b"])).await.unwrap_err();
        assert!(error.is_contended() && error.to_string().contains(r#""a" + "b""#), "{error}");
        ours.try_acquire("a").await.unwrap().release().await.unwrap();
        other.release().await.unwrap();
        assert_all_gone(&ours, &nodes).await;
        assert_all_gone(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn lock_for_several_keys_and_foreign_locks_exclude_each_other() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let manager = manager(&nodes).await;
        let set = async |key: &str| {
            let mut taken = 0;
            for node in nodes.iter() {
                let set: Option<String> =
                    node.inspect().command(&["SET", key, "another program", "NX", "PX", "60000"]).await;
                taken += usize::from(set.is_some());
            }
            taken
        };
        let held = manager.acquire(LockRequest::all(["a", "b"]).ttl(PATIENCE)).await.unwrap();
        barrier(&nodes).await;
        assert_eq!([set("a").await, set("b").await], [0, 0]);
        held.release().await.unwrap();
        nodes.assert_empty(PATIENCE).await;
        assert_eq!(set("b").await, size);
        assert!(manager.try_acquire(LockRequest::all(["a", "b"])).await.unwrap_err().is_contended());
        let call = waiting(&manager, all(["a", "b"]));
        wait_until_queued(&nodes, "a", 1).await;
        // A waiter for several keys reserves the free ones against programs that know no queue.
        eventually_eq(PATIENCE, "it is reserved", 0, async || {
            let taken = set("a").await;
            for node in nodes.iter() {
                let _: i64 = node.inspect().command(&["EVAL", DELETE, "1", "a"]).await;
            }
            taken
        })
        .await;
        for node in nodes.iter() {
            let _: i64 = node.inspect().command(&["DEL", "b"]).await;
        }
        obtained(call).await.release().await.unwrap();
        assert_all_gone(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn path_and_foreign_locks_on_it_or_its_ancestors_exclude_each_other() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let manager = manager(&nodes).await;
        for name in ["/{A}", "/{A}/C"] {
            let set = async || {
                let mut taken = 0;
                for node in nodes.iter() {
                    let set: Option<String> =
                        node.inspect().command(&["SET", name, "another program", "NX", "PX", "60000"]).await;
                    taken += usize::from(set.is_some());
                }
                taken
            };
            let held = manager.acquire(place("/A/C").ttl(PATIENCE)).await.unwrap();
            barrier(&nodes).await;
            assert_eq!(set().await, 0, "{name}");
            held.release().await.unwrap();
            nodes.assert_empty(PATIENCE).await;
            assert_eq!(set().await, size, "{name}");
            assert!(manager.try_acquire(LockRequest::path("/A/C")).await.unwrap_err().is_contended(), "{name}");
            let call = waiting(&manager, place("/A/C"));
            wait_until_queued_in(&nodes, 1).await;
            for node in nodes.iter() {
                let _: i64 = node.inspect().command(&["DEL", name]).await;
            }
            obtained(call).await.release().await.unwrap();
            nodes.assert_empty(PATIENCE).await;
        }
        assert_all_gone(&manager, &nodes).await;
    }
}

/// Script that deletes the key of another program.
const DELETE: &str =
    "if redis.call('TYPE', KEYS[1]).ok == 'string' then return redis.call('DEL', KEYS[1]) end return 0";

#[tokio::test]
async fn duplicate_keys_are_merged_with_the_stronger_mode() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let held = manager.acquire(LockRequest::all(["a", "a"])).await.unwrap();
    assert_eq!((held.key().as_str(), held.keys().count()), ("a", 1));
    held.release().await.unwrap();
    let parts = [LockPart::shared("a"), LockPart::shared("b"), "b".into()];
    let held = manager.acquire(LockRequest::all(parts)).await.unwrap();
    manager.try_acquire(LockRequest::shared("a")).await.unwrap().release().await.unwrap();
    assert!(manager.try_acquire(LockRequest::shared("b")).await.unwrap_err().is_contended());
    held.downgrade();
    held.extend().await.unwrap();
    manager.try_acquire(LockRequest::shared("b")).await.unwrap().release().await.unwrap();
    assert!(manager.try_acquire("a").await.unwrap_err().is_contended());
    held.release().await.unwrap();
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn leases_of_all_keys_are_renewed_and_expire_without_renewal() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = [brief(&nodes).await, brief(&nodes).await];
        let held = ours.acquire(all(["a", "b"])).await.unwrap();
        sleep(3 * TTL).await;
        assert!(held.is_held());
        for key in ["a", "b"] {
            assert!(theirs.try_acquire(key).await.unwrap_err().is_contended());
        }
        held.release().await.unwrap();
        let left = ours.acquire(all(["a", "b"]).without_renewal()).await.unwrap();
        let call = waiting(&theirs, all(["b", "c"]));
        assert!(matches!(left.lost().await, LockError::Lost { .. }));
        obtained(call).await.release().await.unwrap();
        drop(left);
        assert_all_gone(&ours, &nodes).await;
        assert_all_gone(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn loss_of_one_key_loses_the_whole_lock() {
    let nodes = Nodes::start(3).await;
    let manager = brief(&nodes).await;
    let held = manager.acquire(all(["a", "b"])).await.unwrap();
    // Repeats it: a key that is deleted at some nodes at different times would be won back.
    let robbed = async {
        loop {
            for node in nodes.iter().take(majority(3)) {
                let _: i64 = node.inspect().command(&["DEL", "b"]).await;
            }
            sleep(TTL / 30).await;
        }
    };
    let error = tokio::select! {
        error = held.lost() => error,
        () = robbed => unreachable!("it goes on"),
    };
    assert!(matches!(error, LockError::Lost { .. }), "{error:?}");
    drop(held);
    manager.acquire(patient("a")).await.unwrap().release().await.unwrap();
    nodes.assert_empty(PATIENCE).await;
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn data_under_one_of_several_keys_is_refused() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    for node in nodes.iter() {
        node.inspect().command::<()>(&["SET", "b", "data"]).await;
    }
    let error = manager.acquire(all(["a", "b"])).await.unwrap_err();
    assert!(matches!(error, LockError::Refused { .. }), "{error:?}");
    let error = manager.try_acquire(LockRequest::all(["a", "b"])).await.unwrap_err();
    assert!(matches!(error, LockError::Refused { .. }), "{error:?}");
    for node in nodes.iter() {
        let _: i64 = node.inspect().command(&["DEL", "b"]).await;
    }
    assert_all_gone(&manager, &nodes).await;
}
