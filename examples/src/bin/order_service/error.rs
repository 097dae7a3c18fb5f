//! Error type of the handlers, and its HTTP response.

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

/// The only conversion that an annotated function requires of its error type.
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
            // Status, `Retry-After` and a short text come from the library.
            Self::Lock(error) => return error.into_response(),
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

fn response(status: StatusCode, retry_after: Option<u16>, body: Body) -> Response {
    let mut response = (status, Json(body)).into_response();
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use redlock_runtime::testing::errors;
    use std::time::Duration;

    #[test]
    fn every_lock_error_maps_to_a_response() {
        let table = [
            (errors::contended("order:7", Some(Duration::from_secs(2))), 409, Some("2")),
            // `Retry-After` is at most 5 s, because most holders release long before their lease ends.
            (errors::contended("order:7", Some(Duration::from_secs(20))), 409, Some("5")),
            (errors::timed_out("order:7", Duration::from_secs(2), None), 409, None),
            (errors::no_quorum("order:7"), 503, Some("2")),
            (errors::refused("order:7", "NOPERM this user has no permissions"), 500, None),
            (errors::closed(), 503, None),
        ];
        for (error, status, retry_after) in table {
            let text = error.to_string();
            let response = ApiError::from(error).into_response();
            let header = response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
            assert_eq!((response.status().as_u16(), header), (status, retry_after), "{text}");
        }
    }
}
