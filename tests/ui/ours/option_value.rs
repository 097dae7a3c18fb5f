use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "nightly", permits = 0, mode = share, on_lost = stop, release = 5, renew = no)]
pub async fn words() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", guard = "lock", on_contended = "skip", on_error = 5, min_hold = 0)]
pub async fn values() -> Result<(), LockError> {
    Ok(())
}
