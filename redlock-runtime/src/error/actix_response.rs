//! Lock errors as responses of actix-web handlers.

use super::lock_error::LockError;
use super::public_error::{PublicError, seconds_to_retry};
use actix_web::http::StatusCode;
use actix_web::http::header::{ContentType, RETRY_AFTER};
use actix_web::{HttpResponse, ResponseError};

/// Conversion for handlers that return `Result<_, LockError>`. Needs the feature `actix-web`.
///
/// Status, `Retry-After`, body and log event are those of the conversion for axum:
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
/// - A middleware finds the error with `HttpResponse::error`.
///
/// # Examples
/// ```
/// use actix_web::{App, post, test, web};
/// use redlock_runtime::{LockError, LockManager, distributed_lock};
///
/// #[post("/orders/{id}/capture")]
/// #[distributed_lock(key = "order:{id}", wait = none, manager = locks)]
/// async fn capture(locks: web::Data<LockManager>, id: web::Path<u64>) -> Result<String, LockError> {
///     Ok(format!("order {id} is paid"))
/// }
///
/// #[actix_web::main]
/// async fn main() -> Result<(), LockError> {
///     let locks = LockManager::in_memory(); // or LockManager::from_env()?
///     let app = test::init_service(App::new().app_data(web::Data::new(locks.clone())).service(capture)).await;
///     let request = || test::TestRequest::post().uri("/orders/7/capture").to_request();
///
///     let held = locks.acquire("order:7").await?;
///     assert_eq!(test::call_service(&app, request()).await.status(), 409);
///     held.release().await?;
///     assert_eq!(test::call_service(&app, request()).await.status(), 200);
///     Ok(())
/// }
/// ```
impl ResponseError for LockError {
    fn status_code(&self) -> StatusCode {
        status(PublicError::kind_of_error(self))
    }

    fn error_response(&self) -> HttpResponse {
        let public_error = PublicError::of(self);
        let mut response = HttpResponse::build(status(public_error));
        response.insert_header(ContentType::plaintext());
        if let Some(seconds) = seconds_to_retry(self, public_error) {
            response.insert_header((RETRY_AFTER, seconds));
        }
        response.body(format!("{}\n", public_error.message()))
    }
}

/// Returns the status as a type of actix-web.
fn status(public_error: PublicError) -> StatusCode {
    StatusCode::from_u16(public_error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

#[cfg(test)]
mod tests {
    use super::super::public_error::tests::{assert_no_internals, every_kind};
    use super::*;
    use actix_web::body;

    #[tokio::test]
    async fn each_error_has_its_response() {
        for (error, public_error, seconds) in every_kind() {
            let text = error.to_string();
            assert_eq!(error.status_code().as_u16(), public_error.status(), "{text}");
            let response = HttpResponse::from_error(error);
            assert_eq!(response.status().as_u16(), public_error.status(), "{text}");
            let retry_after = response.headers().get(RETRY_AFTER).map(|value| value.to_str().unwrap().to_owned());
            assert_eq!(retry_after, seconds.map(|it| it.to_string()), "{text}");
            assert_eq!(response.error().map(ToString::to_string), Some(text));
            for (name, value) in response.headers() {
                assert_no_internals(&format!("{name}: {value:?}"));
            }
            let body = body::to_bytes(response.into_body()).await.unwrap();
            assert_eq!(body, format!("{}\n", public_error.message()));
        }
    }
}
