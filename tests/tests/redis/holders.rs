//! Waiting for holders that do not announce their release: crashed holders, and other programs.

use crate::support::{SHORT_WAIT, manager, manager_through, wait_until_queued};
use crate::waiters::{assert_all_gone, obtained, patient, queue_up, wait_until_no_queue, waiting};
use redlock_runtime::{LockError, LockManager, LockRequest, Wait};
use redlock_tests::{Nodes, PATIENCE, redis_cli};
use std::time::{Duration, Instant};

const KEY: &str = "order:7";
const DELETE_OWN: &str = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0";

async fn hold(nodes: &Nodes, key: &str, expiry: &[&str]) {
    for node in nodes.iter() {
        let set: String = redis_cli(node, &[&["SET", key, "their-token", "NX"], expiry].concat()).await;
        assert_eq!(set, "OK");
    }
}

#[tokio::test]
async fn waiter_acquires_soon_after_the_lease_of_a_crashed_holder() {
    // Defect 19. A safety poll comes after 750 ms at the earliest, so one shorter wait shows that it was not needed.
    const LEASE: Duration = Duration::from_millis(200);
    for size in [1, 3] {
        let mut shortest = Duration::MAX;
        let nodes = Nodes::start(size).await;
        let manager = manager(&nodes).await;
        for round in 0..3 {
            let key = format!("order:{round}");
            hold(&nodes, &key, &["PX", "200"]).await;
            let begun = Instant::now();
            manager.acquire(patient(&key)).await.unwrap().release().await.unwrap();
            shortest = shortest.min(begun.elapsed());
        }
        assert!(shortest < LEASE * 3, "{shortest:?} on {size} nodes");
        // The lock is won when a majority of the leases has expired, so a key may still exist.
        nodes.assert_empty(PATIENCE).await;
        assert_all_gone(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn safety_poll_finds_a_lock_deleted_by_another_client() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let manager = manager(&nodes).await;
        hold(&nodes, KEY, &["PX", "60000"]).await;
        let call = waiting(&manager, patient(KEY));
        wait_until_queued(&nodes, KEY, 1).await;
        for node in nodes.iter() {
            assert_eq!(redis_cli(node, &["EVAL", DELETE_OWN, "1", KEY, "their-token"]).await, "1");
        }
        // The test waits for 20 s at most. The lease of the other client lasts a minute.
        obtained(call).await.release().await.unwrap();
        assert_all_gone(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn error_for_a_key_with_data_shows_its_name_in_redis() {
    let nodes = Nodes::start(1).await;
    let manager = LockManager::builder().nodes(nodes.urls()).namespace("shop").build().unwrap();
    nodes[0].inspect().command::<()>(&["SET", "shop:order:7", "an order"]).await;
    let text = manager.acquire("order:7").await.unwrap_err().to_string();
    assert!(text.contains("its name in Redis is \"shop:order:7\"") && !text.contains("builder()"), "{text}");
}

#[tokio::test]
async fn key_that_holds_data_is_rejected_and_not_changed() {
    let data: [&[&str]; 3] = [&["SET", KEY, "an order"], &["HSET", KEY, "id", "7"], &["RPUSH", KEY, "a line"]];
    for command in data {
        let nodes = Nodes::start(3).await;
        let manager = manager(&nodes).await;
        for node in &nodes[..2] {
            node.inspect().command::<()>(command).await;
        }
        for wait in [Wait::None, Wait::For(SHORT_WAIT), Wait::Forever] {
            let call = manager.acquire(LockRequest::new(KEY).wait(wait));
            let error = tokio::time::timeout(PATIENCE, call).await.expect("nobody waits for data").unwrap_err();
            assert!(matches!(error, LockError::Refused { .. }), "{wait:?}: {error:?}");
            assert_eq!(error.to_string().matches("holds data that is not a lock").count(), 2, "{error}");
            assert!(error.to_string().contains("namespace"), "{error}");
        }
        wait_until_no_queue(&nodes, KEY).await;
        for node in &nodes[..2] {
            assert_eq!(redis_cli(node, &["DEL", KEY]).await, "1", "it is still there");
        }
        manager.try_acquire(KEY).await.unwrap().release().await.unwrap();
        assert_all_gone(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn data_on_a_minority_does_not_prevent_the_lock() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    nodes[0].inspect().command::<()>(&["SET", KEY, "an order"]).await;
    for wait in [Wait::None, Wait::Forever] {
        manager.acquire(LockRequest::new(KEY).wait(wait)).await.unwrap().release().await.unwrap();
    }
    assert_eq!(redis_cli(&nodes[0], &["GETDEL", KEY]).await, "an order");
    assert_all_gone(&manager, &nodes).await;
}

#[tokio::test]
async fn contended_key_is_checked_for_data_only_once() {
    let nodes = Nodes::start(1).await;
    let managers = [manager(&nodes).await, manager(&nodes).await];
    let held = managers[0].acquire(KEY).await.unwrap();
    // Each new connection asks for the permission to run it.
    let before = nodes[0].inspect().calls("pttl").await;
    for _ in 0..5 {
        assert!(managers[1].try_acquire(KEY).await.unwrap_err().is_contended());
    }
    assert_eq!(nodes[0].inspect().calls("pttl").await, before + 1);
    held.release().await.unwrap();
    assert_all_gone(&managers[1], &nodes).await;
}

#[tokio::test]
async fn contended_call_reports_the_remaining_lease() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let manager = manager(&nodes).await;
        hold(&nodes, KEY, &["PX", "60000"]).await;
        if size == 3 {
            // One node is not a majority, so its shorter lease must not shorten the estimate.
            nodes[0].inspect().command::<()>(&["PEXPIRE", KEY, "10000"]).await;
        }
        // By the question after the first try, from memory, and by the queues.
        for wait in [Wait::None, Wait::None, Wait::For(SHORT_WAIT)] {
            let error = manager.acquire(LockRequest::new(KEY).wait(wait)).await.unwrap_err();
            let left = error.retry_after().unwrap_or_else(|| panic!("{error:?}")).as_secs();
            assert!((30..=60).contains(&left), "{error:?}");
        }
        for node in nodes.iter() {
            assert_eq!(redis_cli(node, &["DEL", KEY]).await, "1");
        }
        let ours = manager.acquire(LockRequest::new(KEY).ttl(Duration::from_secs(20))).await.unwrap();
        for wait in [Wait::None, Wait::For(Duration::from_millis(200))] {
            let error = manager.acquire(LockRequest::new(KEY).wait(wait)).await.unwrap_err();
            let left = error.retry_after().unwrap_or_else(|| panic!("{error:?}")).as_secs();
            assert!((1..=20).contains(&left), "that of another call of this process: {error:?}");
        }
        ours.release().await.unwrap();
        assert_all_gone(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn free_lock_goes_to_the_first_waiter_in_the_queue() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let proxies = nodes.proxied().await;
        let managers = [manager(&nodes).await, manager_through(&proxies, &nodes).await];
        hold(&nodes, KEY, &["PX", "60000"]).await;
        let [first, second] = queue_up(&managers, &nodes, KEY).await.try_into().unwrap();
        for (node, proxy) in nodes.iter().zip(&proxies) {
            assert_eq!(redis_cli(node, &["DEL", KEY]).await, "1");
            // After a cut, the manager asks again on its new connection.
            proxy.cut().await;
        }
        let guard = obtained(first).await;
        assert!(!second.is_finished());
        drop(guard);
        obtained(second).await.release().await.unwrap();
        assert_all_gone(&managers[0], &nodes).await;
    }
}
