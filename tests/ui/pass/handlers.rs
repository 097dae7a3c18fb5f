//! Handlers without an argument that identifies what is locked. None of them gets a warning.
#![deny(warnings)]

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Extension, Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode};
use redlock_runtime::{LockError, distributed_lock};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

#[derive(Clone)]
pub struct Pool(pub Arc<str>);

#[derive(Clone)]
pub struct User(pub u64);

#[derive(serde::Deserialize)]
pub struct Page {
    pub page: usize,
    pub limit: usize,
}

#[derive(serde::Deserialize)]
pub struct NewOrder {
    pub name: String,
}

/// Response of a handler.
pub struct Failed;

impl From<LockError> for Failed {
    fn from(_: LockError) -> Self {
        Self
    }
}

impl axum::response::IntoResponse for Failed {
    fn into_response(self) -> axum::response::Response {
        StatusCode::CONFLICT.into_response()
    }
}

#[distributed_lock(key = "orders")]
pub async fn list(State(pool): State<Pool>, Query(page): Query<Page>) -> Result<String, Failed> {
    Ok(format!("{}{}{}", pool.0, page.page, page.limit))
}

#[distributed_lock(key = "orders")]
pub async fn create(
    State(pool): State<Pool>,
    Extension(user): Extension<User>,
    headers: HeaderMap,
    Json(order): Json<NewOrder>,
) -> Result<String, Failed> {
    Ok(format!("{}{}{}{}", pool.0, user.0, headers.len(), order.name))
}

#[distributed_lock(key = "raw")]
pub async fn raw(Query(filter): Query<HashMap<String, String>>, request: Request) -> Result<String, Failed> {
    Ok(format!("{}{}", filter.len(), request.uri()))
}

#[distributed_lock(key = "raw")]
pub async fn bytes(Path(page): Path<u32>, body: Bytes) -> Result<String, Failed> {
    Ok(format!("{page}{}", body.len()))
}

#[distributed_lock(key = "rpc")]
pub async fn rpc(request: tonic::Request<String>, flag: bool) -> Result<tonic::Response<usize>, LockError> {
    Ok(tonic::Response::new(request.get_ref().len() + usize::from(flag)))
}

#[distributed_lock(key = "job")]
pub async fn job(
    updates: watch::Sender<u8>,
    done: oneshot::Sender<()>,
    mut events: mpsc::Receiver<u64>,
    attempt: u32,
    batch_size: usize,
    timeout: Duration,
    dry_run: bool,
) -> Result<u64, LockError> {
    let next = events.recv().await.unwrap_or_default();
    updates.send_replace(1);
    let _ = done.send(());
    Ok(next + u64::from(attempt) + batch_size as u64 + timeout.as_secs() + u64::from(dry_run))
}

#[distributed_lock(key("orders", constant))]
pub async fn all(order_id: u64) -> Result<u64, LockError> {
    Ok(order_id)
}

pub fn routes() -> axum::Router<Pool> {
    use axum::routing::{get, post};
    axum::Router::new()
        .route("/", get(list).post(create))
        .route("/raw", get(raw))
        .route("/bytes/{page}", post(bytes))
}
