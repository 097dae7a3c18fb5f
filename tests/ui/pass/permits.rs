#![deny(warnings)]
//! Numbers of permits, in every form.

use redlock_runtime::{LockError, distributed_lock, distributed_lock_defaults};

const LIMIT: u32 = 3;

#[distributed_lock(key = "export:{tenant}", permits = 5)]
pub async fn export(tenant: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "import", permits = LIMIT + extra, min_hold = 1s)]
pub async fn import(extra: u32, _document: u64) -> Result<(), LockError> {
    Ok(())
}

pub struct Pools {
    each: u32,
}

#[distributed_lock_defaults(permits = 1)]
impl Pools {
    #[distributed_lock(key = "pool:{name}")]
    pub async fn one(&self, name: &str) -> Result<(), LockError> {
        Ok(())
    }

    #[distributed_lock(key = "pool:{name}", permits = self.each, reentrant, wait = none, on_contended = skip)]
    pub async fn some(&self, name: &str) -> Result<Option<u32>, LockError> {
        Ok(Some(self.each))
    }
}
