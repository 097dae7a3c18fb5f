use axum::debug_handler;
use axum::extract::Path;
use redlock_runtime::distributed_lock;

/// The attribute copies the body into another function, without the lock. `#[distributed_lock]` must come first.
#[debug_handler]
#[distributed_lock(key = "order:{id}", guard = lock, on_error = |error| error.to_string())]
pub async fn capture(Path(id): Path<u64>) -> String {
    format!("{id}: {}", lock.key())
}
