//! The REST service answers requests concurrently, as far as its locks allow.

use crate::rest::{App, router};
use crate::store::Store;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use redlock_runtime::LockManager;
use serde_json::{Value, json};
use tower::ServiceExt;

fn app() -> App {
    App { locks: LockManager::in_memory(), orders: Store::default() }
}

/// Sends one request. Its manager is in scope, because some handlers use the installed one.
async fn send(app: &App, method: &str, path: &str, body: impl Into<Option<Value>>) -> (StatusCode, Value) {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let request = request.body(Body::from(body.into().map_or_else(String::new, |body| body.to_string()))).unwrap();
    let response = app.locks.scope(router(app.clone()).oneshot(request)).await.unwrap();
    let status = response.status();
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

fn order(customer: &str, amount: u64) -> Value {
    json!({ "customer": customer, "amount": amount })
}

#[tokio::test(start_paused = true)]
async fn orders_of_a_customer_are_created_one_by_one() {
    let app = app();
    for (second, peak, total) in [("a", 1, 12), ("b", 2, 17)] {
        let (first, second) = tokio::join!(
            send(&app, "POST", "/orders", order("a", 5)),
            send(&app, "POST", "/orders", order(second, 7)),
        );
        assert_eq!((first.0, second.0), (StatusCode::CREATED, StatusCode::CREATED));
        assert_eq!((app.orders.peak(), app.orders.read("a")), (peak, total));
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_order_lines_are_all_stored() {
    let app = app();
    let line = |path| send(&app, "PUT", path, order("", 5));
    let added = tokio::join!(line("/orders/shop/7"), line("/orders/shop/7"), line("/orders/shop/7"));
    assert!([added.0, added.1, added.2].iter().all(|(status, _)| *status == StatusCode::OK));
    assert_eq!((app.orders.peak(), app.orders.read("shop/7")), (1, 15));
    let (_, shown) = send(&app, "GET", "/orders/shop/7", None).await;
    assert_eq!(shown, json!({ "name": "shop/7", "amount": 15 }));
    tokio::join!(line("/orders/shop/7"), line("/orders/shop/8"));
    assert_eq!(app.orders.peak(), 2);
}

#[tokio::test(start_paused = true)]
async fn locked_order_returns_conflict() {
    let app = app();
    let guard = app.locks.acquire("shop:7").await.unwrap();
    let cancel = || send(&app, "DELETE", "/orders/shop/7", None);
    assert_eq!(cancel().await.0, StatusCode::CONFLICT);
    assert_eq!(send(&app, "GET", "/orders/shop/7", None).await.0, StatusCode::CONFLICT, "after its wait");
    guard.release().await.unwrap();
    assert_eq!(cancel().await.0, StatusCode::NO_CONTENT);
    assert_eq!(send(&app, "GET", "/orders/shop/7", None).await.0, StatusCode::NOT_FOUND, "the handler's own error");
}

#[tokio::test(start_paused = true)]
async fn contention_handler_answers_the_request() {
    let app = app();
    let list = || send(&app, "GET", "/orders?customer=a&from=2", None);
    let (first, second) = tokio::join!(list(), list());
    assert_eq!(first.1, json!([{ "name": "a+2", "amount": 0 }]));
    assert_eq!(second, (StatusCode::OK, Value::Null), "told to try again");
    tokio::join!(list(), send(&app, "GET", "/orders?customer=a&from=3", None));
    assert_eq!(app.orders.peak(), 2);
}

#[tokio::test(start_paused = true)]
async fn contended_reprice_is_skipped() {
    let app = app();
    let guard = app.locks.acquire("reprice").await.unwrap();
    let reprice = || send(&app, "POST", "/admin/reprice", None);
    assert_eq!((reprice().await.0, app.orders.read("prices")), (StatusCode::OK, 0), "skipped");
    guard.release().await.unwrap();
    let (first, second) = tokio::join!(reprice(), reprice());
    assert_eq!((first.0, second.0), (StatusCode::OK, StatusCode::OK));
    assert_eq!((app.orders.read("prices"), app.orders.peak()), (2, 1), "one after the other by the middleware");
}

#[tokio::test]
async fn closed_manager_returns_service_unavailable() {
    let app = app();
    app.locks.shutdown().await;
    for (method, path) in [("GET", "/orders/shop/7"), ("GET", "/orders?customer=a"), ("POST", "/admin/reprice")] {
        assert_eq!(send(&app, method, path, None).await.0, StatusCode::SERVICE_UNAVAILABLE, "{method} {path}");
    }
}
