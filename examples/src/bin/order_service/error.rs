//! What a caller of the service sees when something fails.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use redis::RedisError;
use redlock_runtime::LockError;
use serde::Serialize;

#[derive(Debug)]
pub(crate) enum ApiError {
    Lock(LockError),
    Store(RedisError),
    NoSuchOrder(u64),
    Captured(u64),
}

/// All that an annotated function asks of its error type.
impl From<LockError> for ApiError {
    fn from(error: LockError) -> Self {
        Self::Lock(error)
    }
}

impl From<RedisError> for ApiError {
    fn from(error: RedisError) -> Self {
        Self::Store(error)
    }
}

#[derive(Serialize)]
struct Body {
    error: &'static str,
    message: String,
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, retry_after, error, message) = match self {
            Self::Lock(error) => return lock_response(&error),
            Self::Store(error) => {
                eprintln!("order_service: the orders cannot be reached: {error}");
                (StatusCode::SERVICE_UNAVAILABLE, Some(5), "unavailable", "the orders cannot be reached".to_owned())
            }
            Self::NoSuchOrder(id) => (StatusCode::NOT_FOUND, None, "not_found", format!("there is no order {id}")),
            Self::Captured(id) => (StatusCode::CONFLICT, None, "captured", format!("order {id} is paid already")),
        };
        response(status, retry_after, Body { error, message })
    }
}

/// What went wrong inside is for the log; the client learns whether, and when, to try again.
fn lock_response(error: &LockError) -> Response {
    let (status, retry_after, name, message) = match error {
        LockError::Contended { .. } | LockError::TimedOut { .. } => {
            (StatusCode::CONFLICT, Some(1), "busy", "another request is at work on this order")
        }
        LockError::NoQuorum { .. } | LockError::Closed => {
            (StatusCode::SERVICE_UNAVAILABLE, Some(5), "unavailable", "nothing was done; try again later")
        }
        // A wrong password or the like, which nobody heals by trying again: a 500, so that somebody looks.
        LockError::Refused { .. } => (StatusCode::INTERNAL_SERVER_ERROR, None, "refused", "nothing was done"),
        // The body was stopped in its midst: repeating the request blindly would be wrong, so no `Retry-After`.
        LockError::Lost { .. } => {
            (StatusCode::INTERNAL_SERVER_ERROR, None, "interrupted", "look at the order before you try again")
        }
        _ => (StatusCode::INTERNAL_SERVER_ERROR, None, "internal", "nothing was done"),
    };
    if status.is_server_error() {
        eprintln!("order_service: {error}");
    }
    response(status, retry_after, Body { error: name, message: message.to_owned() })
}

fn response(status: StatusCode, retry_after: Option<u16>, body: Body) -> Response {
    let mut response = (status, Json(body)).into_response();
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
