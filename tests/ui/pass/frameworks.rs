#![deny(warnings, missing_docs)]
#![allow(dead_code, unreachable_pub, reason = "also a module of the attribute tests")]
#![warn(clippy::all, clippy::pedantic, clippy::nursery)]
//! Handlers of web and RPC frameworks, with the attributes of these frameworks.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Router, debug_handler};
use redlock_runtime::{LockError, LockManager, distributed_lock};
use std::sync::Arc;
use tracing::instrument;

/// Shared state of the handlers.
#[derive(Clone, Debug)]
pub struct App {
    /// The locks.
    pub locks: Arc<LockManager>,
}

/// The error of the handlers.
#[derive(Debug)]
pub struct ApiError(pub StatusCode);

impl From<LockError> for ApiError {
    fn from(error: LockError) -> Self {
        Self(if error.is_contended() { StatusCode::CONFLICT } else { StatusCode::SERVICE_UNAVAILABLE })
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

/// # Errors
/// The lock.
#[distributed_lock(key = "order:{id}", manager = app.locks, wait = none)]
pub async fn capture(State(app): State<App>, Path(id): Path<u64>, body: String) -> Result<String, ApiError> {
    tokio::task::yield_now().await;
    Ok(format!("{id}{body}"))
}

/// The attribute of the framework may be above or below.
///
/// # Errors
/// The lock.
#[debug_handler]
#[distributed_lock(key = "order:{id}", manager = app.locks)]
pub async fn debug_above(State(app): State<App>, Path((id, _)): Path<(u64, String)>) -> Result<String, ApiError> {
    tokio::task::yield_now().await;
    Ok(id.to_string())
}

/// # Errors
/// The lock.
#[distributed_lock(key = "order:{id}", manager = app.locks, guard = lock)]
#[debug_handler]
pub async fn debug_below(State(app): State<App>, Path(id): Path<u64>) -> Result<String, ApiError> {
    Ok(lock.key().to_string())
}

/// Returns another response for a lock that is taken.
#[distributed_lock(
    key = "order:{id}",
    manager = app.locks,
    wait = none,
    on_contended = |_| StatusCode::CONFLICT.into_response(),
    on_error = |error| ApiError::from(error).into_response()
)]
pub async fn response(State(app): State<App>, Path(id): Path<u64>) -> Response {
    id.to_string().into_response()
}

/// All of them are handlers.
pub fn router(app: App) -> Router {
    Router::new()
        .route("/orders/{id}", post(capture).put(debug_below).get(response))
        .route("/orders/{id}/{name}", get(debug_above))
        .with_state(app)
}

/// # Errors
/// The lock.
#[instrument(skip_all, fields(id))]
#[distributed_lock(key = "order:{id}")]
pub async fn instrumented_above(id: u64, (left, _): (String, u8)) -> Result<Box<dyn Fn() -> u64 + Send>, LockError> {
    let length = left.len() as u64;
    Ok(Box::new(move || id + length))
}

/// # Errors
/// The lock.
#[distributed_lock(key = "order:{id}")]
#[instrument(err, ret, level = "debug")]
pub async fn instrumented_below(id: u64, left: &str) -> Result<u64, LockError> {
    tokio::task::yield_now().await;
    Ok(id + left.len() as u64)
}

/// A service, as `tonic-build` writes its trait.
#[tonic::async_trait]
pub trait Payments: Send + Sync + 'static {
    /// Captures.
    async fn capture(&self, request: tonic::Request<u64>) -> Result<tonic::Response<u64>, tonic::Status>;
    /// Cancels.
    async fn cancel(&self, request: tonic::Request<u64>) -> Result<tonic::Response<u64>, tonic::Status>;
}

/// The service.
#[derive(Debug)]
pub struct Service {
    /// The locks.
    pub locks: LockManager,
}

/// `tonic::Status` is another crate's, and so is `LockError`.
fn status(error: &LockError) -> tonic::Status {
    if error.is_contended() {
        tonic::Status::aborted(error.to_string())
    } else {
        tonic::Status::unavailable(error.to_string())
    }
}

#[tonic::async_trait]
impl Payments for Service {
    #[distributed_lock(
        key = "order:{request.get_ref()}",
        manager = self.locks,
        wait = none,
        on_error = |error| Err(status(&error))
    )]
    async fn capture(&self, request: tonic::Request<u64>) -> Result<tonic::Response<u64>, tonic::Status> {
        tokio::task::yield_now().await;
        Ok(tonic::Response::new(request.into_inner()))
    }

    #[instrument(skip_all)]
    #[distributed_lock(
        key("order:{id}", id = request.get_ref()),
        manager = self.locks,
        guard = lock,
        on_error = |error| Err(status(&error))
    )]
    async fn cancel(&self, request: tonic::Request<u64>) -> Result<tonic::Response<u64>, tonic::Status> {
        let _ = lock.is_held();
        Ok(tonic::Response::new(request.into_inner()))
    }
}
