use redlock_runtime::{LockError, LockManager, distributed_lock};
use std::time::Duration;

pub const LEASE: Duration = Duration::from_secs(30);

pub struct Service {
    pub locks: LockManager,
    pub lease: Duration,
}

impl Service {
    #[distributed_lock(key = "nightly", manager = "self.locks", ttl = "self.lease")]
    pub async fn expressions(&self) -> Result<(), LockError> {
        Ok(())
    }

    #[distributed_lock(key = "nightly", manager = "the locks", wait = "LEASE")]
    pub async fn neither(&self) -> Result<(), LockError> {
        Ok(())
    }

    #[distributed_lock(key = "nightly", manager = 5, on_error = "busy")]
    pub async fn other_types(&self) -> bool {
        true
    }
}

#[distributed_lock(key = "nightly", permits = "5")]
pub async fn number() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", mode = "read", renew = "false")]
pub async fn words() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", wait = "5s".into(), ttl = "30s".parse().unwrap())]
pub async fn converted() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", wait = limit.into())]
pub async fn converted_twice(limit: Duration) -> Result<(), LockError> {
    Ok(())
}
