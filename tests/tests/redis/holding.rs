//! Locks that are held for longer than their ttl: renewal, and the end of the body when it fails (defects 9 to 14 of
//! peers).

use crate::support::{
    BRIEF, acquired_everywhere, assert_nothing_left, builder, connected, holders, majority, manager, manager_through,
    owner_at, polled,
};
use redlock_runtime::{LockError, LockGuard, LockManager, LockRequest, LossCause};
use redlock_tests::{Nodes, PATIENCE, RedisServer, eventually_eq};
use std::future::pending;
use std::pin::pin;
use std::time::{Duration, Instant};
use tokio::time::sleep;

const KEY: &str = "order:7";
/// Short enough to wait for its end, and long enough that a renewed lock survives a pause of one second.
const TTL: Duration = Duration::from_secs(2);
/// Number of attempts with a very short lease. A busy machine may be late by this much now and then.
const MOST_TRIES: usize = 5;

/// Returns a manager with short leases and short node timeouts.
async fn brief(nodes: &Nodes) -> LockManager {
    connected(builder(nodes.urls()).node_timeout(BRIEF).default_ttl(TTL), nodes).await
}

fn cause(error: LockError) -> LossCause {
    match error {
        LockError::Lost { cause, .. } => cause,
        other => panic!("a lost lock expected: {other:?}"),
    }
}

/// Returns the error of a body that never ends by itself.
async fn stopped(manager: &LockManager, request: LockRequest, begin: impl AsyncFnOnce()) -> LockError {
    let body = async |_: &LockGuard| -> Result<(), LockError> {
        begin().await;
        pending().await
    };
    tokio::time::timeout(PATIENCE, manager.with_lock(request, body)).await.expect("the body is stopped").unwrap_err()
}

#[tokio::test]
async fn body_runs_for_many_ttls_with_one_frozen_node_of_three() {
    // Defect 11: a hung node delays the renewal of the others.
    let nodes = Nodes::start(3).await;
    let manager = brief(&nodes).await;
    let body = async |guard: &LockGuard| {
        nodes[0].freeze();
        sleep(4 * TTL).await;
        guard.ensure_held()?;
        assert_eq!(holders_of(&nodes[1..], guard).await, 2);
        Ok::<_, LockError>(7)
    };
    assert_eq!(manager.with_lock(KEY, body).await.unwrap(), 7);
    nodes[0].thaw();
    assert_nothing_left(&manager, &nodes).await;
}

async fn holders_of(nodes: &[RedisServer], guard: &LockGuard) -> usize {
    let mut holders = 0;
    for node in nodes {
        holders += usize::from(owner_at(node, KEY).await.as_deref() == Some(guard.token().as_str()));
    }
    holders
}

#[tokio::test]
async fn body_is_stopped_before_the_keys_expire_on_a_frozen_majority() {
    for (size, frozen) in [(1, 1), (3, 2), (5, 3)] {
        let nodes = Nodes::start(size).await;
        // When the lease is over for the client, half of the ttl is left at the nodes. So a busy machine may be late.
        let ttl = Duration::from_secs(4);
        let described =
            builder(nodes.urls()).node_timeout(BRIEF).default_ttl(ttl).tuning(|tuning| tuning.drift_factor(0.5));
        let manager = connected(described, &nodes).await;
        let begun = Instant::now();
        let error = stopped(&manager, KEY.into(), async || nodes[..frozen].iter().for_each(RedisServer::freeze)).await;
        assert!(begun.elapsed() > ttl / 4, "not for a single silent round: {error}");
        let held_for = begun.elapsed();
        let LossCause::NotRenewed { causes, .. } = cause(error) else { panic!("{size} nodes") };
        assert!(causes.len() >= frozen, "{causes:?}");
        assert!(held_for < ttl, "the keys are set to live for a ttl: {held_for:?}");
        nodes[..frozen].iter().for_each(RedisServer::thaw);
        assert_nothing_left(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn body_is_stopped_after_all_nodes_are_killed() {
    let nodes = Nodes::start(3).await;
    let manager = brief(&nodes).await;
    let error = stopped(&manager, KEY.into(), async || nodes.iter().for_each(RedisServer::kill)).await;
    assert!(matches!(cause(error), LossCause::NotRenewed { .. }));
}

/// Interference of another client with the key of a held lock.
#[derive(Clone, Copy, Debug)]
enum Foreign {
    Deletes,
    Overwrites,
    Replaces,
}

impl Foreign {
    async fn strike(self, node: &RedisServer) {
        match self {
            Self::Deletes => node.inspect().command::<()>(&["DEL", KEY]).await,
            Self::Overwrites => node.inspect().command::<()>(&["SET", KEY, "another", "PX", "60000"]).await,
            Self::Replaces => {
                node.inspect().command::<()>(&["DEL", KEY]).await;
                node.inspect().command::<()>(&["RPUSH", KEY, "a list"]).await;
            }
        }
    }
}

#[tokio::test]
async fn body_is_stopped_at_the_next_renewal_if_a_majority_lost_its_key() {
    for foreign in [Foreign::Deletes, Foreign::Overwrites, Foreign::Replaces] {
        for size in [1, 3] {
            let nodes = Nodes::start(size).await;
            let manager = brief(&nodes).await;
            let ttl = Duration::from_secs(3);
            let strike = async || {
                for node in &nodes[..majority(size)] {
                    foreign.strike(node).await;
                }
            };
            let begun = Instant::now();
            let error = stopped(&manager, LockRequest::new(KEY).ttl(ttl), strike).await;
            assert_eq!(cause(error), LossCause::Taken, "{foreign:?}, {size} nodes");
            assert!(begun.elapsed() < ttl, "at once, and not at the end of the lease: {:?}", begun.elapsed());
        }
    }
}

#[tokio::test]
async fn lock_survives_the_loss_of_its_key_on_a_minority() {
    let nodes = Nodes::start(3).await;
    let manager = brief(&nodes).await;
    let body = async |guard: &LockGuard| {
        Foreign::Overwrites.strike(&nodes[0]).await;
        sleep(2 * TTL).await;
        guard.ensure_held()
    };
    manager.with_lock(KEY, body).await.unwrap();
}

#[tokio::test]
async fn short_ttl_is_renewed_for_the_whole_body_without_a_hot_loop() {
    // Defect 12: 800 renewals per second at a ttl of 500 ms.
    let nodes = Nodes::start(1).await;
    let manager = connected(builder(nodes.urls()).node_timeout(BRIEF), &nodes).await;
    let mut before = nodes[0].inspect().calls("pexpire").await;
    let request = || LockRequest::new(KEY).ttl(Duration::from_millis(500));
    let body = async |_: &LockGuard| {
        sleep(Duration::from_secs(5)).await;
        Ok(())
    };
    let mut lost: Vec<LockError> = Vec::new();
    while let Err(error) = manager.with_lock(request(), body).await {
        lost.push(error);
        assert!(lost.len() < MOST_TRIES, "{lost:?}");
        before = nodes[0].inspect().calls("pexpire").await;
    }
    assert_nothing_left(&manager, &nodes).await;
    let renewals = nodes[0].inspect().calls("pexpire").await - before;
    assert!((10..=100).contains(&renewals), "{renewals} renewals in 5 s");
}

#[tokio::test]
async fn body_of_ten_seconds_runs_on_leases_of_200_ms() {
    let nodes = Nodes::start(3).await;
    let manager = connected(builder(nodes.urls()).node_timeout(BRIEF), &nodes).await;
    let request = || LockRequest::new(KEY).ttl(Duration::from_millis(200));
    let body = async |_: &LockGuard| {
        sleep(Duration::from_secs(10)).await;
        Ok(())
    };
    let mut lost: Vec<LockError> = Vec::new();
    while let Err(error) = manager.with_lock(request(), body).await {
        lost.push(error);
        assert!(lost.len() < MOST_TRIES, "{lost:?}");
    }
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn unpolled_extension_does_not_block_renewal() {
    let nodes = Nodes::start(3).await;
    let manager = brief(&nodes).await;
    let guard = manager.acquire(KEY).await.unwrap();
    let mut extension = pin!(guard.extend());
    assert!(polled(&mut extension, 1).await.is_none());
    sleep(4 * TTL).await;
    guard.ensure_held().unwrap();
    extension.await.unwrap();
    guard.release().await.unwrap();
}

#[tokio::test]
async fn short_body_sends_no_renewal_and_renewals_end_with_the_guard() {
    // Defect 12: a renewal that outlives the release.
    let nodes = Nodes::start(3).await;
    let manager = brief(&nodes).await;
    for node in nodes.iter() {
        node.inspect().command::<()>(&["CONFIG", "RESETSTAT"]).await;
    }
    for _ in 0..100 {
        manager.acquire(KEY).await.unwrap().release().await.unwrap();
    }
    let unrenewed = manager.acquire(LockRequest::new("order:8").without_renewal()).await.unwrap();
    assert!(matches!(cause(unrenewed.lost().await), LossCause::Expired));
    let kept = manager.acquire(KEY).await.unwrap();
    sleep(TTL).await;
    assert!(kept.is_held(), "renewed");
    kept.release().await.unwrap();
    let renewals = nodes[0].inspect().calls("pexpire").await;
    assert!(renewals > 0);
    sleep(TTL).await;
    assert_eq!(nodes[0].inspect().calls("pexpire").await, renewals);
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn stuck_body_is_stopped_after_max_hold() {
    // Defect 12: an endless renewal.
    let nodes = Nodes::start(3).await;
    let manager = brief(&nodes).await;
    let begun = Instant::now();
    let error = stopped(&manager, LockRequest::new(KEY).max_hold(2 * TTL), async || {}).await;
    assert!(begun.elapsed() >= 2 * TTL, "{:?}", begun.elapsed());
    assert_eq!(cause(error), LossCause::MaxHold);
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn leaked_guard_loses_its_lock_after_max_hold() {
    // `max_hold` ends the lock of a task that is stuck and cannot be dropped.
    let nodes = Nodes::start(1).await;
    let (ours, theirs) = (brief(&nodes).await, brief(&nodes).await);
    let stuck = ours.acquire(LockRequest::new(KEY).max_hold(TTL / 2)).await.unwrap();
    for manager in [&theirs, &ours] {
        let next = manager.acquire(LockRequest::new(KEY).wait(PATIENCE)).await.unwrap();
        assert!(!stuck.is_held());
        next.release().await.unwrap();
    }
    drop(stuck);
    assert_nothing_left(&ours, &nodes).await;
}

#[tokio::test]
async fn released_lock_stays_taken_until_min_hold_has_passed() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
        let window = Duration::from_secs(2);
        let begun = Instant::now();
        ours.acquire(LockRequest::new(KEY).min_hold(window)).await.unwrap().release().await.unwrap();
        for manager in [&ours, &theirs] {
            let error = manager.try_acquire(KEY).await.unwrap_err();
            assert!(matches!(error, LockError::Contended { .. }), "{error:?}");
        }
        // Waiters neither shorten the window nor miss its end.
        let after = async |manager: &LockManager| {
            let request = LockRequest::new(KEY).wait(PATIENCE);
            manager.acquire(request).await.unwrap().release().await.unwrap();
            begun.elapsed()
        };
        let (first, second) = tokio::join!(after(&ours), after(&theirs));
        assert!(first.min(second) + Duration::from_millis(50) > window, "{first:?}, {second:?}");
        assert_nothing_left(&ours, &nodes).await;
        assert_nothing_left(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn node_unreachable_at_the_end_of_min_hold_is_released_later() {
    // The default ttl is longer than the test, so the key does not expire by itself.
    let nodes = Nodes::start(3).await;
    let proxies = nodes.proxied().await;
    let ours = manager_through(&proxies, &nodes).await;
    let request = LockRequest::new(KEY).min_hold(Duration::from_millis(200));
    let guard = ours.acquire(request).await.unwrap();
    eventually_eq(PATIENCE, "every node holds it", 3, async || holders(&nodes, &guard).await).await;
    proxies[0].refuse(true).await;
    proxies[0].cut().await;
    drop(guard);
    let is_taken = async |node: usize| nodes[node].inspect().get(KEY).await.is_some();
    eventually_eq(PATIENCE, "the others end it", [true, false, false], async || {
        [is_taken(0).await, is_taken(1).await, is_taken(2).await]
    })
    .await;
    proxies[0].refuse(false).await;
    nodes.assert_empty(PATIENCE).await;
}

#[tokio::test]
async fn body_that_released_its_lock_continues() {
    let nodes = Nodes::start(3).await;
    let (ours, theirs) = (brief(&nodes).await, brief(&nodes).await);
    let body = async |guard: &LockGuard| {
        guard.release().await?;
        assert!(!guard.is_held() && guard.remaining().is_zero());
        assert_eq!(cause(guard.ensure_held().unwrap_err()), LossCause::Released);
        assert_eq!(cause(guard.lost().await), LossCause::Released);
        let next = theirs.acquire(KEY).await?;
        sleep(2 * TTL).await;
        next.ensure_held()?;
        Ok::<_, LockError>(7)
    };
    assert_eq!(ours.with_lock(KEY, body).await.unwrap(), 7);
    assert_nothing_left(&ours, &nodes).await;
    assert_nothing_left(&theirs, &nodes).await;
}

#[tokio::test]
async fn guard_reports_near_expiry_before_the_loss() {
    let nodes = Nodes::start(3).await;
    let manager = brief(&nodes).await;
    // The warning precedes the loss by more than a second, so a busy machine can observe it.
    let ttl = Duration::from_secs(6);
    let guard = acquired_everywhere(&manager, &nodes, LockRequest::new(KEY).ttl(ttl)).await;
    nodes.iter().for_each(RedisServer::freeze);
    guard.near_expiry().await;
    guard.ensure_held().unwrap();
    assert!(guard.remaining() <= ttl / 5, "{guard:?}");
    assert!(matches!(cause(guard.lost().await), LossCause::NotRenewed { .. }));
    guard.ensure_held().unwrap_err();
    nodes.iter().for_each(RedisServer::thaw);
    drop(guard);
    assert_nothing_left(&manager, &nodes).await;
}
