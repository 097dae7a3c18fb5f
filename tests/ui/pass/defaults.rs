#![deny(warnings, missing_docs)]
#![allow(dead_code, unreachable_pub, reason = "also a module of the attribute tests")]
#![warn(clippy::all, clippy::pedantic, clippy::nursery)]
//! Options that functions take from their block.

use async_trait::async_trait;
use redlock_runtime::{LockError, LockManager, distributed_lock, distributed_lock_defaults};
use std::time::Duration;

/// A type with its own locks.
#[derive(Debug)]
pub struct Shop {
    /// The locks.
    pub locks: LockManager,
}

#[distributed_lock_defaults(manager = self.locks, ttl = Self::LEASE, wait = none, on_failure = reopen)]
impl Shop {
    const LEASE: Duration = Duration::from_secs(7);

    /// # Errors
    /// The lock.
    #[distributed_lock(key = "order:{id}", guard = lock)]
    pub async fn all(&self, id: u64) -> Result<Duration, LockError> {
        let _ = id;
        Ok(lock.ttl())
    }

    /// # Errors
    /// The lock.
    #[redlock_runtime::distributed_lock(key = "order:{id}", ttl = 9, wait = 5s, guard = lock)]
    pub async fn some(&self, id: u64) -> Result<Duration, LockError> {
        let _ = id;
        Ok(lock.ttl())
    }

    /// # Errors
    /// The lock.
    #[cfg_attr(not(miri), distributed_lock(key = "free", manager = locks, guard = lock,))]
    pub async fn without_self(locks: &LockManager) -> Result<Duration, LockError> {
        Ok(lock.ttl())
    }

    /// # Errors
    /// The lock.
    #[distributed_lock(key = "window", once_per = 15m, wait = 1s, guard = lock)]
    pub async fn window(&self) -> Result<Duration, LockError> {
        Ok(lock.ttl())
    }

    /// Without a lock.
    #[must_use]
    pub const fn plain(&self) -> &LockManager {
        &self.locks
    }
}

/// A trait.
#[async_trait]
pub trait Capture {
    /// # Errors
    /// The lock.
    async fn capture(&self, id: u64) -> Result<Duration, LockError>;
}

#[distributed_lock_defaults(ttl = 8)]
#[distributed_lock_defaults(manager = self.locks)]
#[async_trait]
impl Capture for Shop {
    #[distributed_lock(key = "order:{id}", guard = lock)]
    async fn capture(&self, id: u64) -> Result<Duration, LockError> {
        let _ = id;
        Ok(lock.ttl())
    }
}

/// Blocks in a block: the nearer default counts.
#[distributed_lock_defaults(ttl = 20, attribute = locked)]
pub mod jobs {
    use redlock_runtime::{LockError, distributed_lock as locked, distributed_lock_defaults};
    use std::time::Duration;

    /// # Errors
    /// The lock.
    #[locked(key = "outer", guard = lock)]
    pub async fn outer() -> Result<Duration, LockError> {
        Ok(lock.ttl())
    }

    /// A module inside.
    pub mod deeper {
        use super::{Duration, LockError, locked};

        /// # Errors
        /// The lock.
        #[locked(key = "deeper", guard = lock)]
        pub async fn inner() -> Result<Duration, LockError> {
            Ok(lock.ttl())
        }
    }

    /// A type inside.
    #[derive(Debug)]
    pub struct Job;

    #[distributed_lock_defaults(ttl = 30, attribute = locked)]
    impl Job {
        /// # Errors
        /// The lock.
        #[locked(key = "job", guard = lock)]
        pub async fn run() -> Result<Duration, LockError> {
            Ok(lock.ttl())
        }
    }
}

/// Jobs with windows, and one without, which does not return a `Result`.
#[derive(Debug)]
pub struct Jobs;

#[distributed_lock_defaults(on_failure = reopen)]
impl Jobs {
    /// Returns `true` if it has run.
    #[distributed_lock(key = "ping", on_error = |_| false)]
    pub async fn ping() -> bool {
        true
    }

    /// # Errors
    /// The lock.
    #[distributed_lock(key = "job", once_per = 15m)]
    pub async fn job() -> Result<(), LockError> {
        Ok(())
    }
}
