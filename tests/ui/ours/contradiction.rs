use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "nightly", permits = 4, mode = shared)]
pub async fn permits_and_mode() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(path = "/tenants", key = "nightly")]
pub async fn path_and_key() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", ttl = 30, renew = false, max_hold = "1m")]
pub async fn max_hold_above_ttl() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", on_lost = continue, fencing)]
pub async fn fencing_without_lock() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", wait = none, fair)]
pub async fn fair_without_wait() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", wait = forever, on_contended = skip)]
pub async fn skip_after_ever() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", on_error = |error| Err(error))]
pub async fn dead_handler() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", fencing)]
pub async fn fencing_without_guard() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = [shared("nightly")], permits = 4)]
pub async fn permits_of_a_shared_key() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = [exclusive("nightly")], permits = 4)]
pub async fn permits_of_an_exclusive_key() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", permits = 4, fencing, guard = lock)]
pub async fn permits_and_fencing() -> Result<(), LockError> {
    lock.fencing_token();
    Ok(())
}

#[distributed_lock(key = "nightly", permits = 4, linger = "1s")]
pub async fn permits_and_linger() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", permits = 1001)]
pub async fn too_many_permits() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", permits = 4, once_per = 1h)]
pub async fn permits_and_once_per() -> Result<(), LockError> {
    Ok(())
}
