#![deny(warnings, missing_docs)]
#![warn(clippy::all, clippy::pedantic, clippy::nursery)]
//! Each option, with a literal and with an expression.

use redlock_runtime::{LockError, LockManager, Wait, distributed_lock};
use std::time::Duration;

/// How long a lock lives.
pub const LEASE: Duration = Duration::from_secs(30);

/// # Errors
/// The lock.
#[distributed_lock(
    key = "order:{id}",
    ttl = 30,
    wait = 1m30s,
    renew = false,
    max_hold = 5s,
    min_hold = "1s",
    mode = exclusive,
    order_check = off,
    release = confirmed,
    guard = lock
)]
pub async fn literals(id: u64) -> Result<u64, LockError> {
    lock.ensure_held()?;
    Ok(id)
}

/// # Errors
/// The lock.
#[distributed_lock(
    key("order:{id}:{size:08}", size = texts.len()),
    ttl = lease,
    wait = limit,
    max_hold = lease * 2,
    min_hold = Duration::from_secs(seconds),
    manager = locks,
    on_contended = |error| if error.is_contended() { Ok(0) } else { Err(error) }
)]
pub async fn expressions(
    id: u64,
    texts: &[&str],
    lease: Duration,
    limit: Wait,
    seconds: u64,
    locks: &LockManager,
) -> Result<usize, LockError> {
    tokio::task::yield_now().await;
    Ok(texts.len())
}

/// # Errors
/// The lock.
#[distributed_lock(key = "report:{id}", once_per = 1d, window_start = 6h, on_failure = reopen, on_contended = skip)]
pub async fn window(id: u64) -> Result<Option<u64>, LockError> {
    Ok(Some(id))
}

/// # Errors
/// The lock.
#[distributed_lock(key = "report", once_per = LEASE * 2, window_start = LEASE, guard = window)]
pub async fn window_of_expressions() -> Result<(), LockError> {
    window.reopen_window();
    Ok(())
}

/// # Errors
/// The lock.
#[distributed_lock(key = "order:{id}", fencing, guard = lock, ttl = LEASE, wait = none, crate = ::redlock_runtime)]
pub async fn fenced(id: u64) -> Result<u64, LockError> {
    Ok(lock.fencing_token().as_u64())
}

/// # Errors
/// The lock.
#[distributed_lock(key = "order:{id}", fencing, guard = lock, release = confirmed)]
pub async fn fenced_and_confirmed(id: u64, _unused: String, mut values: Vec<u64>) -> Result<Vec<u64>, LockError> {
    values.push(id);
    tokio::task::yield_now().await;
    values.push(lock.fencing_token().as_u64());
    Ok(values)
}

/// # Errors
/// The lock.
#[distributed_lock(key = "order:{id}", linger = 2s, reentrant, wait = forever)]
pub async fn lingering(id: u64) -> Result<u64, LockError> {
    Ok(id)
}

/// # Errors
/// The lock.
#[distributed_lock(key = "order:{id}", linger = LEASE, on_lost = continue, guard = lock)]
pub async fn to_the_end(id: u64) -> Result<bool, LockError> {
    Ok(lock.is_held() && id > 0)
}

/// Returns `true` if it was done.
#[distributed_lock(key = "order:{id}", on_error = |_error| false)]
pub async fn handled(id: u64) -> bool {
    id > 0
}

/// The return type has no value for errors.
#[distributed_lock(key = "config:{name}", mode = shared, on_contended = skip, on_error = drop)]
pub async fn shared(name: &str) {
    tokio::task::yield_now().await;
    println!("{name}");
}

/// # Errors
/// The lock.
#[distributed_lock(key = "export:{tenant}", permits = 5)]
pub async fn permits(tenant: &str) -> Result<usize, LockError> {
    Ok(tenant.len())
}

/// # Errors
/// The lock.
#[distributed_lock(key = "export:{tenant}", permits = limit + 1, on_lost = continue)]
pub async fn some_permits(tenant: &str, limit: u32) -> Result<usize, LockError> {
    Ok(tenant.len())
}

/// # Errors
/// The lock.
#[distributed_lock(key("nightly", constant), ttl = LEASE)]
pub async fn constant() -> Result<(), LockError> {
    Ok(())
}

/// Takes numbers.
#[derive(Debug)]
pub struct Order(pub Vec<i64>);

impl Order {
    /// The line after some others.
    #[must_use]
    pub fn line(&self, at: usize, step: i64, is_next: bool) -> i64 {
        self.0.get(at).copied().unwrap_or_default() + step + i64::from(is_next)
    }
}

/// A method with arguments in the key.
///
/// # Errors
/// The lock.
#[distributed_lock(key = "{order.line(index, -3, true)}")]
pub async fn line(order: &Order, index: usize) -> Result<usize, LockError> {
    Ok(order.0.len() + index)
}

/// # Errors
/// The lock.
#[distributed_lock(path = "/{tenant}/{dir:/}/v{major}", mode = shared)]
pub async fn path(tenant: &str, dir: &str, major: u32) -> Result<usize, LockError> {
    Ok(tenant.len() + dir.len() + major as usize)
}
