// edition: 2021
#![deny(warnings, missing_docs)]
#![warn(clippy::all, clippy::pedantic, clippy::nursery)]
//! Functions that return a future are locked from its first poll on.

use redlock_runtime::{LockError, distributed_lock};
use std::future::Future;
use std::pin::Pin;

/// The usual alias.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// # Errors
/// The lock.
#[distributed_lock(key = "order:{id}")]
pub fn unnamed(id: u64) -> impl Future<Output = Result<u64, LockError>> + Send {
    async move { Ok(id) }
}

/// # Errors
/// The lock.
#[distributed_lock(key = "order:{name}")]
pub fn with_preparation(name: &str) -> impl Future<Output = Result<String, LockError>> + Send + 'static {
    let name = name.to_owned();
    async move { Ok(name) }
}

/// # Errors
/// The lock.
#[distributed_lock(key = "order:{id}")]
#[must_use]
pub fn boxed(id: u64) -> Pin<Box<dyn Future<Output = Result<u64, LockError>> + Send>> {
    Box::pin(async move { Ok(id) })
}

/// # Errors
/// The lock.
#[distributed_lock(key = "order:{id}")]
pub fn forwarded(id: u64) -> impl Future<Output = Result<u64, LockError>> {
    unnamed(id + 1)
}

/// # Errors
/// The lock.
#[distributed_lock(key = "chosen:{id}")]
#[must_use]
pub fn chosen(id: u64) -> BoxFuture<'static, Result<u64, LockError>> {
    if id == 0 { boxed(id) } else { Box::pin(unnamed(id)) }
}

/// The output is hidden behind an alias, so the code must not name it.
#[distributed_lock(key = "order:{id}", on_error = |error| error.is_contended())]
pub fn handled(id: u64) -> impl Future<Output = bool> {
    async move { id == 0 }
}
