//! Every reader has a separate lease, which is renewed and ends independently.

use super::{KEY, TTL, brief, cause, process, reader, second_process, writer};
use crate::support::{BRIEF, SIZES, assert_nothing_left, barrier, builder, connected, holders, manager};
use crate::waiters::{assert_all_gone, most_scripts, obtained, patient, reset_counts, waiting};
use redlock_runtime::{LockGuard, LockRequest, LossCause};
use redlock_tests::{Nodes, PATIENCE, eventually};
use tokio::time::sleep;

/// Waits until a second reader has a share at every node.
async fn wait_until_shared(nodes: &Nodes) {
    for node in nodes.iter() {
        eventually(PATIENCE, "the other process has its share", async || match node.inspect().share_count(KEY).await {
            2.. => Ok(()),
            few => Err(few),
        })
        .await;
    }
}

#[tokio::test]
async fn killed_reader_blocks_writers_only_for_its_own_ttl() {
    // Redisson #1458 and #7098: all readers have one expiry, which the living readers extend.
    second_process().await;
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = [brief(&nodes).await, brief(&nodes).await];
        let held = ours.acquire(reader()).await.unwrap();
        let name = "shared::leases::killed_reader_blocks_writers_only_for_its_own_ttl";
        let mut process = process(name, "reader", &nodes);
        wait_until_shared(&nodes).await;
        process.kill().await.unwrap();
        sleep(2 * TTL).await;
        held.ensure_held().unwrap();
        held.release().await.unwrap();
        // Granted at once, because the share of the killed reader has expired.
        theirs.try_acquire(KEY).await.unwrap().release().await.unwrap();
        assert_all_gone(&ours, &nodes).await;
        assert_all_gone(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn waiting_writer_acquires_after_the_ttl_of_a_killed_reader() {
    second_process().await;
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let ours = brief(&nodes).await;
        let held = ours.acquire(reader()).await.unwrap();
        let name = "shared::leases::waiting_writer_acquires_after_the_ttl_of_a_killed_reader";
        let mut process = process(name, "reader", &nodes);
        wait_until_shared(&nodes).await;
        // No message announces the end of a lease.
        let call = waiting(&ours, patient(KEY));
        process.kill().await.unwrap();
        held.release().await.unwrap();
        obtained(call).await.release().await.unwrap();
        assert_all_gone(&ours, &nodes).await;
    }
}

#[tokio::test]
async fn readers_are_renewed_individually_until_the_last_release() {
    // Redisson #1604: the renewal of one reader ends with the release of another. #7251: a renewal continues after the last release.
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let manager = brief(&nodes).await;
        let mut guards = Vec::new();
        for _ in 0..3 {
            guards.push(manager.acquire(reader()).await.unwrap());
        }
        while let Some(guard) = guards.pop() {
            sleep(TTL * 3 / 2).await;
            assert!(guards.iter().chain([&guard]).all(LockGuard::is_held), "{size} nodes");
            assert!(holders(&nodes, &guard).await > size / 2);
            guard.release().await.unwrap();
        }
        barrier(&nodes).await;
        reset_counts(&nodes).await;
        sleep(TTL).await;
        assert_eq!(most_scripts(&nodes).await, 0, "{size} nodes");
        assert_nothing_left(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn reader_without_renewal_expires_and_other_readers_do_not() {
    let nodes = Nodes::start(3).await;
    let manager = brief(&nodes).await;
    let kept = manager.acquire(reader()).await.unwrap();
    let brief = manager.acquire(reader().without_renewal()).await.unwrap();
    assert!(matches!(cause(brief.lost().await), LossCause::Expired));
    kept.ensure_held().unwrap();
    kept.release().await.unwrap();
    // The nodes keep the share for a little longer than the client can prove.
    manager.acquire(writer()).await.unwrap().release().await.unwrap();
    drop(brief);
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn longer_lease_of_one_reader_does_not_extend_another() {
    let nodes = Nodes::start(1).await;
    let ours = connected(builder(nodes.urls()).node_timeout(BRIEF), &nodes).await;
    let theirs = manager(&nodes).await;
    let short = ours.acquire(LockRequest::shared(KEY).ttl(TTL).without_renewal()).await.unwrap();
    let long = ours.acquire(LockRequest::shared(KEY).ttl(30 * TTL)).await.unwrap();
    let call = waiting(&theirs, writer());
    cause(short.lost().await);
    assert!(!call.is_finished());
    long.release().await.unwrap();
    // The key would live for another half a minute.
    obtained(call).await.release().await.unwrap();
    drop(short);
    assert_all_gone(&ours, &nodes).await;
    assert_all_gone(&theirs, &nodes).await;
}
