//! Breaking a lock by command: its holder is notified and stops, waiters are served, and other locks are not affected.

use crate::support::{
    SHORT_WAIT, acquired_everywhere, assert_nothing_left, builder, holders, known_everywhere, manager,
    wait_until_queued,
};
use redlock_runtime::admin::{BreakOptions, BreakOutcome, BreakReport};
use redlock_runtime::{LockError, LockManager, LockRequest, LossCause, Wait};
use redlock_tests::{Nodes, PATIENCE, RedisServer, eventually};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::timeout;

/// Short enough to be renewed soon, and longer than the generous node timeout.
const RENEWED_SOON: Duration = Duration::from_secs(6);

fn cause(error: LockError) -> LossCause {
    match error {
        LockError::Lost { cause, .. } => cause,
        other => panic!("{other}"),
    }
}

fn outcomes(report: &BreakReport) -> Vec<BreakOutcome> {
    report.nodes.iter().map(|node| node.outcome.clone()).collect()
}

/// Waits until the manager of `token` listens on every node.
pub(crate) async fn wait_until_listening(nodes: &Nodes, token: &str) {
    let channel = format!("redlock::{}", token.split_once('@').unwrap().1);
    for node in nodes.iter() {
        eventually(PATIENCE, "it listens", async || {
            let (_, listeners): (String, u64) = node.inspect().command(&["PUBSUB", "NUMSUB", &channel]).await;
            if listeners > 0 { Ok(()) } else { Err(listeners) }
        })
        .await;
    }
}

/// Starts a call that waits for `order:7` without a limit.
fn waiting(manager: &LockManager) -> tokio::task::JoinHandle<Result<redlock_runtime::LockGuard, LockError>> {
    let manager = manager.clone();
    tokio::spawn(async move { manager.acquire(LockRequest::new("order:7").wait(Wait::Forever)).await })
}

#[tokio::test]
async fn notified_holder_stops_before_the_next_holder_starts() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let [holder, other, operator] = [manager(&nodes).await, manager(&nodes).await, manager(&nodes).await];
        let guard = acquired_everywhere(&holder, &nodes, "order:7").await;
        let token = *guard.token();
        // A waiter in the same process makes the manager listen. No renewal is due for ten seconds.
        let local = waiting(&holder);
        wait_until_listening(&nodes, token.as_str()).await;
        let remote = waiting(&other);
        wait_until_queued(&nodes, "order:7", 1).await;
        let has_stopped = Arc::new(AtomicBool::new(false));
        let body = tokio::spawn({
            let has_stopped = Arc::clone(&has_stopped);
            async move {
                let error = guard.lost().await;
                // A body that takes a while to stop.
                tokio::time::sleep(Duration::from_millis(200)).await;
                has_stopped.store(true, Ordering::SeqCst);
                error
            }
        });
        let next = tokio::spawn(async move {
            let next = remote.await.unwrap().unwrap();
            assert!(has_stopped.load(Ordering::SeqCst), "the one before was at work still");
            next
        });
        let report = operator.break_lock("order:7", token).await;
        assert!(report.is_broken() && report.holder_notified && report.holder_stopped, "{report}");
        assert_eq!(outcomes(&report), vec![BreakOutcome::Broken; size]);
        let cause = cause(timeout(PATIENCE, body).await.unwrap().unwrap());
        assert!(matches!(&cause, LossCause::Revoked { by, .. } if **by == report.by), "{cause:?}");
        drop(timeout(PATIENCE, next).await.expect("the next one is served").unwrap());
        drop(timeout(PATIENCE, local).await.expect("the one after it, too").unwrap().unwrap());
        for manager in [&holder, &other, &operator] {
            assert_nothing_left(manager, &nodes).await;
        }
    }
}

#[tokio::test]
async fn holder_that_has_renewed_once_is_notified_of_a_break() {
    let nodes = Nodes::start(3).await;
    let (holder, operator) = (manager(&nodes).await, manager(&nodes).await);
    let guard = holder.acquire(LockRequest::new("order:7").ttl(RENEWED_SOON)).await.unwrap();
    wait_until_listening(&nodes, guard.token().as_str()).await;
    let report = operator.break_lock("order:7", *guard.token()).await;
    assert!(
        report.is_broken() && report.holder_notified && !report.holder_stopped,
        "the guard is still there: {report}"
    );
    let cause = cause(timeout(PATIENCE, guard.lost()).await.unwrap());
    assert!(matches!(&cause, LossCause::Revoked { by, .. } if **by == report.by), "{cause:?}");
    assert_eq!(report.placeholder.map(|stand_in| stand_in.token), Some(report.by));
    // The operator is gone. Its placeholder still serves the waiters when the holder has stopped.
    drop(guard);
    assert_nothing_left(&operator, &nodes).await;
}

#[tokio::test]
async fn next_waiter_waits_for_the_lease_of_an_unnotified_holder() {
    for (size, ttl) in [(1, Duration::from_secs(12)), (3, Duration::from_secs(12))] {
        let nodes = Nodes::start(size).await;
        let [holder, other, operator, another] =
            [manager(&nodes).await, manager(&nodes).await, manager(&nodes).await, manager(&nodes).await];
        // Without a waiter and a renewal, the manager has no reason to listen.
        let guard = holder.acquire(LockRequest::new("order:7").ttl(ttl).without_renewal()).await.unwrap();
        let next = waiting(&other);
        wait_until_queued(&nodes, "order:7", 1).await;
        // Cancels one break halfway, and then breaks the placeholder that it has left. The exclusion holds in both cases.
        let token = *guard.token();
        let _ = timeout(Duration::from_secs(2), operator.break_lock("order:7", token)).await;
        let there = operator.inspect("order:7").await;
        let stand_in = there.holder().and_then(|holder| holder.owner()).map(|owner| owner.token).unwrap();
        assert_ne!(stand_in, token, "its place is taken");
        let report = another.break_lock("order:7", stand_in).await;
        assert!(report.is_broken() && !report.holder_stopped && report.placeholder.is_some(), "{report}");
        assert!(!next.is_finished(), "nobody else has it");
        let mut counted_on = guard.remaining();
        while !counted_on.is_zero() {
            assert!(!next.is_finished(), "the holder counts on it for {counted_on:?}");
            tokio::time::sleep(counted_on.min(Duration::from_millis(200))).await;
            counted_on = guard.remaining();
        }
        drop(timeout(PATIENCE, next).await.expect("its lease is over").unwrap().unwrap());
    }
}

#[tokio::test]
async fn break_of_a_placeholder_reports_when_the_slow_holder_stops() {
    let nodes = Nodes::start(3).await;
    let [holder, other, operator, another] =
        [manager(&nodes).await, manager(&nodes).await, manager(&nodes).await, manager(&nodes).await];
    holder.check().await;
    let guard = acquired_everywhere(&holder, &nodes, "order:7").await;
    wait_until_listening(&nodes, guard.token().as_str()).await;
    let next = waiting(&other);
    wait_until_queued(&nodes, "order:7", 1).await;
    let report = operator.break_lock("order:7", BreakOptions::new(*guard.token()).wait(Duration::ZERO)).await;
    let stand_in = report.placeholder.unwrap_or_else(|| panic!("{report}")).token;
    let breaking = another.break_lock("order:7", BreakOptions::new(stand_in).wait(PATIENCE));
    let stopping = async {
        eventually(PATIENCE, "the second one has its place", async || {
            let there = nodes[0].inspect().get("order:7").await.unwrap_or_default();
            if there.starts_with(stand_in.as_str()) { Err(there) } else { Ok(()) }
        })
        .await;
        drop(guard);
    };
    let (report, ()) = tokio::join!(breaking, stopping);
    assert!(report.is_broken() && report.holder_stopped, "{report}");
    drop(timeout(PATIENCE, next).await.expect("the next one is served").unwrap().unwrap());
    for manager in [&holder, &other, &operator, &another] {
        assert_nothing_left(manager, &nodes).await;
    }
}

#[tokio::test]
async fn former_holder_answers_a_late_break_as_already_stopped() {
    let nodes = Nodes::start(3).await;
    let [holder, operator] = [manager(&nodes).await, manager(&nodes).await];
    holder.check().await;
    let guard = acquired_everywhere(&holder, &nodes, "order:7").await;
    let token = *guard.token();
    wait_until_listening(&nodes, token.as_str()).await;
    guard.release().await.unwrap();
    // As if the release and the break had crossed: the nodes still report the token.
    for node in nodes.iter() {
        node.inspect().command::<()>(&["SET", "order:7", token.as_str(), "PX", "3600000"]).await;
    }
    let report = operator.break_lock("order:7", BreakOptions::new(token).wait(PATIENCE)).await;
    assert!(report.is_broken() && report.holder_stopped && report.placeholder.is_none(), "{report}");
    assert_nothing_left(&operator, &nodes).await;
}

#[tokio::test]
async fn released_lock_in_its_min_hold_is_broken_at_once() {
    let nodes = Nodes::start(3).await;
    let [holder, other, operator] = [manager(&nodes).await, manager(&nodes).await, manager(&nodes).await];
    holder.check().await;
    let request = LockRequest::new("order:7").min_hold(Duration::from_secs(50)).ttl(Duration::from_secs(60));
    let guard = holder.acquire(request).await.unwrap();
    let token = *guard.token();
    guard.release().await.unwrap();
    wait_until_listening(&nodes, token.as_str()).await;
    let next = waiting(&other);
    let report = operator.break_lock("order:7", token).await;
    assert!(report.is_broken() && report.holder_stopped, "{report}");
    drop(timeout(PATIENCE, next).await.expect("the next one is served").unwrap().unwrap());
}

#[tokio::test]
async fn locks_are_broken_and_attached_on_a_full_server() {
    let server = RedisServer::start().await;
    let [holder, operator] = [builder([server.url()]).build().unwrap(), builder([server.url()]).build().unwrap()];
    operator.ready().await.unwrap();
    let [guard, detached] = [holder.acquire("order:7").await.unwrap(), holder.acquire("order:8").await.unwrap()];
    let detached = detached.detach();
    server.inspect().command::<()>(&["CONFIG", "SET", "maxmemory", "1"]).await;
    assert!(operator.acquire(LockRequest::new("order:9").wait(Wait::None)).await.is_err(), "it is full");
    assert!(operator.break_lock("order:7", *guard.token()).await.is_broken());
    drop(operator.attach(detached).await.unwrap());
}

#[tokio::test]
async fn holder_learns_of_a_forced_break_at_its_next_renewal() {
    let nodes = Nodes::start(3).await;
    let [holder, other, operator] = [manager(&nodes).await, manager(&nodes).await, manager(&nodes).await];
    let guard = holder.acquire(LockRequest::new("order:7").ttl(RENEWED_SOON)).await.unwrap();
    let next = waiting(&other);
    wait_until_queued(&nodes, "order:7", 1).await;
    let report = operator.break_lock("order:7", BreakOptions::new(*guard.token()).by_force()).await;
    assert!(report.is_broken() && !report.holder_notified, "{report}");
    let next = timeout(PATIENCE, next).await.expect("the next one is served").unwrap().unwrap();
    assert_eq!(cause(timeout(PATIENCE, guard.lost()).await.unwrap()), LossCause::Taken);
    assert!(next.is_held());
}

#[tokio::test]
async fn break_with_an_outdated_token_has_no_effect() {
    let nodes = Nodes::start(3).await;
    let (holder, operator) = (manager(&nodes).await, manager(&nodes).await);
    let before = holder.acquire("order:7").await.unwrap();
    let token = *before.token();
    before.release().await.unwrap();
    let guard = acquired_everywhere(&holder, &nodes, "order:7").await;
    for report in [
        operator.break_lock("order:7", token).await,
        operator.break_lock("order:7", BreakOptions::new(token).by_force()).await,
    ] {
        assert_eq!(outcomes(&report), vec![BreakOutcome::NotHeld; 3], "{report}");
        assert!(!report.is_broken() && report.has_quorum() && !report.holder_notified);
    }
    assert!(guard.is_held() && holders(&nodes, &guard).await == 3);
    guard.release().await.unwrap();
    assert_nothing_left(&operator, &nodes).await;
}

#[tokio::test]
async fn forged_break_notification_only_makes_the_holder_extend() {
    let server = RedisServer::start().await;
    let manager = builder([server.url()]).build().unwrap();
    // The next renewal is due in minutes.
    let guard = manager.acquire(LockRequest::new("order:7").ttl(Duration::from_secs(900))).await.unwrap();
    let other = waiting(&manager);
    let channel = format!("redlock::{}", guard.token().as_str().split_once('@').unwrap().1);
    let line = format!("revoked {0} {0} order:7", guard.token());
    let before = server.inspect().calls("pexpire").await;
    eventually(PATIENCE, "the holder asks", async || {
        server.inspect().command::<u64>(&["PUBLISH", &channel, &line]).await;
        let after = server.inspect().calls("pexpire").await;
        if after > before { Ok(()) } else { Err(after) }
    })
    .await;
    assert!(guard.is_held());
    guard.release().await.expect("it had the lock all the time");
    drop(other.await.unwrap().unwrap());
}

#[tokio::test]
async fn foreign_lock_is_broken_only_by_force_and_only_if_its_value_matches() {
    let nodes = Nodes::start(3).await;
    let operator = manager(&nodes).await;
    for node in nodes.iter() {
        node.inspect().command::<()>(&["SET", "order:7", "worker-3", "NX", "PX", "60000"]).await;
    }
    let untold = operator.break_lock("order:7", BreakOptions::foreign("worker-3")).await;
    assert_eq!(outcomes(&untold), vec![BreakOutcome::NeedsForce; 3], "its holder cannot be told");
    let report = operator.break_lock("order:7", BreakOptions::foreign("worker-4").by_force()).await;
    assert!(!report.is_broken() && report.has_quorum(), "{report}");
    let next = waiting(&operator);
    wait_until_queued(&nodes, "order:7", 1).await;
    let report = operator.break_lock("order:7", BreakOptions::foreign("worker-3").by_force()).await;
    assert!(report.is_broken() && !report.holder_notified, "{report}");
    drop(timeout(PATIENCE, next).await.expect("who waits is served").unwrap().unwrap());
}

#[tokio::test]
async fn forced_break_never_removes_data() {
    let nodes = Nodes::start(1).await;
    let operator = manager(&nodes).await;
    nodes[0].inspect().command::<()>(&["SET", "feature:x", "on"]).await;
    let report = operator.break_lock("feature:x", BreakOptions::foreign("on").by_force()).await;
    assert_eq!(outcomes(&report), [BreakOutcome::NotHeld]);
    assert_eq!(nodes[0].inspect().get("feature:x").await.as_deref(), Some("on"));
}

#[tokio::test]
async fn lock_is_broken_only_if_a_majority_confirms() {
    let nodes = Nodes::start(3).await;
    let (holder, operator) = (manager(&nodes).await, manager(&nodes).await);
    let guard = acquired_everywhere(&holder, &nodes, "order:7").await;
    nodes[1].kill();
    nodes[2].kill();
    let report = operator.break_lock("order:7", *guard.token()).await;
    assert_eq!(outcomes(&report)[0], BreakOutcome::Broken);
    assert!(!report.is_broken() && !report.has_quorum(), "{report}");
    assert!(report.to_string().contains("too few nodes answered"));
}

#[tokio::test]
async fn timed_out_call_names_the_holder() {
    let nodes = Nodes::start(3).await;
    let (holder, other) = (manager(&nodes).await, manager(&nodes).await);
    let guard = acquired_everywhere(&holder, &nodes, "order:7").await;
    let error = other.acquire(LockRequest::new("order:7").wait(SHORT_WAIT)).await.unwrap_err();
    assert!(matches!(error, LockError::TimedOut { .. }), "{error}");
    assert_eq!(error.holder(), Some(guard.token()));
    let error = holder.try_acquire("order:7").await.unwrap_err();
    assert!(matches!(error, LockError::Contended { .. }), "{error}");
    assert_eq!(error.holder(), Some(guard.token()));
}

#[tokio::test]
async fn spawned_call_that_waits_for_its_parent_names_the_line_of_the_parent() {
    let nodes = Nodes::start(3).await;
    let (manager, other) = (manager(&nodes).await, manager(&nodes).await);
    for parent in [LockRequest::new("{order}:7"), LockRequest::all(["{order}:7", "{order}:8"])] {
        let guard = known_everywhere(&manager, &nodes, parent).await;
        for (manager, is_here) in [(&manager, true), (&other, false)] {
            let (manager, request) = (manager.clone(), LockRequest::new("{order}:7").wait(SHORT_WAIT));
            let error = tokio::spawn(async move { manager.acquire(request).await }).await.unwrap().unwrap_err();
            assert!(matches!(error, LockError::TimedOut { .. }), "{error}");
            assert_eq!(error.holder(), Some(guard.token()));
            assert_eq!(error.to_string().contains(": the call at "), is_here, "{error}");
        }
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn timed_out_call_for_several_keys_names_a_holder() {
    let nodes = Nodes::start(3).await;
    let (holder, other) = (manager(&nodes).await, manager(&nodes).await);
    let both = || LockRequest::all(["{order}:6", "{order}:7"]);
    for held in [LockRequest::new("{order}:7"), LockRequest::all(["{order}:7", "{order}:8"])] {
        let guard = known_everywhere(&holder, &nodes, held).await;
        let error = other.acquire(both().wait(SHORT_WAIT)).await.unwrap_err();
        assert!(matches!(error, LockError::TimedOut { .. }), "{error}");
        assert_eq!(error.holder(), Some(guard.token()));
        guard.release().await.unwrap();
    }
    let guard = acquired_everywhere(&holder, &nodes, "{order}:7").await;
    let error = holder.try_acquire(both()).await.unwrap_err();
    assert!(matches!(error, LockError::Contended { .. }), "{error}");
    assert_eq!(error.holder(), Some(guard.token()));
}
