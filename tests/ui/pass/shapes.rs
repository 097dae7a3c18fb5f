#![deny(warnings, missing_docs)]
#![allow(dead_code, unreachable_pub, reason = "also a module of the attribute tests")]
#![warn(clippy::all, clippy::pedantic, clippy::nursery)]
//! Everything that a signature of an async function may contain.

use redlock_runtime::{LockError, LockManager, Wait, distributed_lock};
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

/// A constant lease.
pub const LEASE: Duration = Duration::from_secs(5);

/// A part of a key.
#[derive(Debug)]
pub struct Order {
    /// Names of fields may be keywords.
    pub r#type: &'static str,
    /// Tuples have fields, too.
    pub customer: (String, u8),
}

/// A wrapper, as in web frameworks.
#[derive(Debug)]
pub struct Path<T>(pub T);

/// Patterns, `mut`, raw identifiers, arguments that are not used.
///
/// # Errors
/// The lock.
#[allow(clippy::too_many_arguments)]
#[distributed_lock(key = "{{{id}}}:{type}/{größe}→{tenant}:{left}-{right}", ttl = 1m30s, wait = "1m 30s")]
pub async fn patterns(
    Path(id): Path<u64>,
    r#type: String,
    größe: u8,
    mut counter: u64,
    Order { customer: (tenant, _), .. }: Order,
    (left, right): (u8, u8),
    [first, .., last]: [u64; 4],
    &reference: &u64,
    _permit: String,
    _: String,
) -> Result<u64, LockError> {
    counter += id + u64::from(größe) + u64::from(left) + u64::from(right) + first + last + reference;
    tokio::task::yield_now().await;
    Ok(counter + r#type.len() as u64 + tenant.len() as u64)
}

/// Fields of arguments.
///
/// # Errors
/// The lock.
#[distributed_lock(key = "{order.type}:{order.customer.0}:{order.customer.1}:{order.customer.0}", ttl = LEASE)]
pub async fn fields(order: Order) -> Result<Order, LockError> {
    Ok(order)
}

/// Generics, lifetimes, `impl Trait` on both sides.
///
/// # Errors
/// The lock.
#[distributed_lock(key = "{name}:{other}", ttl = Duration::from_secs(N), wait = forever)]
pub async fn generics<'a, T, const N: u64>(
    name: &'a str,
    other: impl Display,
    values: Vec<T>,
) -> Result<impl Iterator<Item = (&'a str, T)>, LockError>
where
    T: Clone + 'a,
{
    drop(other);
    Ok(values.into_iter().map(move |value| (name, value)))
}

/// Items, at the start of the body and later, and an early `return`.
///
/// # Errors
/// The lock.
#[distributed_lock(key = "nightly", wait = none)]
pub async fn items(_permit: u64) -> Result<u64, LockError> {
    const ONE: u64 = 1;
    const fn two() -> u64 {
        ONE + ONE
    }
    if two() == ONE {
        return Err(LockError::NotInstalled);
    }
    Ok(two())
}

/// A boxed trait object needs the type of the output.
///
/// # Errors
/// The lock.
#[distributed_lock(key = "nightly", wait = none)]
pub async fn coerced() -> Result<Box<dyn Display + Send>, LockError> {
    Ok(Box::new(7))
}

/// An output without a value, and a body that never ends.
#[distributed_lock(key = "forever", on_error = |error| unreachable_error(&error))]
pub async fn never() -> std::convert::Infallible {
    loop {
        tokio::task::yield_now().await;
    }
}

/// As above.
#[distributed_lock(key = "forever", on_error = |error| unreachable_error(&error))]
pub async fn never_type() -> ! {
    std::future::pending().await
}

fn unreachable_error<T>(error: &LockError) -> T {
    unreachable!("{error}")
}

/// Methods.
#[derive(Debug)]
pub struct Service {
    locks: Arc<LockManager>,
    tenant: String,
    lease: Duration,
    count: u64,
}

impl Service {
    /// A lease of its own.
    pub const LEASE: Duration = Duration::from_secs(5);

    /// # Errors
    /// The lock.
    #[distributed_lock(key = "{self.tenant}:{id}", manager = self.locks, ttl = Self::LEASE)]
    pub async fn by_reference(&self, id: u64) -> Result<&str, LockError> {
        let _ = id;
        Ok(&self.tenant)
    }

    /// # Errors
    /// The lock.
    #[distributed_lock(key = "{self.tenant}", manager = Arc::clone(&self.locks), ttl = self.lease)]
    pub async fn borrowed(&mut self) -> Result<&mut u64, LockError> {
        self.count += 1;
        Ok(&mut self.count)
    }

    /// # Errors
    /// The lock.
    #[distributed_lock(key = "{self.tenant}", manager = locks, wait = wait)]
    pub async fn by_value(mut self, locks: &LockManager, wait: Wait) -> Result<Self, LockError> {
        self.count += 1;
        Ok(self)
    }

    /// # Errors
    /// The lock.
    #[distributed_lock(key = "{self.tenant}", manager = self.locks, wait = self.lease)]
    pub async fn shared(self: Arc<Self>) -> Result<u64, LockError> {
        Ok(self.count)
    }

    /// The attribute may be below and above others, and on conditionally compiled code.
    #[cfg(not(test))]
    #[inline]
    #[distributed_lock(key = "nightly:{id}", manager = self.locks, on_error = |error| error.is_contended())]
    #[must_use]
    pub async fn conditions(&self, #[cfg(not(test))] id: u64, #[cfg(test)] name: String) -> bool {
        #![allow(clippy::no_effect_underscore_binding)]
        let _id = id;
        true
    }
}

/// A trait with and without a default body.
pub trait Capture {
    /// The lease.
    const LEASE: Duration;

    /// Without.
    fn tenant(&self) -> impl Future<Output = Result<String, LockError>> + Send;

    /// With.
    #[allow(async_fn_in_trait)]
    #[distributed_lock(key = "order:{id}", ttl = Self::LEASE)]
    async fn capture(&self, id: u64) -> Result<u64, LockError> {
        self.tenant().await?;
        Ok(id)
    }
}

impl Capture for Service {
    const LEASE: Duration = LEASE;

    #[distributed_lock(key = "{self.tenant}")]
    async fn tenant(&self) -> Result<String, LockError> {
        Ok(self.tenant.clone())
    }
}

/// Recursion needs a box, as without the attribute.
///
/// # Errors
/// The lock.
#[distributed_lock(key = "depth:{depth}")]
pub async fn recursive(depth: u64) -> Result<u64, LockError> {
    if depth == 0 {
        return Ok(0);
    }
    Box::pin(recursive(depth - 1)).await
}

/// All of these can be spawned.
pub fn spawn(service: Arc<Service>) {
    tokio::spawn(coerced());
    tokio::spawn(recursive(3));
    tokio::spawn(service.shared());
    tokio::spawn(patterns(
        Path(1),
        String::new(),
        2,
        3,
        order(),
        (1, 2),
        [1, 2, 3, 4],
        &5,
        String::new(),
        String::new(),
    ));
}

const fn order() -> Order {
    Order { r#type: "order", customer: (String::new(), 0) }
}
