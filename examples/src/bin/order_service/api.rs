//! Request handlers. A handler that changes an order holds the lock of the order.

use crate::error::ApiError;
use crate::orders::{Order, Orders, Status};
use axum::extract::{FromRequestParts, Path, State};
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use redlock_examples::prometheus;
use redlock_runtime::admin::LocksPage;
use redlock_runtime::{LockError, LockManager, distributed_lock};
use serde::Deserialize;
use std::sync::Arc;

#[derive(Clone)]
pub(crate) struct AppState {
    pub(crate) locks: LockManager,
    pub(crate) orders: Orders,
    /// Bearer token that clients must send. With `None`, every client is authorized.
    pub(crate) token: Option<Arc<str>>,
}

/// Routes for clients.
pub(crate) fn router(state: AppState) -> Router {
    Router::new()
        .route("/orders", post(create))
        .route("/orders/{id}", get(show).patch(change))
        .route("/orders/{id}/capture", post(capture))
        .layer(map_response(log_lock_error))
        .with_state(state)
}

/// Routes for operators. They have a separate listener, because the pages show keys and file names.
pub(crate) fn pages(state: AppState) -> Router {
    Router::new().route("/metrics", get(metrics)).route("/locks", get(locks)).with_state(state)
}

/// Extractor that rejects clients without the token.
///
/// Extractors run before the lock is acquired, and the handler's body runs while it is held. An authorization check in
/// the body would be too late. Unauthorized clients could hold the lock, and a 409 would reveal that an order is being
/// paid.
struct Authorized;

impl FromRequestParts<AppState> for Authorized {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, StatusCode> {
        let Some(token) = &state.token else { return Ok(Self) };
        let sent = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        if sent == Some(token) { Ok(Self) } else { Err(StatusCode::UNAUTHORIZED) }
    }
}

/// Logs lock errors with a 5xx status. The client gets only a short text and `Retry-After`; the details stay in the
/// log.
async fn log_lock_error(response: Response) -> Response {
    let error = response.extensions().get::<LockError>().filter(|_| response.status().is_server_error());
    if let Some(error) = error {
        eprintln!("order_service: {error}");
    }
    response
}

/// Lock metrics in the format of Prometheus.
async fn metrics(State(state): State<AppState>) -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], prometheus::page(&state.locks.stats()))
}

/// HTML page with the locks of this process.
async fn locks(State(state): State<AppState>) -> LocksPage {
    state.locks.page("order_service")
}

#[derive(Deserialize)]
struct Amount {
    /// Amount in cents.
    amount: u64,
}

/// Creates an order. This needs no lock, because no other request knows the new ID yet.
async fn create(
    _client: Authorized,
    State(state): State<AppState>,
    Json(body): Json<Amount>,
) -> Result<(StatusCode, Json<Order>), ApiError> {
    let order = state.orders.create(body.amount).await?;
    Ok((StatusCode::CREATED, Json(order)))
}

async fn show(
    _client: Authorized,
    State(state): State<AppState>,
    Path(id): Path<u64>,
) -> Result<Json<Order>, ApiError> {
    Ok(Json(state.orders.find(id).await?))
}

/// Takes the payment of an open order. If another call holds the lock of the order, this one fails at once with 409.
///
/// The key template uses `id` and `state`, which the patterns of the extractors bind. A malformed or unauthorized
/// request fails in an extractor and takes no lock. If the client disconnects, axum drops the call, which stops the
/// body and releases the lock.
#[distributed_lock(key = "order:{id}", ttl = 30, wait = none, manager = state.locks)]
async fn capture(
    _client: Authorized,
    State(state): State<AppState>,
    Path(id): Path<u64>,
) -> Result<Json<Order>, ApiError> {
    // Check, then act: correct only because the lock excludes other calls in between.
    let mut order = open_order(&state, id).await?;
    state.orders.charge(&order).await?;
    order.status = Status::Captured;
    state.orders.save(&order).await?;
    Ok(Json(order))
}

/// Changes the amount of an open order. Uses the same key as [`capture`], so an order cannot change during its payment.
/// The call waits up to 2 s for a running payment, and then finds that the order is paid.
#[distributed_lock(key = "order:{id}", ttl = 30, wait = 2, manager = state.locks)]
async fn change(
    _client: Authorized,
    State(state): State<AppState>,
    Path(id): Path<u64>,
    Json(body): Json<Amount>,
) -> Result<Json<Order>, ApiError> {
    let mut order = open_order(&state, id).await?;
    order.amount = body.amount;
    state.orders.save(&order).await?;
    Ok(Json(order))
}

async fn open_order(state: &AppState, id: u64) -> Result<Order, ApiError> {
    let order = state.orders.find(id).await?;
    match order.status {
        Status::Open => Ok(order),
        Status::Captured => Err(ApiError::Captured(id)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redlock_runtime::testing::TestServers;
    use redlock_tests::RedisServer;
    use std::time::Duration;

    /// Payment time that is long enough for two calls to overlap.
    const PAYMENT: Duration = Duration::from_millis(50);

    /// Two processes, simulated by two managers. They share the orders in one Redis and the locks on the test servers.
    async fn processes(redis: &RedisServer, servers: &TestServers) -> [AppState; 2] {
        let orders = Orders::at(&redis.url(), PAYMENT).await.unwrap();
        [(); 2].map(|()| AppState {
            locks: servers.manager_with(LockManager::builder().namespace("locks")),
            orders: orders.clone(),
            token: None,
        })
    }

    #[tokio::test]
    async fn only_one_of_two_processes_captures_an_order() {
        let (redis, servers) = (RedisServer::start().await, TestServers::new(3));
        let [ours, theirs] = processes(&redis, &servers).await;
        let id = ours.orders.create(1999).await.unwrap().id;
        let (first, second) = tokio::join!(
            capture(Authorized, State(ours), Path(id)),
            capture(Authorized, State(theirs.clone()), Path(id))
        );
        let losers: Vec<_> = [first, second].into_iter().filter_map(Result::err).collect();
        assert!(matches!(&losers[..], [ApiError::Lock(error)] if error.is_contended()), "{losers:?}");
        let again = capture(Authorized, State(theirs), Path(id)).await.err();
        assert!(matches!(again, Some(ApiError::Captured(_))), "{again:?}");
        assert_eq!(servers.log().max_together("order:{id}"), 1);
    }

    #[tokio::test]
    async fn order_with_a_held_lock_is_neither_captured_nor_changed() {
        let (redis, servers) = (RedisServer::start().await, TestServers::new(1));
        let [ours, theirs] = processes(&redis, &servers).await;
        let id = ours.orders.create(1999).await.unwrap().id;
        servers.hold(format!("locks:order:{id}")).await;
        let refused = capture(Authorized, State(ours.clone()), Path(id)).await.err();
        assert!(matches!(&refused, Some(ApiError::Lock(error)) if error.is_contended()), "{refused:?}");
        let change = change(Authorized, State(ours.clone()), Path(id), Json(Amount { amount: 1 }));
        let release = async {
            while theirs.locks.inspect(format!("order:{id}")).await.waiters().is_empty() {
                tokio::task::yield_now().await;
            }
            servers.release(format!("locks:order:{id}"));
        };
        let (changed, ()) = tokio::join!(change, release);
        assert_eq!(changed.unwrap().amount, 1, "it has waited");
    }
}
