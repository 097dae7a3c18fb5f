use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", ttl = 0, wait = -5)]
pub async fn zero() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", ttl = "0s", wait = 1.5s)]
pub async fn fraction() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", ttl = "30", wait = 5min)]
pub async fn units() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", ttl = true, wait = None)]
pub async fn kinds() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", ttl = 30000, wait = "4 parsecs")]
pub async fn bare() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", ttl = 12ms, wait = 7_200)]
pub async fn brief() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", ttl = "31d", wait = "5")]
pub async fn long() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", ttl = "30 s", wait = 0x1E)]
pub async fn spelling() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", ttl = "0.5h", wait = 1e3)]
pub async fn fractions() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", ttl = "1m30", wait = "5s5s")]
pub async fn parts() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", ttl = 30 s, wait = 5 min)]
pub async fn spaces() -> Result<(), LockError> {
    Ok(())
}
