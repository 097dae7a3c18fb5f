//! Lock errors as responses of axum handlers.

use super::lock_error::LockError;
use super::public_error::{PublicError, seconds_to_retry};
use axum_core::response::{IntoResponse, Response};
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};

/// Conversion for handlers that return `Result<_, LockError>`. Needs the feature `axum`.
///
/// | error | status |
/// |---|---|
/// | [`Contended`](Self::Contended), [`TimedOut`](Self::TimedOut), [`TooManyWaiting`](Self::TooManyWaiting) | 409 |
/// | [`WindowTaken`](Self::WindowTaken) | 409 |
/// | [`InvalidKey`](Self::InvalidKey) | 400 |
/// | [`NoQuorum`](Self::NoQuorum), [`Closed`](Self::Closed) | 503 |
/// | all others | 500 |
///
/// - `Retry-After` is the time of a retry in seconds, if it is known ([`retry_after`](Self::retry_after)). It is at most 5 for a
///   held lock, and 2 for a [`NoQuorum`](Self::NoQuorum) without a known time. [`WindowTaken`](Self::WindowTaken) has none.
/// - The body is a line of text without the key and without node addresses, so it can be sent to any client.
/// - All errors are logged by the event `request_failed`, except those with the status 409.
/// - The error is in the [extensions](http::Extensions) of the response, for a service that logs it or changes the text.
///
/// # Examples
/// The manager is part of the state or an extension, or it is installed for all functions that name none.
///
/// ```
/// use axum::extract::{Path, State};
/// use axum::{Extension, Router, routing::post};
/// use redlock_runtime::{LockError, LockManager, distributed_lock};
///
/// #[derive(Clone)]
/// struct App {
///     locks: LockManager,
/// }
///
/// #[distributed_lock(key = "order:{id}", manager = state.locks)]
/// async fn capture(State(state): State<App>, Path(id): Path<u64>) -> Result<String, LockError> {
///     Ok(format!("order {id} is paid"))
/// }
///
/// #[distributed_lock(key = "order:{id}", manager = locks)]
/// async fn cancel(Extension(locks): Extension<LockManager>, Path(id): Path<u64>) -> Result<String, LockError> {
///     Ok(format!("order {id} is cancelled"))
/// }
///
/// #[distributed_lock(key = "order:{id}")]
/// async fn refund(Path(id): Path<u64>) -> Result<String, LockError> {
///     Ok(format!("order {id} is paid back"))
/// }
///
/// # fn main() -> Result<(), LockError> {
/// let locks = LockManager::in_memory(); // or LockManager::from_env()?
/// locks.install()?;
/// let app: Router = Router::new()
///     .route("/orders/{id}/capture", post(capture))
///     .route("/orders/{id}/cancel", post(cancel))
///     .route("/orders/{id}/refund", post(refund))
///     .layer(Extension(locks.clone()))
///     .with_state(App { locks });
/// # Ok(()) }
/// ```
impl IntoResponse for LockError {
    fn into_response(self) -> Response {
        let public_error = PublicError::of(&self);
        let mut response = (status(public_error), format!("{}\n", public_error.message())).into_response();
        if let Some(seconds) = seconds_to_retry(&self, public_error) {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// Returns the status as a type of the crate `http`.
fn status(public_error: PublicError) -> StatusCode {
    StatusCode::from_u16(public_error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

#[cfg(test)]
mod tests {
    use super::super::public_error::tests::{assert_no_internals, every_kind};
    use super::*;

    async fn body(response: Response) -> String {
        let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn each_error_has_its_http_response() {
        for (error, public_error, seconds) in every_kind() {
            let (text, expected) =
                (error.to_string(), (status(public_error).as_u16(), seconds.map(|it| it.to_string())));
            let documented = match error {
                _ if error.is_contended() => 409,
                LockError::InvalidKey { .. } => 400,
                LockError::NoQuorum { .. } | LockError::Closed => 503,
                _ => 500,
            };
            let response = error.into_response();
            let retry_after = response.headers().get(RETRY_AFTER).map(|value| value.to_str().unwrap().to_owned());
            assert_eq!((response.status().as_u16(), retry_after), expected, "{text}");
            assert_eq!(response.status().as_u16(), documented, "{text}");
            assert_eq!(response.extensions().get::<LockError>().map(ToString::to_string), Some(text));
            for (name, value) in response.headers() {
                assert_no_internals(&format!("{name}: {value:?}"));
            }
            let body = body(response).await;
            assert_no_internals(body.strip_suffix('\n').unwrap());
        }
    }
}
