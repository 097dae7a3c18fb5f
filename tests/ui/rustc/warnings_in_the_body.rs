use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "order:{in_key}")]
pub async fn unused(amount: u64, mut never_changed: u64, in_key: u64, _silent: u64) -> Result<u64, LockError> {
    let local = 5;
    Ok(never_changed)
}

#[distributed_lock(key = "nightly")]
pub async fn unreachable() -> Result<u64, LockError> {
    return Ok(1);
    Ok(2)
}
