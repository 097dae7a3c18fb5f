//! Paths of a tree: which paths exclude each other (defect 25 of peers), and that the release of a folder admits all waiters below it.

use super::place;
use crate::support::{SIZES, wait_until_queued};
use crate::waiters::{assert_all_gone, managers, obtained, waiting};
use redlock_runtime::{LockPath, LockRequest, Mode};
use redlock_tests::{Nodes, PATIENCE};
use tokio::task::JoinSet;
use tokio::time::timeout;

const SEGMENTS: [&str; 10] = ["A", "AX", "a", "%2F", "{A}", "}:q", "A/C", "..", "é", "*"];

fn is_related(one: &[&str], other: &[&str]) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

#[tokio::test]
async fn paths_exclude_only_their_ancestors_and_descendants() {
    let nodes = Nodes::start(1).await;
    let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
    let mut state = 7_u64;
    // Pseudo-random numbers below `end`, the same in every run.
    let mut draw = |end: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((state >> 33) % end).unwrap()
    };
    let mut conflicts = 0;
    for _ in 0..400 {
        let mut path = || -> (Vec<&str>, Mode) {
            let (depth, near) = (1 + draw(3), draw(2) == 0);
            let segments = (0..depth).map(|_| if near { "A" } else { SEGMENTS[draw(10)] }).collect();
            (segments, if draw(2) == 0 { Mode::Exclusive } else { Mode::Shared })
        };
        let ((held, held_as), (wanted, wanted_as)) = (path(), path());
        let request = |path: &[&str], mode| LockRequest::path(LockPath::of(path)).mode(mode);
        let guard = ours.acquire(request(&held, held_as)).await.unwrap();
        let tried = theirs.try_acquire(request(&wanted, wanted_as)).await;
        let expected = is_related(&held, &wanted) && (held_as, wanted_as) != (Mode::Shared, Mode::Shared);
        assert_eq!(tried.is_err(), expected, "{held:?} {held_as:?} {wanted:?} {wanted_as:?}: {tried:?}");
        conflicts += usize::from(expected);
        if let Ok(tried) = tried {
            tried.release().await.unwrap();
        }
        guard.release().await.unwrap();
    }
    assert!(conflicts > 40, "{conflicts}");
    assert_all_gone(&ours, &nodes).await;
    assert_all_gone(&theirs, &nodes).await;
}

#[tokio::test]
async fn folder_waits_for_its_descendants_and_is_not_overtaken() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
        let below = [ours.acquire(place("/A/C")).await.unwrap(), theirs.acquire(place("/A/D/E")).await.unwrap()];
        let folder = waiting(&ours, place("/A"));
        wait_until_queued_in(&nodes, 1).await;
        let late = waiting(&theirs, place("/A/F"));
        wait_until_queued_in(&nodes, 2).await;
        assert!(theirs.try_acquire(LockRequest::path("/A/F")).await.unwrap_err().is_contended());
        drop(below);
        let folder = obtained(folder).await;
        assert!(!late.is_finished());
        folder.release().await.unwrap();
        obtained(late).await.release().await.unwrap();
        assert_all_gone(&ours, &nodes).await;
        assert_all_gone(&theirs, &nodes).await;
    }
}

/// Waits until `waiting` calls are in the queue of the tree `/A`, at every node.
pub(super) async fn wait_until_queued_in(nodes: &Nodes, waiting: usize) {
    for node in nodes.iter() {
        redlock_tests::eventually_eq(PATIENCE, "they wait", waiting, async || {
            let members: Vec<String> = node.inspect().command(&["ZRANGE", "{A}:q:/{A}", "0", "-1"]).await;
            members.iter().filter(|member| !member.ends_with('#')).count()
        })
        .await;
    }
}

#[tokio::test]
async fn released_folder_admits_all_waiters_below_it() {
    // More waiters than one command wakes.
    const BELOW: usize = 150;
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
        let folder = ours.acquire(place("/A")).await.unwrap();
        let mut calls = JoinSet::new();
        for below in 0..BELOW {
            let manager = theirs.clone();
            calls.spawn(async move { manager.acquire(place(&format!("/A/{below}"))).await });
        }
        wait_until_queued_in(&nodes, BELOW).await;
        folder.release().await.unwrap();
        let guards = timeout(PATIENCE, calls.join_all()).await.expect("they are let in");
        assert!(guards.iter().flatten().filter(|guard| guard.is_held()).count() == BELOW);
        drop(guards);
        assert_all_gone(&ours, &nodes).await;
        assert_all_gone(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn readers_of_a_folder_and_of_its_descendants_share() {
    let nodes = Nodes::start(3).await;
    let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
    let folder = ours.acquire(place("/A").mode(Mode::Shared)).await.unwrap();
    let below = theirs.acquire(place("/A/C").mode(Mode::Shared)).await.unwrap();
    let writer = waiting(&theirs, place("/A/D"));
    wait_until_queued_in(&nodes, 1).await;
    assert!(folder.is_held() && below.is_held() && !writer.is_finished());
    drop(folder);
    obtained(writer).await.release().await.unwrap();
    drop(below);
    wait_until_queued(&nodes, "/{A}", 0).await;
    assert_all_gone(&ours, &nodes).await;
    assert_all_gone(&theirs, &nodes).await;
}
