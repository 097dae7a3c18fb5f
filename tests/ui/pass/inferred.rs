#![deny(warnings, missing_docs)]
#![allow(dead_code, unreachable_pub, reason = "also a module of the attribute tests")]
#![warn(clippy::all, clippy::pedantic, clippy::nursery)]
//! The output of the body is known from the signature, so more is coerced than in the plain function, which does not
//! compile.

use redlock_runtime::{LockError, distributed_lock};
use std::pin::Pin;

/// The usual alias.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// # Errors
/// The lock.
#[distributed_lock(key = "order:{id}")]
#[must_use]
pub fn alias(id: &u64) -> BoxFuture<'_, Result<Box<dyn Send>, LockError>> {
    Box::pin(async { Ok(Box::new(*id)) })
}
