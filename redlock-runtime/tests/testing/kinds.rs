//! Every kind of lock, with two managers that share servers.

use crate::logging::said;
use redlock_runtime::testing::{LogEvent, TestServers};
use redlock_runtime::{
    DetachedLock, LockError, LockManager, LockRequest, Mode, Wait, assert_exclusive, assert_locked, distributed_lock,
};
use std::time::Duration;
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);

#[distributed_lock(key = "order:{id}", ttl = 30, wait = 2)]
async fn capture(id: u64) -> Result<u64, LockError> {
    sleep(SECOND).await;
    Ok(id)
}

#[tokio::test(start_paused = true)]
async fn calls_of_two_managers_take_turns() {
    for count in [1, 3, 5] {
        let servers = TestServers::new(count);
        let (ours, theirs) = (servers.manager(), servers.manager());
        let (first, second) = tokio::join!(ours.scope(capture(7)), theirs.scope(capture(7)));
        assert_eq!((first.unwrap(), second.unwrap()), (7, 7));
        let log = servers.log();
        assert_eq!(log.acquired(), ["order:7", "order:7"]);
        assert_eq!(log.max_together("order:{id}"), 1, "{log}");
        assert_locked!(log, "order:7", ttl = 30s);
        assert_locked!(log, "order:{id}", ttl = "30s");
    }
}

#[tokio::test(start_paused = true)]
async fn call_waits_for_a_lock_of_an_external_holder() {
    let servers = TestServers::new(3);
    let ours = servers.manager();
    servers.hold("order:7").await;
    let begun = Instant::now();
    assert!(matches!(ours.scope(capture(7)).await.unwrap_err(), LockError::TimedOut { .. }));
    assert!(begun.elapsed() >= 2 * SECOND);
    let (captured, ()) = tokio::join!(ours.scope(capture(7)), async {
        sleep(SECOND).await;
        servers.release("order:7");
    });
    captured.unwrap();
    assert_eq!((servers.log().failed(), servers.log().acquired()), (vec!["order:7".into()], vec!["order:7".into()]));
}

#[distributed_lock(key = "export:{tenant}", permits = 2, ttl = 30, wait = 5)]
async fn export(tenant: &str) -> Result<(), LockError> {
    let _ = tenant;
    sleep(SECOND).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn permits_limit_concurrent_holders() {
    for count in [1, 3] {
        let servers = TestServers::new(count);
        let (ours, theirs) = (servers.manager(), servers.manager());
        let of = |manager: &LockManager| manager.scope(export("acme"));
        tokio::try_join!(of(&ours), of(&ours), of(&theirs), of(&theirs), of(&theirs)).unwrap();
        let log = servers.log();
        assert_eq!((log.acquired().len(), log.max_together("export:{tenant}")), (5, 2), "{log}");
        assert_exclusive!(log, "export:{tenant}");
        assert!(log.to_string().contains("acquired for 30s, one of 2 permits"), "{log}");
        assert!(log.entries().iter().all(|entry| entry.mode == Mode::Permit), "{log}");
    }
}

#[tokio::test(start_paused = true)]
async fn call_waits_for_permits_of_external_holders() {
    let servers = TestServers::new(3);
    let ours = servers.manager();
    servers.hold_permit("export:acme", 2).await;
    servers.hold_permit("export:acme", 2).await;
    assert!(matches!(ours.scope(export("acme")).await.unwrap_err(), LockError::TimedOut { .. }));
    let (exported, ()) = tokio::join!(ours.scope(export("acme")), async {
        sleep(SECOND).await;
        servers.release("export:acme");
    });
    exported.unwrap();
    assert_eq!(servers.log().max_together("export:acme"), 1);
    servers.expire("export:acme");
    drop(ours.try_acquire(LockRequest::new("export:acme").permits(1)).await.unwrap());
}

#[distributed_lock(key = "export:{tenant}", permits = 1, ttl = 30, on_lost = continue)]
async fn export_despite_the_loss(tenant: &str, pause: Duration) -> Result<(), LockError> {
    let _ = tenant;
    sleep(pause).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn holder_that_ignores_a_lost_permit_violates_the_limit() {
    let servers = TestServers::new(3);
    let (ours, theirs) = (servers.manager(), servers.manager());
    let (first, second) = tokio::join!(ours.scope(export_despite_the_loss("acme", SECOND * 9)), async {
        sleep(SECOND).await;
        servers.lose("export:acme");
        theirs.scope(export_despite_the_loss("acme", SECOND)).await
    });
    second.unwrap();
    assert!(first.is_ok(), "{first:?}");
    let text = said(|| assert_exclusive!(servers.log(), "export:acme"));
    assert!(text.contains("was not exclusive") && text.contains("one of 1 permits"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn shared_locks_are_held_together() {
    let servers = TestServers::new(3);
    let (ours, theirs) = (servers.manager(), servers.manager());
    servers.hold_shared("config").await;
    let shared = || LockRequest::shared("config");
    let (first, second) = (ours.acquire(shared()).await.unwrap(), theirs.acquire(shared()).await.unwrap());
    assert!(ours.try_acquire("config").await.unwrap_err().is_contended());
    drop((first, second));
    assert_eq!(servers.log().max_together("config"), 2);
    servers.release("config");
    drop(ours.try_acquire("config").await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn fencing_tokens_increase_with_each_holder() {
    let servers = TestServers::new(3);
    let (ours, theirs) = (servers.manager(), servers.manager());
    let first = ours.acquire(LockRequest::new("order:7").fencing()).await.unwrap();
    let number = first.fencing_token();
    drop(first);
    assert!(theirs.acquire(LockRequest::new("order:7").fencing()).await.unwrap().fencing_token() > number);
    let is_told = |event: &LogEvent| matches!(event, LogEvent::Acquired { fencing_token: Some(_), .. });
    assert_eq!(servers.log().entries().iter().filter(|entry| is_told(&entry.event)).count(), 2);
}

#[distributed_lock(key = "order:{id}", reentrant)]
async fn audit(id: u64) -> Result<u64, LockError> {
    Ok(id)
}

#[distributed_lock(key = "order:{id}")]
async fn capture_and_audit(id: u64) -> Result<u64, LockError> {
    audit(id).await
}

#[tokio::test(start_paused = true)]
async fn nested_call_enters_the_lock_of_its_caller() {
    let servers = TestServers::new(3);
    assert_eq!(servers.manager().scope(capture_and_audit(7)).await.unwrap(), 7);
    assert_eq!(servers.log().acquired(), ["order:7"]);
}

#[tokio::test(start_paused = true)]
async fn detached_lock_is_attached_by_another_manager() {
    let servers = TestServers::new(3);
    let (ours, theirs) = (servers.manager(), servers.manager());
    let detached: DetachedLock = ours.acquire("order:7").await.unwrap().detach().to_string().parse().unwrap();
    assert!(theirs.try_acquire("order:7").await.unwrap_err().is_contended());
    let guard = theirs.attach(detached).await.unwrap();
    assert!(ours.try_acquire("order:7").await.unwrap_err().is_contended());
    drop(guard);
    drop(ours.try_acquire("order:7").await.unwrap());
    assert_eq!(servers.log().max_together("order:7"), 1);
}

#[distributed_lock(key = "report", once_per = 15m, on_contended = skip)]
async fn report() -> Result<Option<u32>, LockError> {
    Ok(Some(42))
}

#[tokio::test(start_paused = true)]
async fn job_runs_once_per_window() {
    let servers = TestServers::new(3);
    let (ours, theirs) = (servers.manager(), servers.manager());
    assert_eq!(ours.scope(report()).await.unwrap(), Some(42));
    assert_eq!(theirs.scope(report()).await.unwrap(), None);
    sleep(900 * SECOND).await;
    assert_eq!(theirs.scope(report()).await.unwrap(), Some(42));
    let log = servers.log();
    assert_eq!((log.acquired().len(), log.failed().len()), (2, 1), "{log}");
}

#[tokio::test(start_paused = true)]
async fn lingering_lock_is_handed_to_another_manager() {
    let servers = TestServers::new(3);
    let linger = || servers.manager_with(LockManager::builder().linger(2 * SECOND));
    let (ours, theirs) = (linger(), linger());
    for _ in 0..5 {
        drop(ours.acquire("session:7").await.unwrap());
    }
    assert!(ours.stats().linger.reused > 0);
    drop(theirs.acquire("session:7").await.unwrap());
    assert_eq!(servers.log().acquired().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn break_stops_the_body_of_another_manager() {
    let servers = TestServers::new(3);
    let (ours, theirs) = (servers.manager(), servers.manager());
    ours.ready().await.unwrap();
    let body = ours.with_lock("order:7", async |_| {
        sleep(3600 * SECOND).await;
        Ok::<_, LockError>(())
    });
    let (stopped, report) = tokio::join!(body, async {
        sleep(SECOND).await;
        let token = ours.held_locks()[0].token;
        theirs.break_lock("order:7", token).await
    });
    assert!(report.holder_stopped, "{report:?}");
    assert!(matches!(stopped.unwrap_err(), LockError::Lost { .. }));
    assert_eq!(servers.log().lost(), ["order:7"]);
}

#[tokio::test(start_paused = true)]
async fn each_manager_has_its_own_settings() {
    let servers = TestServers::new(1);
    let builder = LockManager::builder().namespace("shop").default_wait(Wait::None);
    let (ours, plain) = (servers.manager_with(builder), servers.manager());
    servers.hold("shop:order:7").await;
    assert!(ours.acquire("order:7").await.unwrap_err().is_contended());
    drop(plain.acquire("order:7").await.unwrap());
    let inspection = plain.inspect("shop:order:7").await;
    assert!(inspection.holder().is_some(), "{inspection}");
    assert!(ours.shutdown().await && plain.shutdown().await);
}
