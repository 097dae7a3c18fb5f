#![deny(warnings, missing_docs)]
#![allow(dead_code, unreachable_pub, reason = "also a module of the attribute tests")]
#![warn(clippy::all, clippy::pedantic, clippy::nursery)]
//! `#[async_trait]` has rewritten the function before the attribute sees it.

use async_trait::async_trait;
use redlock_runtime::{LockError, LockManager, distributed_lock};
use std::sync::Arc;

/// A trait.
#[async_trait]
pub trait Capture: Send + Sync {
    /// Without a body.
    async fn capture(&self, order: (u64, String), name: &str) -> Result<u64, LockError>;

    /// With one.
    #[distributed_lock(key = "order:{id}", ttl = 5)]
    async fn with_body(&self, id: u64) -> Result<Box<dyn Send>, LockError> {
        Ok(Box::new(id))
    }

    /// Nothing to return.
    #[distributed_lock(key = "nightly", on_error = drop)]
    async fn nothing(&mut self) {}
}

/// An implementation.
#[derive(Debug)]
pub struct Service {
    locks: Arc<LockManager>,
    tenant: String,
    count: u64,
}

impl Service {
    fn failed(&self, error: &LockError) -> u64 {
        u64::from(error.is_contended()) + self.count
    }
}

#[async_trait]
impl Capture for Service {
    #[distributed_lock(key = "{self.tenant}:{id}:{label}:{name}", manager = self.locks)]
    async fn capture(&self, (id, mut label): (u64, String), name: &str) -> Result<u64, LockError> {
        label.push_str(name);
        Ok(id + self.count + label.len() as u64)
    }

    #[distributed_lock(key = "{self.tenant}", manager = self.locks, on_error = drop)]
    async fn nothing(&mut self) {
        self.count += 1;
    }
}

/// Handlers may use `self`, as long as the body leaves it behind.
#[async_trait]
pub trait Handled {
    /// One that returns a number.
    async fn handled(&self, _permit: String) -> u64;
}

#[async_trait]
impl Handled for Service {
    #[distributed_lock(key = "{self.tenant}", manager = self.locks, on_error = |error| self.failed(&error))]
    async fn handled(&self, _permit: String) -> u64 {
        self.count
    }
}
