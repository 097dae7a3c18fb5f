//! Content of the log, and its assertions.

use redlock_runtime::testing::{LogEntry, LogEvent, TestServers};
use redlock_runtime::{LockError, LockManager, LockRequest, Mode, assert_exclusive, assert_locked, distributed_lock};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use tokio::time::{sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);

/// Returns the message of a failed assertion.
pub(crate) fn said(assertion: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(assertion)).unwrap_err();
    panic.downcast_ref::<String>().unwrap().clone()
}

fn told(servers: &TestServers) -> Vec<String> {
    let name = |entry: &LogEntry| match &entry.event {
        LogEvent::Acquired { .. } => "acquired",
        LogEvent::Lost { .. } => "lost",
        LogEvent::Downgraded { .. } => "downgraded",
        LogEvent::Ended { .. } => "ended",
        LogEvent::Entered { .. } => "entered",
        LogEvent::Left { .. } => "left",
        LogEvent::Failed { .. } => "failed",
        LogEvent::Cancelled { .. } => "cancelled",
        other => panic!("{other:?}"),
    };
    servers.log().entries().into_iter().map(|entry| format!("{} {}", entry.key.as_str(), name(&entry))).collect()
}

#[tokio::test(start_paused = true)]
async fn cancelled_waiter_is_logged() {
    let servers = TestServers::new(3);
    let ours = servers.manager_with(LockManager::builder().namespace("shop"));
    servers.hold("shop:order:7").await;
    assert!(timeout(SECOND, ours.acquire(LockRequest::new("order:7").label("orders"))).await.is_err());
    assert_eq!(servers.log().cancelled(), ["order:7"]);
    assert_eq!(servers.log().entries()[0].template, Some("orders"));
    assert!(servers.log().to_string().contains("cancelled"));
    servers.release("shop:order:7");
    drop(ours.acquire("order:7").await.unwrap());
    assert_eq!(told(&servers)[1..], ["order:7 acquired", "order:7 ended"]);
    assert_eq!(servers.log().max_together("order:7"), 1);
}

#[tokio::test(start_paused = true)]
async fn invalid_request_is_logged_as_failed() {
    let servers = TestServers::new(1);
    let ours = servers.manager();
    assert!(ours.acquire(LockRequest::new("order:7").ttl(Duration::ZERO)).await.is_err());
    let wrong = LockRequest::new("report").once_per(60 * SECOND).reentrant();
    assert!(ours.acquire(wrong).await.is_err());
    assert_eq!(servers.log().failed(), ["order:7", "report"]);
    assert_eq!(told(&servers), ["order:7 failed", "report failed"]);
}

#[tokio::test(start_paused = true)]
async fn panic_in_a_body_releases_the_lock_and_is_logged() {
    let servers = TestServers::new(3);
    let (ours, theirs) = (servers.manager(), servers.manager());
    let body = tokio::spawn(async move {
        ours.with_lock("order:7", async |_| -> Result<(), LockError> {
            sleep(SECOND).await;
            panic!("a mistake in the body")
        })
        .await
    });
    assert!(body.await.unwrap_err().is_panic());
    assert_eq!(told(&servers), ["order:7 acquired", "order:7 ended"]);
    drop(theirs.try_acquire("order:7").await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn assertion_on_an_unknown_name_fails() {
    let servers = TestServers::new(1);
    assert_eq!(servers.log().max_together("order:7"), 0, "there is nothing yet");
    drop(servers.manager().acquire("order:7").await.unwrap());
    let log = servers.log();
    assert!(said(|| assert_eq!(log.max_together("odrer:7"), 0)).contains("the log has no call for \"odrer:7\""));
    assert!(said(|| assert_exclusive!(log, "odrer:7")).contains("\"odrer:7\" was never locked"));
}

#[tokio::test(start_paused = true)]
async fn assert_exclusive_fails_for_a_lock_that_was_never_held() {
    let servers = TestServers::new(1);
    servers.hold("order:7").await;
    assert!(servers.manager().try_acquire("order:7").await.is_err());
    assert_eq!(servers.log().max_together("order:7"), 0);
    assert!(said(|| assert_exclusive!(servers.log(), "order:7")).contains("was never locked"));
}

#[tokio::test(start_paused = true)]
async fn log_shows_concurrent_readers_and_exclusive_writers() {
    let servers = TestServers::new(3);
    let (ours, theirs) = (servers.manager(), servers.manager());
    let reader = || LockRequest::shared("config");
    drop((ours.acquire(reader()).await.unwrap(), theirs.acquire(reader()).await.unwrap()));
    drop(ours.acquire("config").await.unwrap());
    assert_eq!(servers.log().max_together("config"), 2);
    assert_exclusive!(servers.log(), "config");

    // A body that continues without the lock runs together with later holders.
    let stale = ours.acquire("config").await.unwrap();
    servers.expire("config");
    let next = theirs.acquire(reader()).await.unwrap();
    let text = said(|| assert_exclusive!(servers.log(), "config"));
    let (came_in, others) = text.split_once("while these calls were running").unwrap();
    assert!(came_in.contains("manager 1  \"config\" acquired for 30s, shared"), "{text}");
    assert!(others.contains("manager 0  \"config\" acquired for 30s\n"), "{text}");
    servers.log().clear();
    drop((stale, next));
}

#[tokio::test(start_paused = true)]
async fn assert_exclusive_fails_for_overlapping_holders() {
    let servers = TestServers::new(1);
    let (ours, theirs) = (servers.manager(), servers.manager());
    let stale = ours.acquire("order:7").await.unwrap();
    servers.expire("order:7");
    let next = theirs.acquire("order:7").await.unwrap();
    drop((stale, next));
    let text = said(|| assert_exclusive!(servers.log(), "order:7"));
    assert!(text.contains("\"order:7\" was not exclusive: this call acquired the lock"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn downgraded_writer_is_logged_as_a_reader() {
    let servers = TestServers::new(3);
    let (ours, theirs) = (servers.manager(), servers.manager());
    let writer = ours.acquire("config").await.unwrap();
    writer.downgrade();
    let reader = theirs.acquire(LockRequest::shared("config")).await.unwrap();
    drop((writer, reader));
    assert_eq!(
        told(&servers),
        ["config acquired", "config downgraded", "config acquired", "config ended", "config ended"]
    );
    assert_exclusive!(servers.log(), "config");
    assert_eq!(servers.log().max_together("config"), 2);
}

#[distributed_lock(key = "config", mode = shared)]
async fn read(servers: &TestServers, pause: Duration) -> Result<usize, LockError> {
    sleep(pause).await;
    Ok(shares_of(servers).await)
}

/// Returns the number of votes for the lock at the server.
async fn shares_of(servers: &TestServers) -> usize {
    servers.manager().inspect("config").await.nodes[0].holder.owners().len()
}

#[tokio::test(start_paused = true)]
async fn readers_that_share_a_vote_are_logged_separately() {
    let servers = TestServers::new(3);
    let ours = servers.manager();
    let (first, second) = tokio::join!(ours.scope(read(&servers, SECOND)), ours.scope(read(&servers, 2 * SECOND)));
    assert_eq!((first.unwrap(), second.unwrap()), (1, 1), "they have one vote");
    assert_eq!(told(&servers), ["config acquired", "config acquired", "config ended", "config ended"]);
    assert_eq!(servers.log().max_together("config"), 2);
    assert_exclusive!(servers.log(), "config");
    assert_locked!(servers.log(), "config", ttl = 30s);
    assert!(servers.log().entries().iter().all(|entry| entry.mode == Mode::Shared && entry.manager == 0));
}

#[tokio::test(start_paused = true)]
async fn loss_of_a_shared_vote_is_logged_for_each_reader() {
    let servers = TestServers::new(3);
    let ours = servers.manager();
    let (first, second, ()) =
        tokio::join!(ours.scope(read(&servers, 9 * SECOND)), ours.scope(read(&servers, 9 * SECOND)), async {
            sleep(SECOND).await;
            servers.lose("config");
        });
    assert!(matches!((first, second), (Err(LockError::Lost { .. }), Err(LockError::Lost { .. }))));
    assert_eq!(servers.log().lost(), ["config", "config"]);
    assert_eq!(servers.log().entries().len(), 6, "{}", servers.log());
}

#[distributed_lock(key = "config", mode = shared, on_lost = continue)]
async fn read_despite_the_loss() -> Result<(), LockError> {
    sleep(9 * SECOND).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn readers_that_ignore_a_lost_vote_overlap_the_writer() {
    let servers = TestServers::new(3);
    let (ours, theirs) = (servers.manager(), servers.manager());
    let write = async {
        sleep(SECOND).await;
        servers.expire("config");
        drop(theirs.acquire("config").await.unwrap());
    };
    let (first, second, ()) =
        tokio::join!(ours.scope(read_despite_the_loss()), ours.scope(read_despite_the_loss()), write);
    assert!(first.is_ok() && second.is_ok());
    let text = said(|| assert_exclusive!(servers.log(), "config"));
    let (came_in, others) = text.split_once("while these calls were running\n").unwrap();
    assert!(came_in.contains("manager 1  \"config\" acquired for 30s\n"), "{text}");
    assert_eq!(
        others.split("All entries of the log:\n").next().unwrap().matches("manager 0  \"config\"").count(),
        2,
        "{text}"
    );
}

#[distributed_lock(key = "order:{id}", reentrant)]
async fn audit(id: u64, pause: Duration) -> Result<(), LockError> {
    sleep(pause).await;
    Ok(())
}

#[distributed_lock(key = "order:{number}", guard = lock)]
async fn capture(number: u64, pause: Duration) -> Result<(), LockError> {
    audit(number, pause).await?;
    lock.extend().await
}

#[tokio::test(start_paused = true)]
async fn nested_call_is_logged_and_counts_as_one_holder() {
    let servers = TestServers::new(3);
    let ours = servers.manager();
    ours.scope(capture(7, SECOND)).await.unwrap();
    assert_eq!(told(&servers), ["order:7 acquired", "order:7 entered", "order:7 left", "order:7 ended"]);
    let log = servers.log();
    assert_eq!((log.acquired(), log.entered()), (vec!["order:7".to_owned()], vec!["order:7".to_owned()]));
    assert_eq!(log.entries()[1].template, Some("order:{id}"), "what the nested call says");
    assert_exclusive!(log, "order:{number}");
    assert_eq!((log.max_together("order:7"), log.max_together("order:{id}")), (1, 0));
    assert!(log.to_string().contains("entered the lock of its caller\n"), "{log}");

    // Outside of a caller's body, it is an ordinary call.
    log.clear();
    ours.scope(audit(7, SECOND)).await.unwrap();
    assert_eq!(told(&servers), ["order:7 acquired", "order:7 ended"]);
}

#[tokio::test(start_paused = true)]
async fn lost_nested_call_is_logged_before_the_end_of_its_caller() {
    let servers = TestServers::new(3);
    let ours = servers.manager();
    let (captured, ()) = tokio::join!(ours.scope(capture(7, 9 * SECOND)), async {
        sleep(SECOND).await;
        servers.lose("order:7");
    });
    assert!(matches!(captured, Err(LockError::Lost { .. })));
    assert_eq!(servers.log().lost().len(), 2, "{}", servers.log());
    let told = told(&servers);
    let at = |event: &str| told.iter().position(|line| line.ends_with(event)).unwrap();
    assert!(at(" lost") < at(" left") && at(" left") < at(" ended"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn assert_locked_accepts_every_form_of_a_ttl() {
    const TTL: Duration = Duration::from_secs(90);
    let servers = TestServers::new(1);
    drop(servers.manager().acquire(LockRequest::new("order:7").ttl(TTL)).await.unwrap());
    let log = servers.log();
    assert_locked!(log, "order:7", ttl = TTL);
    assert_locked!(log, "order:7", ttl = 90 * SECOND);
    assert_locked!(log, "order:7", ttl = "1m30s");
    assert_locked!(log, "order:7", ttl = 90s);
    assert_locked!(log, "order:7", ttl = 90_000ms);
    assert_locked!(log, "order:7", ttl = 90);
    let text = said(|| assert_locked!(log, "order:7", ttl = TTL + SECOND));
    assert!(text.contains("\"order:7\" was locked for [90s], and never for 91s"), "{text}");
    assert!(said(|| assert_locked!(log, "order:7", ttl = "soon")).contains("is not a duration"));
}
