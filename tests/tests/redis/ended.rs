//! Managers whose runtime has ended, or is not driven: they keep working.

use crate::support::{assert_nothing_left, builder};
use redlock_runtime::admin::ListOptions;
use redlock_runtime::{LockManager, LockRequest};
use redlock_tests::{Nodes, PATIENCE, eventually, eventually_eq};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;

const KEY: &str = "order:7";
/// Short enough to wait for its end, and long enough that a renewed lock survives a pause of one second.
const TTL: Duration = Duration::from_secs(2);

fn single_threaded() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn built_on(runtime: &Runtime, nodes: &Nodes) -> LockManager {
    let _context = runtime.enter();
    builder(nodes.urls()).node_timeout(TTL / 6).build().unwrap()
}

#[test]
fn manager_continues_after_its_runtime_has_ended() {
    let observer = single_threaded();
    let nodes = observer.block_on(Nodes::start(3));
    for was_driven in [false, true] {
        let runtime = single_threaded();
        let manager = built_on(&runtime, &nodes);
        let guards = was_driven.then(|| {
            runtime.block_on(async {
                let request = |key: &str| LockRequest::new(key).ttl(TTL);
                [manager.acquire(request("held")).await.unwrap(), manager.acquire(request("dropped")).await.unwrap()]
            })
        });
        drop(runtime);
        observer.block_on(async {
            if let Some([held, dropped]) = guards {
                drop(dropped);
                let dropped = async || nodes[0].inspect().get("dropped").await;
                eventually_eq(PATIENCE, "the key is gone", None, dropped).await;
                // The test needs several lease periods.
                sleep(3 * TTL).await;
                held.release().await.unwrap();
            }
            manager.ready().await.unwrap();
            manager.acquire(KEY).await.unwrap().release().await.unwrap();
            assert_nothing_left(&manager, &nodes).await;
        });
    }
}

#[test]
fn manager_works_on_another_runtime_if_its_own_is_not_driven() {
    let observer = single_threaded();
    let nodes = observer.block_on(Nodes::start(1));
    let runtime = single_threaded();
    let manager = built_on(&runtime, &nodes);
    for driven in [&observer, &runtime, &observer] {
        driven.block_on(async {
            manager.ready().await.unwrap();
            manager.try_acquire(KEY).await.unwrap().release().await.unwrap();
        });
    }
    observer.block_on(assert_nothing_left(&manager, &nodes));
}

#[test]
fn runtime_without_io_does_not_drive_connections() {
    let observer = single_threaded();
    let nodes = observer.block_on(Nodes::start(1));
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let manager = built_on(&runtime, &nodes);
    let request = || LockRequest::new(KEY).wait(PATIENCE);
    // The runtime loses the connection when it takes it. The next connection is not moved to the runtime.
    let given_back = async || manager.acquire(request()).await.map_err(|error| error.to_string()).map(drop);
    runtime.block_on(eventually(PATIENCE, "it works", given_back));
    drop(runtime.block_on(manager.acquire(request())).unwrap());
    // These calls open separate connections.
    runtime.block_on(async {
        manager.inspect(KEY).await;
        assert_eq!(manager.list(ListOptions::new("*").limit(10).timeout(PATIENCE)).await.failures, []);
    });
    observer.block_on(assert_nothing_left(&manager, &nodes));
}

#[test]
fn manager_is_shared_by_short_lived_runtimes() {
    let observer = single_threaded();
    let nodes = observer.block_on(Nodes::start(1));
    let manager = built_on(&observer, &nodes);
    for _ in 0..3 {
        single_threaded().block_on(async { drop(manager.acquire(KEY).await.unwrap()) });
    }
    observer.block_on(assert_nothing_left(&manager, &nodes));
}

#[test]
fn process_paused_during_a_release_can_use_its_nodes_afterwards() {
    let runtime = single_threaded();
    let nodes = runtime.block_on(Nodes::start(3));
    let manager = built_on(&runtime, &nodes);
    runtime.block_on(manager.ready()).unwrap();
    for _ in 0..2 {
        // The release may not even be sent, and its answer is not read.
        runtime.block_on(async { drop(manager.try_acquire("order:8").await.unwrap()) });
        // Longer than a node may owe an answer.
        std::thread::sleep(Duration::from_millis(1200));
        runtime.block_on(async { manager.try_acquire(KEY).await.unwrap().release().await.unwrap() });
    }
    runtime.block_on(assert_nothing_left(&manager, &nodes));
}
