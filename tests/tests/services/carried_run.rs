//! Responses to the client of a handler or a method if its lock cannot be acquired.

use crate::carried::{App, Orders, router};
use axum::body::{Body, to_bytes};
use axum::http::header::RETRY_AFTER;
use axum::http::{Request, StatusCode};
use redlock_runtime::LockManager;
use tonic::Code;
use tower::ServiceExt;

/// Sends one request with `locks` as the manager in scope. Returns its status, the time for a retry, and the body.
async fn send(locks: &LockManager, path: &str) -> (StatusCode, Option<u64>, String) {
    let request = Request::post(path).body(Body::empty()).unwrap();
    let response = locks.scope(router(locks.clone()).oneshot(request)).await.unwrap();
    let retry_after = response.headers().get(RETRY_AFTER).map(|value| value.to_str().unwrap().parse().unwrap());
    let status = response.status();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, retry_after, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn lock_error_converts_into_a_response() {
    let locks = LockManager::in_memory();
    for (path, done) in [("/capture/7", "paid"), ("/cancel/7", "cancelled"), ("/refund/7", "paid back")] {
        assert_eq!(send(&locks, path).await, (StatusCode::OK, None, format!("order 7 is {done}")));
        let guard = locks.acquire("order:7").await.unwrap();
        let (status, retry_after, body) = send(&locks, path).await;
        assert_eq!(
            (status, body.as_str()),
            (StatusCode::CONFLICT, "another request is working on this: try again later\n")
        );
        // Much less than the 30 s of the lease: a living holder releases long before its end.
        assert_eq!(retry_after, Some(5), "{path}");
        guard.release().await.unwrap();
    }
    locks.shutdown().await;
    let closed = send(&locks, "/capture/7").await;
    assert_eq!((closed.0, closed.1), (StatusCode::SERVICE_UNAVAILABLE, None));
}

#[tokio::test]
async fn handler_without_a_manager_returns_internal_error() {
    let app = router(LockManager::in_memory());
    let response = app.oneshot(Request::post("/refund/7").body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
}

#[tokio::test(start_paused = true)]
async fn lock_error_converts_into_a_status() {
    let app = App { locks: LockManager::in_memory() };
    let capture = || app.capture(tonic::Request::new(7));
    assert_eq!(capture().await.unwrap().into_inner(), "order 7 is paid");
    let guard = app.locks.acquire("order:7").await.unwrap();
    let status = capture().await.unwrap_err();
    assert_eq!((status.code(), status.details().is_empty()), (Code::Aborted, false));
    guard.release().await.unwrap();
    app.locks.shutdown().await;
    assert_eq!(capture().await.unwrap_err().code(), Code::Unavailable);
}
