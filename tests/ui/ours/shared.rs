use redlock_runtime::{LockError, distributed_lock, distributed_lock_defaults};

#[distributed_lock(key = "config", mode = shared, fencing, guard = lock)]
pub async fn numbered() -> Result<(), LockError> {
    lock.ensure_held()
}

#[distributed_lock(key = "config", mode = shared, fencing)]
pub async fn numbered_for_nobody() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "config", mode = shared, once_per = 1h)]
pub async fn in_a_window() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "config", mode = shared, linger = 2s)]
pub async fn lingering() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "config", mode = "shared")]
pub async fn quoted() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "config", mode = reader)]
pub async fn in_other_words() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "config", mode = Shared)]
pub async fn in_capitals() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "config", mode = upgradable)]
pub async fn no_such_mode() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "config", mode = 2)]
pub async fn number() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "config", mode)]
pub async fn nothing() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "config", mode = shared, ttl = 10, mode = exclusive)]
pub async fn twice() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "config", shared)]
pub async fn flag() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "config", exclusive)]
pub async fn other_flag() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "config:{name}", mode = shared)]
pub async fn again(name: u64) -> Result<(), LockError> {
    Box::pin(again(name)).await
}

/// The two functions need the lock for the same work.
#[distributed_lock(key = "config:{name}", mode = shared, reentrant)]
pub async fn nested(name: u64) -> Result<(), LockError> {
    Box::pin(nested(name)).await
}

pub struct Config;

#[distributed_lock_defaults(mode = shared, ttl = 10)]
impl Config {
    #[distributed_lock(key = "config", fencing, guard = lock)]
    pub async fn against_the_defaults(&self) -> Result<(), LockError> {
        lock.ensure_held()
    }

    #[distributed_lock(key = "config", mode = exclusive, fencing, guard = lock)]
    pub async fn with_its_own(&self) -> Result<(), LockError> {
        lock.ensure_held()
    }
}

#[distributed_lock_defaults(linger = 2s)]
impl Config {
    #[distributed_lock(key = "config", mode = shared)]
    pub async fn in_a_block_that_lingers(&self) -> Result<(), LockError> {
        Ok(())
    }

    #[distributed_lock(key = "config", mode = shared, linger = 0)]
    pub async fn in_a_block_that_lingers_elsewhere(&self) -> Result<(), LockError> {
        Ok(())
    }
}

#[distributed_lock_defaults(mode = sharde)]
impl Config {
    #[distributed_lock(key = "config")]
    pub async fn mistaken(&self) -> Result<(), LockError> {
        Ok(())
    }
}
