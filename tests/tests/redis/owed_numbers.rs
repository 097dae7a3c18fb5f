//! Fencing numbers after one server has lost its data: the other servers have learnt them, and the server learns them again.

use crate::fencing::{number, register, token};
use crate::support::{answered, builder, connected, manager};
use redlock_runtime::LockManager;
use redlock_runtime::tuning::AfterRestart;
use redlock_tests::{Nodes, PATIENCE, Proxy, RedisServer, eventually};

/// Larger than the lead up to which the number of a single server is trusted.
const DAY: i64 = 86_400;
const HALF_HOUR: i64 = 1800;

/// Starts three servers whose clocks are ahead by `seconds`.
async fn ahead(seconds: i64) -> Nodes {
    let nodes = Nodes::start_with(3, |_, builder| builder.own_clock()).await;
    nodes.iter().for_each(|node| node.set_clock(seconds));
    nodes
}

/// Corrects the clocks.
fn correct(nodes: &Nodes) {
    nodes.iter().for_each(|node| node.set_clock(0));
}

/// Returns a new process that knows no number, and that counts restarted servers at once.
async fn newcomer(nodes: &Nodes) -> LockManager {
    let locks = builder(nodes.urls()).tuning(|tuning| tuning.after_restart(AfterRestart::Trust)).build().unwrap();
    answered(&locks).await;
    locks
}

/// Returns a process that cannot reach the last server.
async fn without_the_last(nodes: &Nodes) -> (LockManager, Vec<Proxy>) {
    let proxies = nodes.proxied().await;
    let locks = connected(builder(proxies.iter().map(Proxy::url).collect::<Vec<_>>()), nodes).await;
    proxies[2].refuse(true).await;
    proxies[2].cut().await;
    (locks, proxies)
}

async fn wait_until_known(node: &RedisServer, number: u64) {
    let is_known = async || if register(node).await >= number { Ok(()) } else { Err(register(node).await) };
    eventually(PATIENCE, "the server knows the number", is_known).await;
}

/// The absent server has learnt the number of an ended process. The server that had accepted the number forgets it.
#[tokio::test]
async fn server_down_at_the_acquisition_learns_the_fencing_number() {
    for (seconds, is_one_down) in [(DAY, false), (HALF_HOUR, true)] {
        let nodes = ahead(seconds).await;
        let locks = manager(&nodes).await;
        nodes[2].kill();
        let first = token(&locks).await;
        correct(&nodes);
        nodes[2].restart().await;
        wait_until_known(&nodes[2], number(first)).await;
        locks.shutdown().await;
        drop(locks);
        nodes[0].restart_empty().await;
        if is_one_down {
            nodes[1].kill();
        }
        let next = token(&newcomer(&nodes).await).await;
        assert!(first < next, "{first} {next}, one down: {is_one_down}");
    }
}

/// The process that knows the number cannot reach the third server, and continues.
#[tokio::test]
async fn server_restarted_empty_relearns_fencing_numbers_from_a_process() {
    let nodes = ahead(HALF_HOUR).await;
    let (locks, _proxies) = without_the_last(&nodes).await;
    let first = token(&locks).await;
    correct(&nodes);
    assert_eq!(register(&nodes[2]).await, 0, "the third server has never heard of it");
    nodes[0].restart_empty().await;
    wait_until_known(&nodes[0], number(first)).await;
    drop(locks);
    nodes[1].kill();
    let next = token(&newcomer(&nodes).await).await;
    assert!(first < next, "{first} {next}");
}

#[tokio::test]
async fn server_flushed_while_running_relearns_fencing_numbers_from_a_process() {
    let nodes = ahead(HALF_HOUR).await;
    let (locks, _proxies) = without_the_last(&nodes).await;
    let first = token(&locks).await;
    correct(&nodes);
    nodes[0].inspect().command::<()>(&["FLUSHALL"]).await;
    wait_until_known(&nodes[0], number(first)).await;
    drop(locks);
    nodes[1].kill();
    let next = token(&newcomer(&nodes).await).await;
    assert!(first < next, "{first} {next}");
}

/// The number is further ahead than a single server may report. The absent server and the emptied server both know it.
#[tokio::test]
async fn fencing_number_ahead_of_the_clocks_survives_two_server_failures() {
    let nodes = ahead(DAY).await;
    let locks = manager(&nodes).await;
    nodes[2].kill();
    let first = token(&locks).await;
    correct(&nodes);
    nodes[2].restart().await;
    nodes[0].restart_empty().await;
    for node in [&nodes[0], &nodes[2]] {
        wait_until_known(node, number(first)).await;
    }
    nodes[1].kill();
    let next = token(&newcomer(&nodes).await).await;
    assert!(first < next, "{first} {next}");
}

/// All servers restart empty, one after the other, while no lock is held.
#[tokio::test]
async fn fencing_numbers_survive_a_rolling_restart_without_data() {
    let nodes = ahead(DAY).await;
    let locks = manager(&nodes).await;
    let first = token(&locks).await;
    correct(&nodes);
    for node in nodes.iter() {
        node.restart_empty().await;
        wait_until_known(node, number(first)).await;
    }
    let next = token(&newcomer(&nodes).await).await;
    assert!(first < next, "{first} {next}");
}
