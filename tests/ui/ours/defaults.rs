use redlock_runtime::{LockError, LockManager, distributed_lock, distributed_lock as locked, distributed_lock_defaults};

pub struct Shop {
    pub locks: LockManager,
}

/// Every mistake is reported here, and once.
#[distributed_lock_defaults(key = "a", guard = lock, fencing, tll = 5, ttl = 0, wait = none, once_per = 15m)]
impl Shop {
    #[distributed_lock(key = "one")]
    pub async fn one(&self) -> Result<(), LockError> {
        Ok(())
    }

    #[distributed_lock(key = "two")]
    pub async fn two(&self) -> Result<(), LockError> {
        Ok(())
    }
}

#[distributed_lock_defaults(manager = self.locks, max_hold = 5m, on_contended = skip, wait = none)]
impl Shop {
    #[distributed_lock(key = "forever", wait = forever)]
    pub async fn forever(&self) -> Result<(), LockError> {
        Ok(())
    }

    #[distributed_lock(key = "once", once_per = 15m)]
    pub async fn once(&self) -> Result<(), LockError> {
        Ok(())
    }

    #[distributed_lock(key = "short", renew = false, ttl = 10)]
    pub async fn short(&self) -> Result<(), LockError> {
        Ok(())
    }

    #[distributed_lock(key = "new")]
    pub async fn without_self() -> Result<(), LockError> {
        Ok(())
    }

    #[distributed_lock(key = "{order}")]
    pub async fn own_mistake(&self, order_id: u64) -> Result<(), LockError> {
        Ok(())
    }
}

#[distributed_lock_defaults(ttl = 10)]
impl Shop {
    #[locked(key = "renamed")]
    pub async fn renamed(&self) -> Result<(), LockError> {
        Ok(())
    }
}

#[distributed_lock_defaults(ttl = 10, attribute = "locked")]
impl Shop {
    #[distributed_lock(key = "quoted")]
    pub async fn quoted(&self) -> Result<(), LockError> {
        Ok(())
    }
}

#[distributed_lock_defaults]
mod nothing {
    #[redlock_runtime::distributed_lock(key = "nothing")]
    pub async fn nothing() -> Result<(), redlock_runtime::LockError> {
        Ok(())
    }
}

#[distributed_lock_defaults(ttl = 10)]
#[distributed_lock(key = "function")]
pub async fn function() -> Result<(), LockError> {
    nothing::nothing().await
}

#[distributed_lock_defaults(ttl = 10)]
pub struct Order;

/// The attribute of the functions is not allowed there, either.
#[distributed_lock(key = "order")]
impl Order {}
