use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(name = "nightly", lockAtMostFor = "10m", lockAtLeastFor = "5m")]
pub async fn shedlock() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(resource = "nightly", lease_ms = 30_000, max_wait = 5, retry_delay = 200, retry_count = 3)]
pub async fn redlock() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(name = "nightly", timeout = 30, blocking = false, blocking_timeout = 5)]
pub async fn redis_py() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", leaseTime = 30, waitTime = 5, watchdog = true, expire_in = 5, cron = "* * * * *")]
pub async fn others() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", client = redis, skip_if_locked = true, fencing_token, shared(true))]
pub async fn more() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", max_concurrent = 4, max_concurrency = 4, limit = 4)]
pub async fn limits() -> Result<(), LockError> {
    Ok(())
}
