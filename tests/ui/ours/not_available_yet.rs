use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(
    key = "nightly",
    renew = false,
    max_hold = "5m",
    min_hold = "5s",
    mode = shared,
    path = "/a",
    permits = 4,
    reentrant,
    fencing,
    guard = lock,
    on_contended = |key, error| skip,
    on_lost = continue,
    release = confirmed
)]
pub async fn later() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = ["a", "b"])]
pub async fn several() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key("order:{id}", id = order.id), ttl = 3)]
pub async fn named() -> Result<(), LockError> {
    Ok(())
}
