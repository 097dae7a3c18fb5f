use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "nightly", on_contended = skip)]
pub async fn number() -> Result<u64, LockError> {
    Ok(7)
}

#[distributed_lock(key = "nightly", on_contended = skip, on_error = |_| false)]
pub async fn boolean() -> bool {
    true
}

/// The return type must still hold the other errors.
#[distributed_lock(key = "nightly", on_contended = skip)]
pub async fn nothing() {}

#[distributed_lock(key = "nightly", on_contended = skip)]
pub async fn option() -> Option<u64> {
    None
}
