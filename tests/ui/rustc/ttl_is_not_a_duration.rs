use redlock_runtime::{LockError, distributed_lock};

pub const SECONDS: u64 = 30;

#[distributed_lock(key = "nightly", ttl = SECONDS)]
pub async fn constant() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", ttl = seconds)]
pub async fn argument(seconds: u64) -> Result<u64, LockError> {
    Ok(seconds)
}

#[distributed_lock(key = "nightly", wait = SECONDS)]
pub async fn wait() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", wait = id)]
pub async fn wait_for_an_id(id: u64) -> Result<u64, LockError> {
    Ok(id)
}

#[distributed_lock(key = "nightly", ttl = missing)]
pub async fn missing() -> Result<(), LockError> {
    Ok(())
}
