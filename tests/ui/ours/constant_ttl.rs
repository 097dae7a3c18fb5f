use redlock_runtime::{LockError, distributed_lock};

use std::time::Duration;

pub const NEVER: Duration = Duration::ZERO;

#[distributed_lock(key = "nightly", ttl = NEVER)]
pub async fn nightly() -> Result<(), LockError> {
    Ok(())
}

pub const BRIEF: Duration = Duration::from_millis(12);

#[distributed_lock(key = "nightly", ttl = BRIEF)]
pub async fn too_brief() -> Result<(), LockError> {
    Ok(())
}

pub const FOR_EVER: Duration = Duration::MAX;

#[distributed_lock(key = "nightly", ttl = FOR_EVER)]
pub async fn too_long() -> Result<(), LockError> {
    Ok(())
}
