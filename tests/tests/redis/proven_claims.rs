//! A body may begin on proven claims while their extensions are on their way, and on no other claims.

use crate::support::{
    acquired_everywhere, asked, builder, connected, manager_through, wait_until_asked, wait_until_queued,
};
use crate::waiters::{Waiting, obtained, patient, waiting};
use redlock_runtime::{FencedGuard, LockError, LockGuard, LockManager, LossCause, NodeError};
use redlock_tests::{Builder, Flow, Nodes, PATIENCE, Proxy, eventually};
use std::time::Duration;
use tokio::time::{sleep, timeout};

const KEY: &str = "order:7";
const SIZES: [usize; 2] = [1, 3];
/// Longest duration of a claim, and unit of the ttls here.
const CLAIM: Duration = Duration::from_secs(1);

/// Holder of a lock, and a waiter whose commands the proxies can hold.
struct Scene {
    nodes: Nodes,
    proxies: Vec<Proxy>,
    waiter: LockManager,
    held: LockGuard,
}

impl Scene {
    async fn start(size: usize, configure: fn(Builder) -> Builder) -> Self {
        Self::with_ttl(30 * CLAIM, size, configure).await
    }

    /// Starts a scene whose holder uses this `ttl`.
    async fn with_ttl(ttl: Duration, size: usize, configure: fn(Builder) -> Builder) -> Self {
        let nodes = Nodes::start_with(size, |_, builder| configure(builder)).await;
        let proxies = nodes.proxied().await;
        let holder = connected(builder(nodes.urls()).default_ttl(ttl).node_timeout(ttl / 8), &nodes).await;
        let waiter = manager_through(&proxies, &nodes).await;
        let held = acquired_everywhere(&holder, &nodes, KEY).await;
        Self { nodes, proxies, waiter, held }
    }

    /// Hands the lock to the waiter, and holds its next commands. Runs `change` just before the hand-over.
    async fn hand_over(self, change: impl FnOnce(&Nodes)) -> Handed {
        let Self { nodes, proxies, waiter, held } = self;
        wait_until_queued(&nodes, KEY, 1).await;
        proxies.iter().for_each(Proxy::hold);
        let (asked, told) = (asked(&proxies), told(&proxies));
        change(&nodes);
        held.release().await.unwrap();
        for (proxy, told) in proxies.iter().zip(told) {
            proxy.wait_until("the wake-up is held back", |traffic| traffic.replies.received > told).await;
            proxy.replies(Flow::Pass);
        }
        wait_until_asked(&proxies, &asked).await;
        Handed { nodes, proxies, _waiter: waiter }
    }
}

/// Scene after the hand-over. The extensions of the waiter's claims are held in the proxies.
struct Handed {
    nodes: Nodes,
    proxies: Vec<Proxy>,
    _waiter: LockManager,
}

impl Handed {
    /// Checks that the call waits for the answers to its extensions, and then gets the lock.
    async fn waits_for_answers(self, mut call: Waiting) {
        assert!(timeout(CLAIM / 5, &mut call).await.is_err(), "it has begun before an answer was here");
        self.proxies.iter().for_each(Proxy::pass);
        let guard = obtained(call).await;
        assert!(guard.is_held());
        guard.release().await.unwrap();
    }
}

/// Returns the number of bytes that have arrived from the server at each proxy.
fn told(proxies: &[Proxy]) -> Vec<u64> {
    proxies.iter().map(|proxy| proxy.traffic().replies.received).collect()
}

#[tokio::test]
async fn body_starts_on_proven_claims_before_the_extension_is_answered() {
    for size in SIZES {
        let scene = Scene::start(size, |builder| builder).await;
        let call = waiting(&scene.waiter, patient(KEY));
        let handed = scene.hand_over(|_| {}).await;
        let guard = obtained(call).await;
        assert!(guard.is_held() && guard.remaining() < CLAIM, "{guard:?}");
        assert!(timeout(CLAIM / 5, guard.near_expiry()).await.is_err(), "nothing is wrong");
        handed.proxies.iter().for_each(Proxy::pass);
        eventually(PATIENCE, "claims become leases", async || {
            if guard.remaining() > CLAIM { Ok(()) } else { Err(guard.remaining()) }
        })
        .await;
        guard.release().await.unwrap();
        handed.nodes.assert_empty(PATIENCE).await;
    }
}

#[tokio::test]
async fn running_body_is_stopped_if_the_extension_finds_the_lock_lost() {
    for size in SIZES {
        let scene = Scene::start(size, |builder| builder).await;
        let call = waiting(&scene.waiter, patient(KEY));
        let handed = scene.hand_over(|_| {}).await;
        let guard = obtained(call).await;
        for node in handed.nodes.iter() {
            node.inspect().command::<u64>(&["DEL", KEY]).await;
        }
        let left = guard.remaining();
        assert!(!left.is_zero());
        // Only the watchdog looks after this lock.
        let lost = tokio::spawn(async move { guard.lost().await });
        sleep(left / 3).await;
        handed.proxies.iter().for_each(Proxy::pass);
        let lost = timeout(left / 3, lost).await.expect("an answer ends it long before the claims end").unwrap();
        // Of three nodes, two claims count at first, and one denial can be enough.
        let is_denied = match &lost {
            LockError::Lost { cause: LossCause::NotRenewed { causes, .. }, .. } => {
                size > 1 && causes.iter().any(|cause| *cause.error() == NodeError::Held)
            }
            lost => matches!(lost, LockError::Lost { cause: LossCause::Taken, .. }),
        };
        assert!(is_denied, "{lost:?}");
    }
}

#[tokio::test]
async fn unpolled_lock_stays_held_with_late_extension_replies() {
    tokio::join!(
        check_late_answers(30 * CLAIM, true),
        check_late_answers(30 * CLAIM, false),
        check_late_answers(120 * CLAIM, true),
        check_late_answers(120 * CLAIM, false),
    );
}

/// Delays the answers while the acquiring task has ended and its guard is not polled. The lock must stay held.
async fn check_late_answers(ttl: Duration, renew: bool) {
    let scene = Scene::start(1, |builder| builder).await;
    let request = patient(KEY).ttl(ttl);
    let call = waiting(&scene.waiter, if renew { request } else { request.without_renewal() });
    let handed = scene.hand_over(|_| {}).await;
    let guard = obtained(call).await;
    sleep(CLAIM * 2 / 5).await;
    handed.proxies.iter().for_each(Proxy::pass);
    sleep(2 * CLAIM).await;
    assert!(guard.is_held() && guard.remaining() > ttl / 2, "ttl {ttl:?}, renew {renew}: {guard:?}");
}

#[tokio::test]
async fn call_with_min_hold_waits_for_the_extension() {
    for size in SIZES {
        let scene = Scene::start(size, |builder| builder).await;
        let call = waiting(&scene.waiter, patient(KEY).min_hold(CLAIM / 10));
        let handed = scene.hand_over(|_| {}).await;
        handed.waits_for_answers(call).await;
    }
}

#[tokio::test]
async fn claim_without_an_extension_reply_ends_with_its_own_ttl() {
    // A claim is at most as long as the previous holder's ttl. A longer count would overlap with a third holder.
    let ttl = CLAIM * 4 / 5;
    for size in SIZES {
        let scene = Scene::with_ttl(ttl, size, |builder| builder).await;
        let call = waiting(&scene.waiter, patient(KEY));
        let handed = scene.hand_over(|_| {}).await;
        let guard = obtained(call).await;
        assert!(guard.remaining() < ttl, "{guard:?}");
        timeout(PATIENCE, guard.lost()).await.expect("no answer makes a lease of it");
        for node in handed.nodes.iter() {
            eventually(PATIENCE, "the key has expired", async || node.inspect().get(KEY).await.map_or(Ok(()), Err))
                .await;
        }
    }
}

#[tokio::test]
async fn body_waits_for_the_extension_after_a_clock_step() {
    for size in SIZES {
        let scene = Scene::start(size, Builder::own_clock).await;
        let call = waiting(&scene.waiter, patient(KEY));
        let handed = scene.hand_over(|nodes| nodes.iter().for_each(|node| node.set_clock(2))).await;
        handed.waits_for_answers(call).await;
    }
}

#[tokio::test]
async fn body_waits_for_the_extension_without_resp3() {
    // Wake-ups arrive on a separate connection.
    let scene = Scene::start(1, |builder| builder.without_command("HELLO")).await;
    let call = waiting(&scene.waiter, patient(KEY));
    let handed = scene.hand_over(|_| {}).await;
    handed.waits_for_answers(call).await;
}

#[tokio::test]
async fn fenced_call_waits_for_the_extension() {
    for size in SIZES {
        let scene = Scene::start(size, |builder| builder).await;
        let waiter = scene.waiter.clone();
        let call: Waiting =
            tokio::spawn(async move { waiter.acquire(patient(KEY).fencing()).await.map(FencedGuard::into_guard) });
        let handed = scene.hand_over(|_| {}).await;
        handed.waits_for_answers(call).await;
    }
}
