//! Distant servers, without a setting for the distance.

use crate::support::{SIZES, assert_nothing_left};
use redlock_runtime::{LockManager, LockRequest, Wait};
use redlock_tests::{Nodes, PATIENCE, Proxy, eventually};
use std::time::Duration;

const KEY: &str = "order:7";
/// Delay in each direction. Both together are longer than a node timeout that has not adapted.
const ONE_WAY: Duration = Duration::from_millis(40);

async fn proxies(nodes: &Nodes) -> Vec<Proxy> {
    let mut proxies = Vec::new();
    for node in nodes.iter() {
        proxies.push(Proxy::start(([127, 0, 0, 1], node.port()).into()).await);
    }
    proxies
}

fn far_away(proxies: &[Proxy]) -> LockManager {
    for proxy in proxies {
        proxy.delay(ONE_WAY, ONE_WAY);
    }
    LockManager::builder().nodes(proxies.iter().map(Proxy::url)).build().unwrap()
}

#[tokio::test]
async fn locks_and_hand_offs_work_with_80_ms_latency() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let proxies = proxies(&nodes).await;
        let [first, second] = [far_away(&proxies), far_away(&proxies)];
        first.ready().await.unwrap();
        second.ready().await.unwrap();
        let report = first.check().await;
        assert!((Duration::from_millis(200)..=Duration::from_millis(250)).contains(&report.node_timeout), "{report:?}");
        let held = first.acquire(KEY).await.unwrap();
        held.extend().await.unwrap();
        assert!(second.try_acquire(KEY).await.unwrap_err().is_contended());
        let waiting = tokio::spawn(async move {
            let held = second.acquire(LockRequest::new(KEY).wait(Wait::For(PATIENCE))).await.unwrap();
            held.release().await.unwrap();
        });
        let queue = async || nodes[0].inspect().command::<usize>(&["ZCARD", "{order:7}:q"]).await;
        eventually(PATIENCE, "the second one waits", async || if queue().await == 1 { Ok(()) } else { Err(()) }).await;
        held.release().await.unwrap();
        waiting.await.unwrap();
        assert_nothing_left(&first, &nodes).await;
    }
}

#[tokio::test]
async fn adaptive_node_timeout_follows_the_majority_that_is_reachable() {
    let nodes = Nodes::start(3).await;
    let proxies = proxies(&nodes).await;
    proxies[2].delay(ONE_WAY, ONE_WAY);
    let manager = LockManager::builder().nodes(proxies.iter().map(Proxy::url)).build().unwrap();
    manager.ready().await.unwrap();
    // Shows the distant node in the adaptive timeout, even if the machine answers late now and then.
    let is_far = async |expected| match manager.check().await.node_timeout {
        timeout if (timeout >= Duration::from_millis(200)) == expected => Ok(()),
        timeout => Err(timeout),
    };
    eventually(PATIENCE, "the near ones count", async || is_far(false).await).await;
    // The distant node is needed now.
    nodes[0].kill();
    eventually(PATIENCE, "the distance is known", async || is_far(true).await).await;
    manager.acquire(KEY).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn first_permit_call_of_a_process_waits_for_its_connections() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let proxies = proxies(&nodes).await;
        let manager = far_away(&proxies);
        manager.try_acquire(LockRequest::new(KEY).permits(1)).await.unwrap().release().await.unwrap();
        assert_nothing_left(&manager, &nodes).await;
    }
}
