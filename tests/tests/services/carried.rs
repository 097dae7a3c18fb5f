#![deny(warnings, missing_docs)]
#![allow(dead_code, unreachable_pub, reason = "also a module of other crates")]
#![warn(clippy::all, clippy::pedantic, clippy::nursery)]
//! Handlers and methods that fail only because of their lock: the features `axum` and `tonic` convert the error into an answer.

use super::prelude::*;
use axum::extract::{Path, State};
use axum::routing::post;
use axum::{Extension, Router, debug_handler};
use redlock_runtime::{LockManager, distributed_lock};
use tonic::{Request, Response, Status};

/// State that the handlers share.
#[derive(Clone, Debug)]
pub struct App {
    /// Lock manager.
    pub locks: LockManager,
}

#[distributed_lock(key = "order:{id}", manager = state.locks, wait = none)]
#[debug_handler(state = App)]
async fn capture(State(state): State<App>, Path(id): Path<u64>) -> Result<String> {
    Ok(format!("order {id} is paid"))
}

#[distributed_lock(key = "order:{id}", manager = locks, wait = 2s)]
async fn cancel(Extension(locks): Extension<LockManager>, Path(id): Path<u64>) -> Result<String> {
    Ok(format!("order {id} is cancelled"))
}

#[distributed_lock(key = "order:{id}", wait = none)]
async fn refund(Path(id): Path<u64>) -> Result<String> {
    Ok(format!("order {id} is paid back"))
}

/// Returns the routes of the handlers.
pub fn router(locks: LockManager) -> Router {
    Router::new()
        .route("/capture/{id}", post(capture))
        .route("/cancel/{id}", post(cancel))
        .route("/refund/{id}", post(refund))
        .layer(Extension(locks.clone()))
        .with_state(App { locks })
}

/// A service with a trait in the form that `tonic-build` writes.
#[tonic::async_trait]
pub trait Orders: Send + Sync + 'static {
    /// Takes the payment.
    async fn capture(&self, request: Request<u64>) -> Result<Response<String>, Status>;
}

#[tonic::async_trait]
impl Orders for App {
    #[distributed_lock(key("order:{id}", id = request.get_ref()), manager = self.locks, wait = none)]
    async fn capture(&self, request: Request<u64>) -> Result<Response<String>, Status> {
        Ok(Response::new(format!("order {} is paid", request.into_inner())))
    }
}
