//! Log of locks of several keys, and of paths.

use crate::logging::said;
use redlock_runtime::testing::TestServers;
use redlock_runtime::{LockError, LockPart, LockRequest, assert_exclusive, assert_locked, distributed_lock};
use std::time::Duration;
use tokio::time::sleep;

const SECOND: Duration = Duration::from_secs(1);
const BOTH: &str = r#""account:1" + "account:2""#;

fn both() -> LockRequest {
    LockRequest::all(["account:2", "account:1"])
}

#[tokio::test(start_paused = true)]
async fn multi_key_lock_is_logged_under_each_key() {
    let servers = TestServers::new(3);
    drop(servers.manager().acquire(both()).await.unwrap());
    let log = servers.log();
    assert_eq!(log.acquired(), [BOTH]);
    for name in ["account:1", "account:2", BOTH] {
        assert_locked!(log, name, ttl = 30s);
        assert_exclusive!(log, name);
        assert_eq!(log.max_together(name), 1);
    }
    assert!(said(|| assert_eq!(log.max_together("account:3"), 0)).contains("the log has no call for"));
    assert!(log.to_string().contains(r#"manager 0  "account:1" + "account:2" acquired"#), "{log}");
}

#[distributed_lock(key = ["account:{from}", "account:{to}"])]
async fn transfer(from: u64, to: u64) -> Result<(), LockError> {
    sleep(SECOND).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn calls_without_a_common_key_run_concurrently() {
    let servers = TestServers::new(3);
    let (ours, theirs) = (servers.manager(), servers.manager());
    let (first, second, third) =
        tokio::join!(ours.scope(transfer(1, 2)), theirs.scope(transfer(3, 4)), theirs.scope(transfer(2, 3)));
    assert!(first.is_ok() && second.is_ok() && third.is_ok());
    let log = servers.log();
    for key in 1..=4 {
        assert_eq!(log.max_together(&format!("account:{key}")), 1);
        assert_exclusive!(log, &format!("account:{key}"));
    }
}

#[tokio::test(start_paused = true)]
async fn overlap_on_a_common_key_is_reported_for_that_key() {
    let servers = TestServers::new(1);
    let (ours, theirs) = (servers.manager(), servers.manager());
    let stale = ours.acquire(both()).await.unwrap();
    servers.expire("account:2");
    let next = theirs.acquire(LockRequest::all(["account:2", "account:3"])).await.unwrap();
    drop((stale, next));
    let log = servers.log();
    let text = said(|| assert_exclusive!(log, "account:2"));
    assert!(text.contains("\"account:2\" was not exclusive"), "{text}");
    assert!(said(|| assert_exclusive!(log, BOTH)).contains("was not exclusive"));
    assert_exclusive!(log, "account:1");
    assert_exclusive!(log, "account:3");
    assert_eq!((log.max_together("account:1"), log.max_together("account:2")), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn shared_key_of_a_multi_key_lock_has_concurrent_holders() {
    let servers = TestServers::new(3);
    let (ours, theirs) = (servers.manager(), servers.manager());
    let request = |own: &str| LockRequest::all([LockPart::key(own), LockPart::shared("rates")]);
    let (one, other) = (ours.acquire(request("a")).await.unwrap(), theirs.acquire(request("b")).await.unwrap());
    drop((one, other));
    drop(ours.acquire("rates").await.unwrap());
    assert_eq!((servers.log().max_together("rates"), servers.log().max_together("a")), (2, 1));
    assert_exclusive!(servers.log(), "rates");
}

#[tokio::test(start_paused = true)]
async fn folder_lock_excludes_locks_below_the_folder() {
    let servers = TestServers::new(1);
    let (ours, theirs) = (servers.manager(), servers.manager());
    let beside = (
        ours.acquire(LockRequest::path("/acme/draft/a")).await.unwrap(),
        theirs.acquire(LockRequest::path("/acme/draft/b")).await.unwrap(),
    );
    drop(beside);
    for name in ["/{acme}/draft/a", "/{acme}/draft/b"] {
        assert_exclusive!(servers.log(), name);
    }

    let stale = ours.acquire(LockRequest::path("/acme/draft/a")).await.unwrap();
    for name in ["/{acme}", "/{acme}/draft", "/{acme}/draft/a"] {
        servers.expire(name);
    }
    let folder = theirs.acquire(LockRequest::path("/acme/draft")).await.unwrap();
    drop((stale, folder));
    for name in ["/{acme}/draft/a", "/{acme}/draft"] {
        let text = said(|| assert_exclusive!(servers.log(), name));
        assert!(text.contains("was not exclusive"), "{text}");
    }
    assert_exclusive!(servers.log(), "/{acme}/draft/b");
}

#[tokio::test(start_paused = true)]
async fn downgrade_of_a_multi_key_lock_is_logged_for_each_key() {
    let servers = TestServers::new(3);
    let (ours, theirs) = (servers.manager(), servers.manager());
    let lowered = ours.acquire(both()).await.unwrap();
    lowered.downgrade();
    let reader = theirs.acquire(LockRequest::shared("account:1")).await.unwrap();
    drop((lowered, reader));
    drop(theirs.acquire("account:2").await.unwrap());
    for name in ["account:1", "account:2", BOTH] {
        assert_exclusive!(servers.log(), name);
    }
    assert_eq!((servers.log().max_together("account:1"), servers.log().max_together("account:2")), (2, 1));
}
