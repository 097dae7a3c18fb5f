//! Servers whose clocks are set forward or back while locks are held.

use crate::support::{SIZES, acquired_everywhere, builder, connected, holders, known_everywhere, majority};
use crate::waiters::assert_all_gone;
use redlock_runtime::admin::BreakOptions;
use redlock_runtime::{LockError, LockGuard, LockManager, LockRequest, Mode};
use redlock_tests::{Nodes, PATIENCE, Proxy, RedisServer, eventually, eventually_eq};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const KEY: &str = "order:7";
const TTL: Duration = Duration::from_secs(4);
/// Longer than any ttl here.
const HOUR: i64 = 3600;

async fn clocked(size: usize) -> Nodes {
    Nodes::start_with(size, |_, builder| builder.own_clock()).await
}

async fn locks(nodes: &Nodes) -> LockManager {
    connected(builder(nodes.urls()).default_ttl(TTL).node_timeout(TTL / 8), nodes).await
}

#[tokio::test]
async fn harness_sets_the_clock_of_a_server() {
    let nodes = clocked(1).await;
    let seconds = async || nodes[0].inspect().command::<(i64, i64)>(&["TIME"]).await.0;
    nodes[0].inspect().command::<()>(&["SET", KEY, "x", "EX", "60"]).await;
    let before = seconds().await;
    nodes[0].set_clock(HOUR);
    assert!((HOUR..HOUR + 60).contains(&(seconds().await - before)));
    assert_eq!(nodes[0].inspect().get(KEY).await, None, "it has expired");
    nodes[0].set_clock(-HOUR);
    assert!((-HOUR..60 - HOUR).contains(&(seconds().await - before)));
}

#[tokio::test]
async fn clock_step_of_one_server_does_not_affect_a_held_lock() {
    for size in [3, 5] {
        let nodes = clocked(size).await;
        let manager = locks(&nodes).await;
        let guard = acquired_everywhere(&manager, &nodes, KEY).await;
        nodes[0].set_clock(HOUR);
        let begun = Instant::now();
        while begun.elapsed() < 2 * TTL {
            guard.ensure_held().unwrap();
            tokio::time::sleep(TTL / 40).await;
        }
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn clock_step_of_a_majority_seen_by_one_lock_ends_all_leases() {
    // The other locks are not renewed. Without the information from the first lock, they would be considered held for their whole ttl.
    for size in [1, 3, 5] {
        let nodes = clocked(size).await;
        let manager = locks(&nodes).await;
        let others: Vec<_> =
            (0..3).map(|i| LockRequest::new(format!("other:{i}")).ttl(10 * TTL).without_renewal()).collect();
        let mut guards = Vec::new();
        for request in others {
            guards.push(manager.acquire(request).await.unwrap());
        }
        let bodies = async {
            for guard in &guards {
                guard.lost().await;
            }
        };
        let shown = manager.acquire(LockRequest::new(KEY).without_renewal()).await.unwrap();
        nodes[..majority(size)].iter().for_each(|node| node.set_clock(HOUR));
        assert!(guards.iter().all(LockGuard::is_held), "nobody knows yet");
        let _ = shown.extend().await;
        tokio::time::timeout(TTL, bodies).await.expect("they are woken long before the end of their ttl");
        assert!(!guards.iter().any(LockGuard::is_held), "{size} nodes");
    }
}

#[tokio::test]
async fn minority_clock_step_keeps_leases_and_a_small_step_shortens_them() {
    let nodes = clocked(3).await;
    let manager = locks(&nodes).await;
    let other = manager.acquire(LockRequest::new("other").ttl(10 * TTL).without_renewal()).await.unwrap();
    let shown = acquired_everywhere(&manager, &nodes, KEY).await;
    nodes[0].set_clock(HOUR);
    shown.extend().await.unwrap();
    assert!(other.remaining() > 8 * TTL, "{:?}", other.remaining());
    // A step that is shorter than the lease.
    let step = 5 * TTL;
    nodes[1].set_clock(step.as_secs().try_into().unwrap());
    eventually(PATIENCE, "the step is noticed", async || {
        let _ = shown.extend().await;
        let left = other.remaining();
        if left < 5 * TTL { Ok(()) } else { Err(left) }
    })
    .await;
    assert!(other.remaining() > 2 * TTL, "{:?}", other.remaining());
    // The remaining time is accurate: the key exists until then on two nodes, one of which has the right clock.
    eventually(PATIENCE, "it ends", async || if other.is_held() { Err(other.remaining()) } else { Ok(()) }).await;
    assert!(nodes[1].inspect().pttl("other").await > 0);
}

#[tokio::test]
async fn overlap_after_a_clock_step_is_shorter_than_a_renewal_period() {
    // The keys expire at once, and only a command shows it. Bodies that are not stopped would overlap for a whole ttl.
    const LOOK: Duration = Duration::from_millis(5);
    for size in [1, 3, 5] {
        let nodes = clocked(size).await;
        let managers = [locks(&nodes).await, locks(&nodes).await];
        let (inside, begun) = (AtomicUsize::new(0), Instant::now());
        let is_over = || begun.elapsed() > 3 * TTL;
        let call = async |manager: &LockManager| {
            while !is_over() {
                let body = async |_: &LockGuard| {
                    let _inside = Inside::enter(&inside);
                    while !is_over() {
                        tokio::time::sleep(LOOK).await;
                    }
                    Ok(())
                };
                let outcome = manager.with_lock(LockRequest::new(KEY).wait(PATIENCE), body).await;
                assert!(matches!(outcome, Ok(()) | Err(LockError::Lost { .. })), "{outcome:?}");
            }
        };
        let steps = async {
            for hours in 1..4 {
                tokio::time::sleep(TTL * 2 / 3).await;
                nodes[..majority(size)].iter().for_each(|node| node.set_clock(hours * HOUR));
            }
        };
        let watch = async {
            // Counts looks, because no body can be stopped while the machine pauses.
            let (mut looks, mut longest) = (0_u32, 0);
            while !is_over() {
                looks = if inside.load(Ordering::SeqCst) > 1 { looks + 1 } else { 0 };
                longest = longest.max(looks);
                tokio::time::sleep(LOOK).await;
            }
            longest * LOOK
        };
        let (.., overlap) = tokio::join!(call(&managers[0]), call(&managers[1]), steps, watch);
        assert!(overlap < TTL / 2, "{size} nodes: {overlap:?}");
    }
}

/// Counts the bodies that are inside.
struct Inside<'a>(&'a AtomicUsize);

impl<'a> Inside<'a> {
    fn enter(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn lock_expired_at_a_majority_is_lost_at_its_next_renewal() {
    for size in [1, 3, 5] {
        let nodes = clocked(size).await;
        let manager = locks(&nodes).await;
        // On every node: a late node that grants after its step grants a normal lease.
        let guard = acquired_everywhere(&manager, &nodes, KEY).await;
        nodes[..majority(size)].iter().for_each(|node| node.set_clock(HOUR));
        let lost = tokio::time::timeout(TTL, guard.lost()).await.expect("at its next renewal");
        assert!(matches!(lost, LockError::Lost { .. }), "{lost:?}");
    }
}

#[tokio::test]
async fn clocks_set_back_do_not_affect_held_locks() {
    for size in [1, 3] {
        let nodes = clocked(size).await;
        let manager = locks(&nodes).await;
        let other = manager.acquire(LockRequest::new("other").ttl(10 * TTL).without_renewal()).await.unwrap();
        let guard = acquired_everywhere(&manager, &nodes, KEY).await;
        nodes.iter().for_each(|node| node.set_clock(-HOUR));
        let begun = Instant::now();
        while begun.elapsed() < TTL {
            guard.ensure_held().unwrap();
            other.ensure_held().unwrap();
            tokio::time::sleep(TTL / 40).await;
        }
        assert_eq!(holders(&nodes, &guard).await, size);
        guard.release().await.unwrap();
        let free = async || manager.try_acquire(KEY).await.is_ok();
        eventually_eq(PATIENCE, "it is given back all the same", true, free).await;
    }
}

/// No process renews or releases the lock any more. Its key lives for as much longer as the clocks were set back, until it is broken.
#[tokio::test]
async fn clocks_set_back_keep_the_lock_of_a_dead_holder_until_it_is_broken() {
    for size in [1, 3] {
        let nodes = clocked(size).await;
        let proxies = nodes.proxied().await;
        let [dead, other] = [connected(builder(proxies.iter().map(Proxy::url)), &nodes).await, locks(&nodes).await];
        let guard = acquired_everywhere(&dead, &nodes, KEY).await;
        let token = *guard.token();
        for proxy in &proxies {
            proxy.refuse(true).await;
            proxy.cut().await;
        }
        nodes.iter().for_each(|node| node.set_clock(-HOUR));
        for node in nodes.iter() {
            let left = node.inspect().pttl(KEY).await;
            assert!(left > (HOUR - 60) * 1000, "{left} ms are left, which no ttl permits");
        }
        let error = other.try_acquire(KEY).await.unwrap_err();
        assert!(matches!(error, LockError::Contended { .. }), "{size} nodes: {error}");
        let report = other.break_lock(KEY, BreakOptions::new(token).by_force()).await;
        assert!(report.is_broken(), "{report}");
        other.try_acquire(KEY).await.unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn clock_step_is_detected_across_a_restart() {
    // The first reading of the clock is taken with the first connection.
    let nodes = clocked(1).await;
    let manager = locks(&nodes).await;
    let other = manager.acquire(LockRequest::new("other").ttl(10 * TTL).without_renewal()).await.unwrap();
    nodes[0].set_clock(HOUR);
    nodes.iter().for_each(RedisServer::kill);
    nodes[0].restart_empty().await;
    tokio::time::timeout(TTL, other.lost()).await.expect("without a renewal");
}

#[tokio::test]
async fn clock_step_is_detected_by_short_acquisitions_alone() {
    for size in [1, 3] {
        let nodes = clocked(size).await;
        let manager = locks(&nodes).await;
        let other = manager.acquire(LockRequest::new("other").ttl(10 * TTL).without_renewal()).await.unwrap();
        nodes[..majority(size)].iter().for_each(|node| node.set_clock(HOUR));
        // These locks are not renewed. Without a question for the time, the other lock would be considered held for its whole `ttl`.
        eventually(PATIENCE, "the other lock is lost", async || {
            let _ = manager.try_acquire(KEY).await.unwrap().release().await;
            if other.is_held() { Err(other.remaining()) } else { Ok(()) }
        })
        .await;
        assert!(matches!(other.lost().await, LockError::Lost { .. }));
    }
}

fn folder() -> LockRequest {
    LockRequest::path("/A").mode(Mode::Shared)
}

fn permit(permits: u32) -> LockRequest {
    LockRequest::new("export").permits(permits)
}

/// Four requests: a lock whose holder dies; a lock beside it that stays held, and keeps the key of both; a lock that fits beside the
/// second only after the first is over; and a lock that only the dead holders block.
type Scene = (&'static str, [fn() -> LockRequest; 4]);

const SCENES: [Scene; 3] = [
    ("a writer below a folder", [|| LockRequest::path("/A/C"), || folder_below("D"), folder, folder]),
    (
        "a reader of a folder",
        [folder, || folder_below("D"), || LockRequest::path("/A/C"), || LockRequest::path("/A/E")],
    ),
    ("who has a permit", [|| permit(3), || permit(3), || permit(2), || permit(2)]),
];

fn folder_below(name: &str) -> LockRequest {
    LockRequest::path(&*format!("/A/{name}")).mode(Mode::Shared)
}

#[tokio::test]
async fn expired_entries_are_not_revived_by_a_clock_set_back() {
    // A node may remove the dead entries of only one class at an admission. A clock step would revive the others: they would block
    // admissible requests for an hour, and would stay in the key for the same time.
    for size in SIZES {
        let nodes = clocked(size).await;
        for (name, [dead, beside, living, late]) in SCENES {
            let [ours, theirs, others] = [locks(&nodes).await, locks(&nodes).await, locks(&nodes).await];
            let dead = known_everywhere(&ours, &nodes, dead().ttl(TTL / 4).without_renewal()).await;
            let beside = known_everywhere(&theirs, &nodes, beside().ttl(10 * TTL)).await;
            assert!(matches!(dead.lost().await, LockError::Lost { .. }), "{name}");
            // The nodes keep a lease a little longer than the client counts on it.
            tokio::time::sleep(TTL / 8).await;
            let living = known_everywhere(&theirs, &nodes, living().ttl(10 * TTL)).await;
            nodes.iter().for_each(|node| node.set_clock(-HOUR));
            beside.release().await.unwrap();
            let late = match others.acquire(late().wait(PATIENCE)).await {
                Ok(late) => late,
                Err(error) => panic!("{name}: {error}; {:#?}", nodes.contents().await),
            };
            assert!(living.is_held() && late.is_held(), "{name}, {size} nodes");
            drop((dead, living, late));
            for manager in [ours, theirs, others] {
                assert_all_gone(&manager, &nodes).await;
            }
            nodes.iter().for_each(|node| node.set_clock(0));
        }
    }
}
