#![deny(warnings, missing_docs)]
#![allow(dead_code, unreachable_pub, reason = "also a module of other crates")]
#![warn(clippy::all, clippy::pedantic, clippy::nursery)]
//! REST interface to the orders of a shop.

use super::prelude::*;
use super::store::Store;
use axum::extract::{FromRef, Path, Query, Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router, debug_handler};
use redlock_runtime::{LockError, LockManager, distributed_lock};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tracing::instrument;

/// State that the handlers share.
#[derive(Clone, Debug, FromRef)]
pub struct App {
    /// Lock manager.
    pub locks: LockManager,
    /// Orders.
    pub orders: Store,
}

/// Reason for a refused request.
#[derive(Debug)]
#[non_exhaustive]
pub enum ApiError {
    /// The order does not exist.
    NotFound,
    /// The lock could not be acquired, or was lost.
    Lock(LockError),
}

impl From<LockError> for ApiError {
    fn from(error: LockError) -> Self {
        Self::Lock(error)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        match self {
            Self::NotFound => StatusCode::NOT_FOUND.into_response(),
            Self::Lock(error) if error.is_contended() => (StatusCode::CONFLICT, error.to_string()).into_response(),
            Self::Lock(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response(),
        }
    }
}

/// An order in a request.
#[derive(Debug, Deserialize)]
pub struct NewOrder {
    /// Customer of the order.
    pub customer: String,
    /// Amount in cents.
    pub amount: u64,
}

/// An order in a response.
#[derive(Debug, Serialize)]
pub struct Order {
    /// Name in the store.
    pub name: String,
    /// Amount in cents.
    pub amount: u64,
}

/// Part of a list to show.
#[derive(Debug, Deserialize)]
pub struct Page {
    /// Customer of the orders.
    pub customer: String,
    /// Number of the first order.
    #[serde(default)]
    pub from: u16,
}

/// Lease of a handler that calls other services.
const LEASE: Duration = Duration::from_secs(20);

#[instrument(skip_all, fields(customer = %order.customer))]
#[distributed_lock(key = "customer:{order.customer}", manager = app.locks, ttl = 10s, wait = 2s)]
async fn create(State(app): State<App>, Json(order): Json<NewOrder>) -> Result<(StatusCode, Json<Order>), ApiError> {
    let NewOrder { customer, amount } = order;
    let total = app.orders.update(&customer, |total| total + amount).await;
    Ok((StatusCode::CREATED, Json(Order { name: customer, amount: total })))
}

#[debug_handler(state = App)]
#[distributed_lock(key = "{tenant}:{id}", manager = locks, wait = 500ms)]
async fn show(
    State(locks): State<LockManager>,
    State(orders): State<Store>,
    Path((tenant, id)): Path<(String, u64)>,
) -> Result<Json<Order>, ApiError> {
    let name = format!("{tenant}/{id}");
    let amount = orders.read(&name);
    if amount == 0 {
        return Err(ApiError::NotFound);
    }
    Ok(Json(Order { name, amount }))
}

/// Adds a line. Checks the guard before the last step.
#[distributed_lock(key = "{tenant}:{id}", manager = app.locks, ttl = LEASE, guard = lock)]
#[debug_handler]
#[instrument(skip(app, line))]
async fn add_line(
    State(app): State<App>,
    Path((tenant, id)): Path<(String, u64)>,
    Json(line): Json<NewOrder>,
) -> Result<Json<Order>, ApiError> {
    let name = format!("{tenant}/{id}");
    if lock.remaining() < Duration::from_secs(5) {
        lock.extend().await?;
    }
    let amount = app.orders.update(&name, |amount| amount + line.amount).await;
    Ok(Json(Order { name, amount }))
}

/// Cancels an order. Fails at once if the order is being changed.
#[distributed_lock(key = "{tenant}:{id}", manager = app.locks, wait = none)]
async fn cancel(State(app): State<App>, Path((tenant, id)): Path<(String, u64)>) -> Result<StatusCode, ApiError> {
    app.orders.update(&format!("{tenant}/{id}"), |_| 0).await;
    Ok(StatusCode::NO_CONTENT)
}

/// Lists orders. The response type itself contains the error.
#[distributed_lock(
    key = "list:{page.customer}:{page.from:05}",
    manager = app.locks,
    wait = none,
    on_contended = |_| [("retry-after", "1")].into_response(),
    on_error = |error| ApiError::from(error).into_response()
)]
async fn list(State(app): State<App>, Query(page): Query<Page>) -> Response {
    let Page { customer, from } = page;
    let amount = app.orders.update(&customer, |amount| amount).await;
    Json([Order { name: format!("{customer}+{from}"), amount }]).into_response()
}

/// Changes all prices. A second call at the same time does nothing. Uses the installed manager.
#[instrument(skip(orders), ret)]
#[distributed_lock(key = "reprice", wait = none, on_contended = skip, on_lost = continue, release = confirmed)]
async fn reprice(State(orders): State<Store>) -> Result<(), ApiError> {
    orders.update("prices", |price| price + 1).await;
    Ok(())
}

/// Handles one request at a time for each path below `/admin`.
#[distributed_lock(
    key("path:{path}", path = request.uri().path()),
    manager = locks,
    on_error = |error| ApiError::from(error).into_response()
)]
async fn one_at_a_time(State(locks): State<LockManager>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    response.headers_mut().insert("x-exclusive", axum::http::HeaderValue::from_static("yes"));
    response
}

/// Returns all routes.
pub fn router(app: App) -> Router {
    let orders = Router::new().route("/{id}", get(show).put(add_line).delete(cancel));
    let admin = Router::new()
        .route("/reprice", post(reprice))
        .layer(middleware::from_fn_with_state(app.clone(), one_at_a_time));
    Router::new()
        .route("/orders", post(create).get(list))
        .nest("/orders/{tenant}", orders)
        .nest("/admin", admin)
        .with_state(app)
}
