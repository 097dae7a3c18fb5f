//! `key = [..]` and `path = ".."`: the attribute requests exactly what a manual request with the same keys does.

use redlock_runtime::{LockError, LockGuard, LockManager, LockPath, LockRequest, Mode, distributed_lock};

#[distributed_lock(key = ["account:{from}", "account:{to}"], guard = lock)]
async fn transfer(from: u64, to: u64) -> Result<Vec<String>, LockError> {
    Ok(keys(lock))
}

#[distributed_lock(key([shared("limits:{first}"), "limits:{last}"], first = all[0], last = all[1]), guard = lock)]
async fn limits(all: &[u64]) -> Result<(Vec<String>, Mode), LockError> {
    Ok((keys(lock), lock.mode()))
}

#[distributed_lock(key = [shared("config")], guard = lock, wait = none)]
async fn single_shared_key() -> Result<Mode, LockError> {
    Ok(lock.mode())
}

#[distributed_lock(path = "/{tenant}", guard = lock, reentrant)]
async fn of_tenant(tenant: &str, depth: u32) -> Result<Vec<String>, LockError> {
    if depth == 0 { Ok(keys(lock)) } else { Box::pin(of_tenant(tenant, depth - 1)).await }
}

#[distributed_lock(path = "/{dir:/}", guard = lock)]
async fn of_path(dir: String) -> Result<Vec<String>, LockError> {
    Ok(keys(lock))
}

#[distributed_lock(path = "/a-{major:02}.{minor}-{patch}", guard = lock)]
async fn of_version(major: u32, minor: &str, patch: &str) -> Result<Vec<String>, LockError> {
    Ok(keys(lock))
}

fn keys(guard: &LockGuard) -> Vec<String> {
    guard.keys().map(ToString::to_string).collect()
}

#[distributed_lock(key = ["{from}", "account:{to}"])]
async fn between(from: &str, to: &str) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(path = [shared("/limits"), "/{tenant.trim()}/{dir:/}"])]
async fn of_both(tenant: &str, dir: &str) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key("{job}", job = name), once_per = 60)]
async fn once(name: &str) -> Result<(), LockError> {
    Ok(())
}

#[track_caller]
fn refused<T: std::fmt::Debug>(outcome: Result<T, LockError>, expected: &str) {
    assert_eq!(refused_value(outcome, expected).0, None);
}

/// Checks the error, and returns the placeholder that caused it and the problem of its value.
#[track_caller]
fn refused_value<T: std::fmt::Debug>(
    outcome: Result<T, LockError>,
    expected: &str,
) -> (Option<&'static str>, &'static str) {
    let error = outcome.unwrap_err();
    let LockError::InvalidKey { cause, .. } = &error else { panic!("{error}") };
    assert!(error.to_string().contains(expected), "{error}");
    assert!(error.key().is_none() && !error.is_transient());
    (cause.placeholder(), cause.reason())
}

#[tokio::test]
async fn duplicate_keys_are_merged_with_the_stronger_mode() {
    LockManager::in_memory()
        .scope(async {
            assert_eq!(transfer(7, 7).await.unwrap(), ["account:7"]);
            assert_eq!(limits(&[7, 7]).await.unwrap(), (vec!["limits:7".to_owned()], Mode::Exclusive));
        })
        .await;
}

#[tokio::test]
async fn list_with_one_key_equals_the_single_key() {
    let manager = LockManager::in_memory();
    manager
        .scope(async {
            let reader = manager.acquire(LockRequest::shared("config")).await.unwrap();
            assert_eq!(single_shared_key().await.unwrap(), Mode::Shared);
            drop(reader);
            let writer = manager.acquire("config").await.unwrap();
            assert!(single_shared_key().await.unwrap_err().is_contended());
            drop(writer);
        })
        .await;
}

#[tokio::test]
async fn path_value_is_always_a_single_segment() {
    LockManager::in_memory()
        .scope(async {
            for tenant in ["acme", "a/b", "/", "..", "{a}", "%2F", "a b\n", "}:q"] {
                let path = LockPath::of([tenant]);
                let name = format!("/{{{}}}", path.as_str().strip_prefix('/').unwrap());
                assert_eq!(of_tenant(tenant, 0).await.unwrap(), [name]);
            }
            assert_eq!(of_version(7, "1-2", "x").await.unwrap(), ["/{a-07.1%2D2-x}"]);
            assert_eq!(of_path("/acme".into()).await.unwrap(), ["/{acme}"]);
        })
        .await;
}

#[tokio::test]
async fn values_that_make_an_invalid_path_are_rejected() {
    LockManager::in_memory()
        .scope(async {
            let of_tenant = async |tenant: &str, expected| refused_value(of_tenant(tenant, 0).await, expected);
            assert_eq!(of_tenant("", "add a segment").await, (Some("tenant"), "is empty"));
            assert_eq!(of_tenant(&"a".repeat(1024), "1027 bytes").await, (Some("tenant"), "is too long"));
            let of_path = async |path: &str, expected| refused_value(of_path(path.into()).await, expected);
            assert_eq!(of_path("acme/", "each needs a name").await, (Some("dir"), "has an empty segment"));
            let dots = of_path("acme/../x", "which is not allowed").await;
            assert_eq!(dots, (Some("dir"), "has the segment `.` or `..`"));
            let deep = of_path(&("a/".repeat(16) + "a"), "17 segments").await;
            assert_eq!(deep, (Some("dir"), "has too many segments"));
        })
        .await;
}

#[tokio::test]
async fn invalid_key_error_names_the_placeholder() {
    LockManager::in_memory()
        .scope(async {
            let empty = refused_value(between("", "8").await, "the key is empty");
            assert_eq!(empty, (Some("from"), "is empty"));
            assert_eq!(refused_value(once("").await, "`{job}`"), (Some("job"), "is empty"));
            let of_both = async |tenant, dir| refused_value(of_both(tenant, dir).await, "the value of");
            assert_eq!(of_both(" ", "a").await, (Some("tenant.trim()"), "is empty"));
            assert_eq!(of_both("acme", "a/.").await, (Some("dir"), "has the segment `.` or `..`"));
        })
        .await;
}

#[tokio::test]
async fn nested_call_enters_the_path_of_its_caller() {
    LockManager::in_memory().scope(async { assert_eq!(of_tenant("acme", 3).await.unwrap(), ["/{acme}"]) }).await;
}

#[tokio::test]
async fn detached_path_is_attached_as_a_path() {
    let manager = LockManager::in_memory();
    let detached = manager.acquire(LockRequest::path("/acme")).await.unwrap().detach();
    let message = detached.to_string();
    assert!(message.contains(" parts:30000 X5:/acme"), "{message}");
    let error = manager.try_acquire(LockRequest::path("/acme")).await.unwrap_err();
    assert_eq!(error.to_string(), "\"/{acme}\" is held by another owner");
    let guard = manager.attach(message.parse().unwrap()).await.unwrap();
    assert_eq!((keys(&guard), guard.mode()), (vec!["/{acme}".to_owned()], Mode::Exclusive));
    assert_eq!(manager.held_locks()[0].keys, [guard.key().clone()]);
}

#[tokio::test]
async fn invalid_requests_are_rejected() {
    let manager = LockManager::in_memory();
    refused(manager.acquire(LockRequest::all(["a", ""])).await, "the key is empty");
    refused(manager.acquire(LockRequest::all([""; 0])).await, "without a key");
    refused(manager.acquire(LockPath::from("acme")).await, "write \"/acme\"");
}
