use redlock_runtime::{LockError, distributed_lock};

pub struct Service {
    pub locks: String,
}

impl Service {
    #[distributed_lock(key = "nightly", manager = self.locks)]
    pub async fn nightly(&self) -> Result<(), LockError> {
        Ok(())
    }

    #[distributed_lock(key = "nightly", manager = self.lokcs)]
    pub async fn missing(&self) -> Result<(), LockError> {
        Ok(())
    }
}
