//! Common helpers: managers that do not give up early, and checks of the data in Redis.

use crate::waiters::queue;
use redlock_runtime::admin::CheckReport;
use redlock_runtime::{LockError, LockGuard, LockManager, LockManagerBuilder, LockRequest, NodeConfig, NodeError};
use redlock_tests::{Nodes, PATIENCE, Proxy, RedisServer, eventually, eventually_eq};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Numbers of nodes for which every promise is tested.
pub(crate) const SIZES: [usize; 3] = [1, 3, 5];

/// Long node timeout, so that a healthy node never looks silent on a loaded machine.
pub(crate) const GENEROUS: Duration = Duration::from_secs(5);

/// Short node timeout, for tests in which the code must notice a silent node.
pub(crate) const BRIEF: Duration = Duration::from_millis(50);

/// Wait of a call that should time out. Too short: the wait ends before a node on a busy machine has answered, and the
/// call fails with `NoQuorum`. Too long: the tests take longer.
pub(crate) const SHORT_WAIT: Duration = Duration::from_secs(2);

pub(crate) const fn majority(nodes: usize) -> usize {
    nodes / 2 + 1
}

pub(crate) fn builder<N: Into<NodeConfig>>(nodes: impl IntoIterator<Item = N>) -> LockManagerBuilder {
    LockManager::builder().nodes(nodes).node_timeout(GENEROUS)
}

/// Returns a manager that is connected to every node.
pub(crate) async fn connected(builder: LockManagerBuilder, nodes: &Nodes) -> LockManager {
    let manager = builder.build().unwrap();
    wait_until_all_vote(&manager, nodes).await;
    manager
}

/// Waits until the manager of an acquired lock has left its settings on every node. This costs commands.
pub(crate) async fn wait_until_settings_are_left(nodes: &Nodes) {
    for node in nodes.iter() {
        let is_left = async || node.inspect().command::<bool>(&["EXISTS", "redlock:f:settings"]).await;
        eventually_eq(PATIENCE, "the settings are left", true, is_left).await;
    }
}

pub(crate) async fn manager(nodes: &Nodes) -> LockManager {
    connected(builder(nodes.urls()), nodes).await
}

/// Returns a manager whose connections lead through `proxies`, one in front of each node.
pub(crate) async fn manager_through(proxies: &[Proxy], nodes: &Nodes) -> LockManager {
    connected(builder(proxies.iter().map(Proxy::url)), nodes).await
}

/// Waits until the only node has answered all commands of `manager`.
pub(crate) async fn answered(manager: &LockManager) {
    manager.acquire("order:8").await.unwrap().release().await.unwrap();
}

/// Waits until every node gives its vote to `manager`, and not only a majority.
pub(crate) async fn wait_until_all_vote(manager: &LockManager, nodes: &Nodes) {
    eventually(PATIENCE, "every node votes", async || {
        let guard = manager.acquire("warm-up").await.map_err(|error| error.to_string())?;
        let holders = holders(nodes, &guard).await;
        guard.release().await.map_err(|error| error.to_string())?;
        if holders == nodes.len() { Ok(()) } else { Err(format!("{holders} votes")) }
    })
    .await;
    nodes.assert_empty(PATIENCE).await;
}

/// Acquires the lock, and waits until the last node holds it, too. A normal acquisition ends with a majority.
pub(crate) async fn acquired_everywhere(
    manager: &LockManager,
    nodes: &Nodes,
    request: impl Into<LockRequest>,
) -> LockGuard {
    let guard = manager.acquire(request).await.unwrap();
    eventually_eq(PATIENCE, "every node holds the lock", nodes.len(), async || holders(nodes, &guard).await).await;
    guard
}

/// Acquires the locks `order:0`, `order:1` and so on, all at once.
pub(crate) async fn many_guards(manager: &LockManager, many: usize) -> Vec<LockGuard> {
    let mut acquiring = JoinSet::new();
    for i in 0..many {
        let manager = manager.clone();
        acquiring.spawn(async move { manager.acquire(format!("order:{i}")).await.unwrap() });
    }
    acquiring.join_all().await
}

/// Returns the token in the value of a lock. A `+` behind it means that others are waiting.
fn owner(value: &str) -> &str {
    value.strip_suffix('+').unwrap_or(value)
}

/// Returns the token of the holder at `node`.
pub(crate) async fn owner_at(node: &RedisServer, key: &str) -> Option<String> {
    node.inspect().get(key).await.map(|value| owner(&value).to_owned())
}

/// Returns the number of running nodes that hold the lock, or the share, of `guard`.
pub(crate) async fn holders(nodes: &Nodes, guard: &LockGuard) -> usize {
    let (contents, token) = (nodes.contents().await, guard.token().as_str());
    // Several readers are the members of a sorted set.
    let is_of = |value: &String| value.starts_with(token) || value.starts_with("zset ") && value.contains(token);
    let held = |keys: &&BTreeMap<String, String>| keys.get(guard.key().as_str()).is_some_and(is_of);
    contents.values().filter(held).count()
}

/// Returns the number of nodes that know the token of `guard`.
pub(crate) async fn known(nodes: &Nodes, guard: &LockGuard) -> usize {
    let (contents, token) = (nodes.contents().await, guard.token().as_str());
    contents.values().filter(|keys| keys.values().any(|value| value.contains(token))).count()
}

/// Acquires all keys of the request, and waits until the last node has granted them. A node grants all or none of several keys.
pub(crate) async fn known_everywhere(manager: &LockManager, nodes: &Nodes, request: LockRequest) -> LockGuard {
    let guard = manager.acquire(request).await.unwrap();
    eventually_eq(PATIENCE, "every node knows it", nodes.len(), async || known(nodes, &guard).await).await;
    guard
}

/// Waits until `waiting` calls are in the queue for `key` on every node.
pub(crate) async fn wait_until_queued(nodes: &Nodes, key: &str, waiting: usize) {
    for node in nodes.iter() {
        eventually_eq(PATIENCE, "they wait in the queue", waiting, async || queue(node.inspect(), key).await.len())
            .await;
    }
}

/// Closes `manager`, waits for every answer, and checks that all nodes are empty now.
pub(crate) async fn assert_nothing_left(manager: &LockManager, nodes: &Nodes) {
    assert!(manager.shutdown().await, "a release was not answered: {:?}", manager.stats().releases);
    barrier(nodes).await;
    let left = nodes.contents().await;
    assert!(left.is_empty(), "left behind: {left:?}");
}

/// Returns when every node has executed the commands in its sockets. One turn of the server's event loop serves all
/// sockets in any order, so two round trips are one complete turn.
pub(crate) async fn barrier(nodes: &Nodes) {
    for node in nodes.iter().filter(|node| node.is_running()) {
        for _ in 0..2 {
            node.inspect().command::<()>(&["PING"]).await;
        }
    }
}

/// Polls `future` at most `most` times, each time that it is woken, and then drops it.
pub(crate) async fn polled<F: Future>(future: F, most: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut polls = 0;
    poll_fn(|cx| {
        polls += 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if polls >= most => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Returns the warnings of a report, without two that apply to most tests: a single server loses everything in a restart, and each of
/// several servers has just been started.
pub(crate) fn warnings(report: &CheckReport) -> Vec<String> {
    let is_usual = |warning: &String| {
        warning.contains("other callers then get these locks: set") || warning.contains(": restarted ")
    };
    report.warnings().into_iter().filter(|warning| !is_usual(warning)).collect()
}

/// Returns the addresses and causes of a [`LockError::NoQuorum`] or [`LockError::Refused`].
pub(crate) fn causes(error: &LockError) -> Vec<(&str, &NodeError)> {
    match error {
        LockError::NoQuorum { causes, .. } | LockError::Refused { causes, .. } => {
            causes.iter().map(|cause| (cause.node(), cause.error())).collect()
        }
        other => panic!("no quorum expected: {other:?}"),
    }
}

/// Waits until a request of the client has reached each proxy since `before` was read.
pub(crate) async fn wait_until_asked(proxies: &[Proxy], before: &[u64]) {
    for (proxy, before) in proxies.iter().zip(before) {
        proxy.wait_until("the node is asked", |traffic| traffic.requests.received > *before).await;
    }
}

pub(crate) fn asked(proxies: &[Proxy]) -> Vec<u64> {
    proxies.iter().map(|proxy| proxy.traffic().requests.received).collect()
}

/// Breaks all connections to one node after the other, without end. Between two breaks, `entered` grows by one at least: a slow machine
/// must not see more breaks than calls.
pub(crate) async fn cut_connections(nodes: &Nodes, entered: impl Fn() -> usize) {
    for node in nodes.iter().cycle() {
        let before = entered();
        sleep(Duration::from_millis(40)).await;
        while entered() == before {
            sleep(Duration::from_millis(5)).await;
        }
        node.inspect().kill_clients().await;
    }
}
