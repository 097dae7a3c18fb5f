//! Nested calls for some keys in the body of a call for others.

use super::tree::wait_until_queued_in;
use super::{all, place};
use crate::support::{SIZES, wait_until_queued};
use crate::waiters::{assert_all_gone, managers, obtained, waiting};
use redlock_runtime::__private::hold;
use redlock_runtime::{LockError, LockPart, LockRequest, Mode};
use redlock_tests::{Nodes, PATIENCE, eventually_eq};
use std::collections::BTreeMap;
use tokio::time::timeout;

#[tokio::test]
async fn nested_call_for_a_sibling_path_waits_for_its_holder() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
        let outer = ours.acquire(place("/A/C")).await.unwrap();
        let other = theirs.acquire(place("/A/D")).await.unwrap();
        let nested = hold(&outer, ours.acquire(place("/A/D")));
        let released = async {
            wait_until_queued_in(&nodes, 1).await;
            other.release().await.unwrap();
        };
        let (nested, ()) = timeout(PATIENCE, async { tokio::join!(nested, released) }).await.expect("they go on");
        nested.unwrap().expect("it was no more than taken").release().await.unwrap();
        outer.release().await.unwrap();
        assert_all_gone(&ours, &nodes).await;
        assert_all_gone(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn nested_call_that_shares_a_key_with_its_caller_waits_for_the_others() {
    let nodes = Nodes::start(3).await;
    let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
    let outer = ours.acquire(LockRequest::shared("a").wait(PATIENCE)).await.unwrap();
    let other = theirs.acquire("b").await.unwrap();
    let nested = hold(&outer, ours.acquire(all([LockPart::shared("a"), "b".into()])));
    let released = async {
        wait_until_queued(&nodes, "b", 1).await;
        other.release().await.unwrap();
    };
    let (nested, ()) = timeout(PATIENCE, async { tokio::join!(nested, released) }).await.expect("they go on");
    nested.unwrap().unwrap().release().await.unwrap();
    outer.release().await.unwrap();
    assert_all_gone(&ours, &nodes).await;
    assert_all_gone(&theirs, &nodes).await;
}

#[tokio::test]
async fn nested_call_for_the_same_path_behind_a_writer_fails() {
    let nodes = Nodes::start(3).await;
    let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
    let outer = ours.acquire(place("/A/C").mode(Mode::Shared)).await.unwrap();
    let folder = waiting(&theirs, place("/A"));
    wait_until_queued_in(&nodes, 1).await;
    let nested = timeout(PATIENCE, hold(&outer, ours.acquire(place("/A/C").mode(Mode::Shared)))).await;
    let error = nested.expect("it would wait for itself").unwrap().unwrap_err();
    assert!(matches!(error, LockError::WouldDeadlock { .. }), "{error:?}");
    outer.release().await.unwrap();
    obtained(folder).await.release().await.unwrap();
    assert_all_gone(&ours, &nodes).await;
    assert_all_gone(&theirs, &nodes).await;
}

#[tokio::test]
async fn nested_call_for_a_sibling_behind_a_writer_of_both_fails() {
    type Requests = fn() -> [LockRequest; 3];
    let table: [(&str, Requests); 3] = [
        ("a sibling", || ["/A/C", "/A", "/A/D"].map(place)),
        ("a sibling further below", || [place("/A/B/C"), place("/A"), place("/A/B/D").mode(Mode::Shared)]),
        ("a key more", || {
            let more = all([LockPart::shared("a"), "b".into()]);
            [LockRequest::shared("a").wait(PATIENCE), LockRequest::new("a").wait(PATIENCE), more]
        }),
    ];
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        for (what, requests) in table {
            let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
            let [outer, between, nested] = requests();
            let outer = ours.acquire(outer).await.unwrap();
            let writer = waiting(&theirs, between);
            wait_until_queued_in_any(&nodes).await;
            let nested = timeout(PATIENCE / 2, hold(&outer, ours.acquire(nested))).await;
            let error = nested.expect("it would wait for itself").unwrap().unwrap_err();
            assert!(matches!(error, LockError::WouldDeadlock { .. }), "{what}: {error:?}");
            outer.release().await.unwrap();
            obtained(writer).await.release().await.unwrap();
            assert_all_gone(&ours, &nodes).await;
            assert_all_gone(&theirs, &nodes).await;
        }
    }
}

/// Waits until each node has a queue.
async fn wait_until_queued_in_any(nodes: &Nodes) {
    let has_queue = |keys: &BTreeMap<String, String>| keys.keys().any(|key| key.contains("}:q"));
    let queued = async || nodes.contents().await.values().filter(|keys| has_queue(keys)).count();
    eventually_eq(PATIENCE, "somebody waits at each node", nodes.len(), queued).await;
}
