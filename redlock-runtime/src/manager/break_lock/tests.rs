//! Tests of breaking a lock: reports of a stopped holder, and the commands that follow. In virtual time, with one node.

use super::*;
use crate::LockRequest;
use crate::client::hooked_node::{Fate, HookedNode};
use crate::guard::LockGuard;
use crate::lock::owner_token::ManagerId;
use crate::protocol::timing::STOPPING;
use crate::time::clock::Clock;
use crate::time::token_clock::TokenTime;
use std::sync::{Mutex, PoisonError};
use tokio::time::{advance, sleep};

const KEY: &str = "order:7";
const TTL: Duration = Duration::from_secs(50);

/// Manager with one node, and the commands that the node has received about breakers.
struct Scene {
    node: Arc<HookedNode>,
    manager: LockManager,
    sent: Arc<Mutex<Vec<(Verb, OwnerToken)>>>,
}

impl Scene {
    fn new(fate: impl Fn(Verb) -> Fate + Send + Sync + 'static) -> Self {
        let sent: Arc<Mutex<Vec<_>>> = Arc::default();
        let seen = Arc::clone(&sent);
        let node = HookedNode::new(Clock::tokio(), move |command| {
            seen.lock().unwrap_or_else(PoisonError::into_inner).push((command.verb, command.subject.token));
            fate(command.verb)
        });
        let manager = LockManager::new(Arc::new(LocalQueue::new(Arc::new(node.shared()), None)));
        Self { node, manager, sent }
    }

    fn calm() -> Self {
        Self::new(|_| Fate::Answered)
    }

    async fn acquired(&self) -> LockGuard {
        self.manager.acquire(LockRequest::new(KEY).ttl(TTL).without_renewal()).await.unwrap()
    }

    /// Replaces `token` by the token of another breaker, which is returned, and notifies the holder.
    fn revoke(&self, token: OwnerToken) -> OwnerToken {
        let by = OwnerToken::new(ManagerId::random(), TokenTime::new(1, 0));
        revoked(&self.manager.local, 0, &Subject::new(KEY.into(), token), by);
        by
    }

    /// Breaks the lock of `token` without a wait, and returns the placeholder token.
    async fn stand_in(&self, token: OwnerToken) -> OwnerToken {
        let report = self.manager.break_lock(KEY, BreakOptions::new(token).wait(Duration::ZERO)).await;
        assert!(report.is_broken() && report.holder_notified && !report.holder_stopped, "{report}");
        report.placeholder.unwrap().token
    }

    /// Returns the commands about `token` so far.
    fn sent_about(&self, token: OwnerToken) -> Vec<Verb> {
        self.sent.lock().unwrap().iter().filter(|(_, about)| *about == token).map(|(verb, _)| *verb).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn released_holder_confirms_a_break_at_once() {
    let scene = Scene::calm();
    let guard = scene.acquired().await;
    let token = *guard.token();
    guard.release().await.unwrap();
    let by = scene.revoke(token);
    assert_eq!(scene.node.stopped(), [by]);
    scene.revoke(OwnerToken::new(ManagerId::random(), TokenTime::new(1, 0)));
    assert_eq!(scene.node.stopped(), [by], "that was none of ours");
}

#[tokio::test(start_paused = true)]
async fn superseded_holder_confirms_a_break_when_its_body_has_stopped() {
    let scene = Scene::calm();
    let guard = scene.acquired().await;
    advance(2 * TTL).await;
    let next = scene.acquired().await;
    assert_ne!(guard.token(), next.token());
    let by = scene.revoke(*guard.token());
    assert_eq!(scene.node.stopped(), [], "its guard is there");
    drop(guard);
    assert_eq!(scene.node.stopped(), [by]);
    assert!(next.is_held());
}

#[tokio::test(start_paused = true)]
async fn breakers_of_a_placeholder_are_notified_when_the_holder_stops() {
    let scene = Scene::calm();
    let guard = scene.acquired().await;
    let first = scene.stand_in(*guard.token()).await;
    let second = scene.stand_in(first).await;
    let third = scene.stand_in(second).await;
    assert_eq!(scene.node.stopped(), []);
    drop(guard);
    assert_eq!(scene.node.stopped(), [third, second, first], "told from the last to the first");
    assert!(scene.node.is_empty(), "whoever waits is served");
}

#[tokio::test(start_paused = true)]
async fn break_waits_for_the_body_to_stop_up_to_its_own_wait() {
    for (within, has_stopped) in [(STOPPING, false), (Duration::from_secs(60), true)] {
        let scene = Scene::calm();
        let guard = scene.acquired().await;
        let token = *guard.token();
        let body = tokio::spawn(async move {
            let lost = guard.lost().await;
            sleep(2 * STOPPING).await;
            drop(guard);
            lost
        });
        let report = scene.manager.break_lock(KEY, BreakOptions::new(token).wait(within)).await;
        assert_eq!(report.holder_stopped, has_stopped, "{report}");
        body.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn break_sends_its_release_only_after_its_revoke_is_answered() {
    let scene = Scene::new(|verb| if verb == Verb::Revoke { Fate::Unanswered } else { Fate::Answered });
    let guard = scene.acquired().await;
    let (manager, token) = (scene.manager.clone(), *guard.token());
    let broken = tokio::spawn(async move { manager.break_lock(KEY, token).await });
    let ours = loop {
        tokio::task::yield_now().await;
        let asked = scene.sent.lock().unwrap().iter().find(|(verb, _)| *verb == Verb::Revoke).copied();
        if let Some((_, ours)) = asked {
            break ours;
        }
    };
    scene.manager.shared().stopped(&Subject::new(KEY.into(), ours));
    assert_eq!(scene.sent_about(ours), [Verb::Revoke], "its answer is awaited");
    broken.await.unwrap();
    assert_eq!(scene.sent_about(ours), [Verb::Revoke, Verb::Release { claim: CLAIM }]);
}

#[tokio::test(start_paused = true)]
async fn cancelled_break_releases_its_placeholder() {
    let scene = Scene::new(|verb| if verb == Verb::Revoke { Fate::Unanswered } else { Fate::Answered });
    let guard = scene.acquired().await;
    let broken = scene.manager.break_lock(KEY, *guard.token());
    assert!(timeout(PATIENCE / 2, broken).await.is_err());
    let ours = scene.sent.lock().unwrap().last().unwrap().1;
    scene.manager.shared().stopped(&Subject::new(KEY.into(), ours));
    assert_eq!(scene.sent_about(ours), [Verb::Revoke, Verb::Release { claim: CLAIM }]);
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn shutdown_waits_for_a_placeholder_no_longer_than_its_lease() {
    let scene = Scene::new(|verb| match verb {
        Verb::Release { .. } => Fate::Unanswered,
        _ => Fate::Answered,
    });
    let guard = scene.acquired().await;
    let ours = scene.stand_in(*guard.token()).await;
    drop(guard);
    assert_eq!(scene.sent_about(ours).last(), Some(&Verb::Release { claim: CLAIM }));
    let is_settled = timeout(2 * TTL, scene.manager.shutdown()).await;
    assert_eq!(is_settled, Ok(false), "it is over by itself");
}

#[tokio::test(start_paused = true)]
async fn permit_waiter_is_notified_at_once_when_a_permit_is_broken() {
    for is_forced in [false, true] {
        let manager = LockManager::in_memory();
        let permit = || LockRequest::new(KEY).permits(1).wait(TTL);
        let guard = manager.acquire(permit()).await.unwrap();
        let waits = manager.clone();
        let call = tokio::spawn(async move { waits.acquire(permit()).await });
        // It has asked, and asks again after a while by itself.
        sleep(Duration::from_millis(100)).await;
        let (token, begun) = (*guard.token(), tokio::time::Instant::now());
        let options = BreakOptions::new(token);
        if is_forced {
            assert!(manager.break_lock(KEY, options.by_force()).await.is_broken());
        } else {
            let stops = async {
                guard.lost().await;
                drop(guard);
            };
            assert!(tokio::join!(manager.break_lock(KEY, options), stops).0.holder_stopped);
        }
        drop(call.await.unwrap().unwrap());
        assert_eq!(begun.elapsed(), Duration::ZERO, "by force: {is_forced}");
    }
}
