use redlock_runtime::{LockError, distributed_lock, distributed_lock_defaults};

#[distributed_lock(key = "nightly", linger = 2s, min_hold = 1h)]
async fn two_ends() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", once_per = 1h, linger = 2)]
async fn in_a_window() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", linger = LINGER, release = confirmed)]
async fn confirmed() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", linger = none)]
async fn in_words() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", idle_timeout = 2s)]
async fn in_other_words() -> Result<(), LockError> {
    Ok(())
}

struct Orders;

#[distributed_lock_defaults(linger = 2s)]
impl Orders {
    #[distributed_lock(key = "nightly", once_per = 1h)]
    async fn against_the_defaults(&self) -> Result<(), LockError> {
        Ok(())
    }

    #[distributed_lock(key = "nightly", once_per = 1h, linger = 0)]
    async fn with_its_own(&self) -> Result<(), LockError> {
        Ok(())
    }
}

const LINGER: std::time::Duration = std::time::Duration::from_secs(2);

fn main() {}
