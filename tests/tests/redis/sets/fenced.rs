//! Fencing tokens of several keys, and of paths of a tree: one token for all of them, in the order of the holders.

use super::{all, brief, place};
use crate::fencing::{assert_only_registers_left, token_of};
use crate::support::{barrier, manager};
use crate::waiters::managers;
use redlock_runtime::{FencingToken, LockError, LockManager, LockPart, LockRequest, Mode};
use redlock_tests::{Nodes, PATIENCE};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::task::JoinSet;

/// The largest token that each resource has seen.
#[derive(Clone, Default)]
struct Resources(Arc<Mutex<HashMap<String, FencingToken>>>);

impl Resources {
    /// Writes to all of these resources with one token.
    fn write(&self, names: &[&str], token: FencingToken) {
        let mut seen = self.0.lock().unwrap();
        for name in names {
            let before = seen.insert((*name).to_owned(), token);
            assert!(before < Some(token), "{token} comes to {name} after {before:?}");
        }
    }
}

async fn write(resources: &Resources, manager: &LockManager, names: &[&str], request: LockRequest) {
    resources.write(names, token_of(manager, request).await);
}

#[tokio::test]
async fn fencing_tokens_increase_for_each_of_several_keys() {
    for size in [1, 3, 5] {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
        let resources = Resources::default();
        for _ in 0..5 {
            for manager in [&ours, &theirs] {
                let with_shared = || all([LockPart::shared("limits"), "a".into(), "d".into()]);
                write(&resources, manager, &["a"], LockRequest::new("a").wait(PATIENCE)).await;
                write(&resources, manager, &["a", "b", "c"], all(["c", "a", "b"])).await;
                write(&resources, manager, &["b"], LockRequest::new("b").wait(PATIENCE)).await;
                write(&resources, manager, &["a", "d"], with_shared()).await;
                write(&resources, manager, &["c", "d"], all(["c", "d"])).await;
            }
        }
        assert_only_registers_left(&ours, &nodes).await;
        assert_only_registers_left(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn fencing_tokens_increase_across_ancestor_and_descendant_paths() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
        let resources = Resources::default();
        for _ in 0..5 {
            for manager in [&ours, &theirs] {
                write(&resources, manager, &["C", "D", "E"], place("/A")).await;
                write(&resources, manager, &["C"], place("/A/x/C")).await;
                write(&resources, manager, &["E"], place("/A/E")).await;
                write(&resources, manager, &["C", "D"], place("/A/x")).await;
                let moved = [LockPart::path("/A/x/D"), LockPart::path("/A/E")];
                write(&resources, manager, &["D", "E"], LockRequest::all(moved).wait(PATIENCE)).await;
            }
        }
        // All paths of a tree have one register.
        for node in nodes.iter() {
            let registers: Vec<String> = node.inspect().command(&["KEYS", "redlock:f:{*"]).await;
            assert_eq!(registers.len(), 1, "{registers:?}");
        }
        assert_only_registers_left(&ours, &nodes).await;
        assert_only_registers_left(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn fencing_tokens_increase_for_concurrent_calls_with_overlapping_keys() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let managers = managers(&nodes, 3).await;
        let (resources, mut calls) = (Resources::default(), JoinSet::new());
        for (at, manager) in managers.iter().enumerate().flat_map(|pair| [pair; 4]) {
            let (manager, resources) = (manager.clone(), resources.clone());
            let pair = [["a", "b"], ["b", "c"], ["c", "a"]][at];
            calls.spawn(async move {
                for round in 0..8 {
                    let names = if round % 3 == 0 { &pair[..1] } else { &pair[..] };
                    let guard = manager.acquire(all(names.iter().copied()).fencing()).await.unwrap();
                    resources.write(names, guard.fencing_token());
                    guard.release().await.unwrap();
                }
            });
        }
        calls.join_all().await;
        for manager in managers {
            assert_only_registers_left(&manager, &nodes).await;
        }
    }
}

/// The holder sends its number to a server that comes back without its data.
#[tokio::test]
async fn fencing_tokens_increase_while_servers_lose_their_data_in_turn() {
    let nodes = Nodes::start(3).await;
    let (ours, theirs) = (brief(&nodes).await, manager(&nodes).await);
    let resources = Resources::default();
    for node in nodes.iter().chain(nodes.iter()) {
        let guard = ours.acquire(all(["a", "b"]).fencing()).await.unwrap();
        resources.write(&["a", "b"], guard.fencing_token());
        node.inspect().command::<()>(&["FLUSHALL"]).await;
        redlock_tests::eventually_eq(PATIENCE, "the vote is won back", true, async || {
            let held: Option<String> = node.inspect().get("a").await;
            let register: Vec<String> = node.inspect().command(&["KEYS", "redlock:f:{*"]).await;
            held.is_some() && register.len() == 2
        })
        .await;
        guard.release().await.unwrap();
        write(&resources, &theirs, &["b"], LockRequest::new("b").wait(PATIENCE)).await;
        write(&resources, &theirs, &["a"], LockRequest::new("a").wait(PATIENCE)).await;
        barrier(&nodes).await;
    }
    assert_only_registers_left(&ours, &nodes).await;
    assert_only_registers_left(&theirs, &nodes).await;
}

#[tokio::test]
async fn attaching_worker_gets_a_larger_fencing_token_for_several_keys() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
        let resources = Resources::default();
        for request in [all(["a", "b"]), place("/A/C")] {
            let guard = ours.acquire(request.fencing()).await.unwrap();
            resources.write(&["all"], guard.fencing_token());
            let taken_up = theirs.attach(guard.into_guard().detach().fencing()).await.unwrap();
            resources.write(&["all"], taken_up.fencing_token());
            taken_up.release().await.unwrap();
        }
        assert_only_registers_left(&ours, &nodes).await;
        assert_only_registers_left(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn fencing_is_rejected_if_all_keys_are_shared() {
    let manager = LockManager::in_memory();
    for request in [all(["a", "b"]).mode(Mode::Shared), place("/A/C").mode(Mode::Shared)] {
        let error = manager.acquire(request.fencing()).await.unwrap_err();
        assert!(matches!(&error, LockError::Configuration { .. }) && error.to_string().contains("fencing"), "{error}");
    }
    let guard = manager.acquire(all([LockPart::shared("a"), "b".into()]).fencing()).await.unwrap();
    assert!(guard.is_held());
}
