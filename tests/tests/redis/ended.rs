//! Managers whose runtime has ended, or is not driven: an error that says so, and never a hang.

use crate::support::{assert_nothing_left, builder, causes};
use redlock_runtime::{LockError, LockManager, NodeError};
use redlock_tests::{Nodes, PATIENCE};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

const KEY: &str = "order:7";

fn single_threaded() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn built_on(runtime: &Runtime, nodes: &Nodes) -> LockManager {
    let _context = runtime.enter();
    builder(nodes.urls()).build().unwrap()
}

/// What calls on another runtime say.
async fn failures(manager: &LockManager) -> [LockError; 2] {
    let acquired = timeout(PATIENCE, manager.try_acquire(KEY)).await.expect("`try_acquire` ends");
    let ready = timeout(PATIENCE, manager.ready()).await.expect("`ready` ends");
    [acquired.unwrap_err(), ready.unwrap_err()]
}

#[test]
fn a_manager_whose_runtime_has_ended_says_so() {
    let observer = single_threaded();
    let nodes = observer.block_on(Nodes::start(1));
    for was_driven in [false, true] {
        let runtime = single_threaded();
        let manager = built_on(&runtime, &nodes);
        if was_driven {
            runtime.block_on(manager.ready()).unwrap();
        }
        drop(runtime);
        for error in observer.block_on(failures(&manager)) {
            let [(_, NodeError::Unreachable(reason))] = causes(&error)[..] else { panic!("{error:?}") };
            assert_eq!(&**reason, "the tokio runtime that the manager was built on has ended");
        }
    }
}

#[test]
fn a_manager_whose_runtime_is_not_driven_yet_is_an_error_until_it_is() {
    let observer = single_threaded();
    let nodes = observer.block_on(Nodes::start(1));
    let runtime = single_threaded();
    let manager = built_on(&runtime, &nodes);
    for error in observer.block_on(failures(&manager)) {
        assert_eq!(causes(&error).len(), 1, "{error:?}");
    }
    runtime.block_on(async {
        manager.try_acquire(KEY).await.unwrap().release().await.unwrap();
        assert_nothing_left(&manager, &nodes).await;
    });
}

#[test]
fn a_process_that_stood_still_with_a_release_under_way_finds_its_nodes_well() {
    let runtime = single_threaded();
    let nodes = runtime.block_on(Nodes::start(3));
    let manager = built_on(&runtime, &nodes);
    runtime.block_on(manager.ready()).unwrap();
    for _ in 0..2 {
        // The release is sent, or not even that, and its answer is not looked at.
        runtime.block_on(async { drop(manager.try_acquire("order:8").await.unwrap()) });
        // Longer than a node may owe an answer.
        std::thread::sleep(Duration::from_millis(1200));
        runtime.block_on(async { manager.try_acquire(KEY).await.unwrap().release().await.unwrap() });
    }
    runtime.block_on(assert_nothing_left(&manager, &nodes));
}
