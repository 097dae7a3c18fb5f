use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "nightly", wait = forevr, on_contended = skipp)]
pub async fn near() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", ttl = none, max_hold = forever, once_per = none)]
pub async fn durations() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", wait = "forever", release = "confirmed", on_contended = "skip", renew = "false")]
pub async fn quoted() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", wait = false, renew = 10s)]
pub async fn other_types() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", wait = infinite, ttl = forever)]
pub async fn other_words() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key("nightly", once))]
pub async fn constant() -> Result<(), LockError> {
    Ok(())
}
