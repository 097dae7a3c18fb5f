//! The numbers on the page of limits are those of the library.

use crate::page::Page;
use redlock_runtime::{LockError, LockKey, LockManager, LockRequest};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 3600);

#[track_caller]
fn assert_documented_limit(text: &str) {
    let page = Page::read("redlock-runtime/docs/guide/reference/limits.md");
    assert!(page.text.contains(text), "limits.md does not say: {text}");
}

fn is_refused<T>(result: &Result<T, LockError>) -> bool {
    matches!(result, Err(LockError::Configuration { .. } | LockError::InvalidKey { .. }))
}

/// Returns `true` if a request for a separate key is refused.
async fn refuses(request: impl FnOnce(LockRequest) -> LockRequest) -> bool {
    is_refused(&LockManager::in_memory().acquire(request(LockRequest::new("order:7"))).await)
}

#[test]
fn lengths() {
    assert_documented_limit(&format!("[{} bytes](crate::LockKey::MAX_LEN)", LockKey::MAX_LEN));
    assert_documented_limit(&format!("[{} bytes](crate::LockKey::MAX_TEMPLATE_LEN)", LockKey::MAX_TEMPLATE_LEN));
}

#[tokio::test]
async fn namespaces() {
    let named = |length| LockManager::builder().namespace("n".repeat(length)).in_memory();
    assert!(named(256).is_ok() && is_refused(&named(257)));
    assert_documented_limit("| a namespace | 256 bytes |");
}

#[tokio::test]
async fn times() {
    for (ttl, expected) in [(Duration::from_millis(12), true), (Duration::from_millis(13), false), (30 * DAY, false)] {
        assert_eq!(refuses(|request| request.ttl(ttl)).await, expected, "{ttl:?}");
    }
    assert!(refuses(|request| request.ttl(30 * DAY + Duration::from_millis(1))).await);
    assert_documented_limit("| a `ttl` | 13 ms to 30 days;");
    let periods = [(Duration::from_millis(99), true), (Duration::from_millis(100), false), (31 * DAY, true)];
    for (period, expected) in periods {
        assert_eq!(refuses(|request| request.once_per(period)).await, expected, "{period:?}");
    }
    assert_documented_limit("| `once_per` | 100 ms to 30 days |");
}

#[tokio::test(start_paused = true)]
async fn defaults() {
    let locks = LockManager::in_memory();
    let guard = locks.acquire("order:7").await.unwrap();
    assert_eq!(guard.ttl(), Duration::from_secs(30));
    let error = locks.acquire("order:7").await.unwrap_err();
    let LockError::TimedOut { waited, .. } = error else { panic!("{error}") };
    assert_eq!(waited.as_secs(), 10);
    assert_documented_limit("The default `wait` is 10 s, the default `ttl` 30 s.");
}

#[tokio::test]
async fn several_servers_limit_the_ttl() {
    let locks = LockManager::builder().nodes(["redis://127.0.0.1:1", "redis://127.0.0.1:2"]).build().unwrap();
    let too_long = LockRequest::new("order:7").ttl(Duration::from_secs(61));
    assert!(is_refused(&locks.acquire(too_long).await), "before anything is sent");
    assert_documented_limit("which is 60 s by default");
}
