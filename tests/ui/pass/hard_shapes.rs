#![deny(warnings, missing_docs)]
#![allow(dead_code, unreachable_pub, reason = "also a module of the attribute tests")]
#![warn(clippy::all, clippy::pedantic, clippy::nursery)]
#![warn(clippy::shadow_reuse, clippy::shadow_same, clippy::shadow_unrelated)]
//! Rare and valid signatures and bodies.

use redlock_runtime::{LockError, LockKeyPart, LockManager, distributed_lock};
use std::fmt::{self, Display};
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

/// Configuration of a deployment.
pub trait Config {
    /// Lease of its locks.
    const TTL: Duration;
    /// Longest wait of its calls.
    const WAIT: Duration;
    /// Its name.
    const NAME: &'static str;

    /// Its locks.
    fn locks() -> LockManager;
}

/// Generic over the configuration: an item inside of a method could not name `C`.
#[derive(Debug)]
pub struct Service<C>(pub PhantomData<C>);

impl<C: Config> Service<C> {
    /// Lease of its locks.
    pub const LEASE: Duration = C::TTL;

    /// # Errors
    /// The lock.
    #[distributed_lock(
        key = "{C::NAME}:{id}",
        ttl = C::TTL,
        wait = C::WAIT,
        max_hold = C::TTL,
        min_hold = C::WAIT,
        manager = C::locks(),
        guard = lock
    )]
    pub async fn of_the_parameter(id: u64) -> Result<Duration, LockError> {
        let _ = id;
        Ok(lock.ttl())
    }

    /// # Errors
    /// The lock.
    #[distributed_lock(key = "{Self::LEASE.as_secs()}:{id}", ttl = Self::LEASE, manager = C::locks(), guard = lock)]
    pub async fn of_the_type(id: u64) -> Result<Duration, LockError> {
        let _ = id;
        Ok(lock.ttl())
    }

    /// # Errors
    /// The lock.
    #[distributed_lock(key = "qualified:{id}", ttl = <C as Config>::TTL, manager = C::locks(), guard = lock)]
    pub async fn qualified(id: u64) -> Result<Duration, LockError> {
        let _ = id;
        Ok(lock.ttl())
    }
}

/// Lint levels of arguments.
///
/// # Errors
/// The lock.
#[allow(clippy::too_many_arguments)]
#[distributed_lock(key = "order:{id}")]
pub async fn lint_levels(
    id: u64,
    #[allow(unused_variables)] allowed: String,
    #[expect(unused_variables, reason = "kept for later")] expected: String,
    #[expect(unused_variables, unused_mut)] mut changed: u8,
    #[allow(unused_variables)] (left, right): (String, String),
    #[allow(non_snake_case)] Name: String,
    #[expect(unused_variables)] Pair { first, .. }: Pair,
    #[expect(clippy::ptr_arg)] text: &String,
    #[expect(clippy::ptr_arg, unused_variables)] nobodys: &String,
) -> Result<usize, LockError> {
    Ok(left.len() + Name.len() + text.len() + usize::from(id == 0))
}

/// Two values.
#[derive(Debug, Default)]
pub struct Pair {
    /// The first.
    pub first: Vec<u8>,
    /// The second.
    pub second: Vec<u8>,
}

/// Patterns that borrow mutably.
///
/// # Errors
/// The lock.
#[allow(clippy::toplevel_ref_arg)]
#[distributed_lock(key = "order:{id}")]
pub async fn borrowed_mutably(
    id: u64,
    ref mut values: Vec<u64>,
    Pair { ref mut first, .. }: Pair,
    (ref mut left, mut right): (u64, u64),
) -> Result<u64, LockError> {
    values.push(id);
    first.push(7);
    tokio::task::yield_now().await;
    *left += 1;
    right += 1;
    Ok(values.iter().sum::<u64>() + first.iter().copied().map(u64::from).sum::<u64>() + *left + right)
}

/// `impl Trait` inside of `dyn Trait`.
///
/// # Errors
/// The lock.
#[distributed_lock(key = "order:{id}")]
pub async fn nested_impl(id: u8) -> Result<Box<dyn Iterator<Item = impl Display> + Send>, LockError> {
    Ok(Box::new((0..id).map(u64::from)))
}

/// A part of a key that does not implement `Display`.
#[derive(Debug)]
pub struct OrderId(pub u64);

impl LockKeyPart for OrderId {
    fn write_part(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        write!(out, "o-{}", self.0)
    }
}

/// User-defined parts, also behind references.
///
/// # Errors
/// The lock.
#[distributed_lock(key("{id}:{other}:{named}", named = **id), wait = none)]
pub async fn own_parts(id: &&OrderId, other: OrderId) -> Result<u64, LockError> {
    Ok(id.0 + other.0)
}

/// Lines of an order.
#[derive(Debug)]
pub struct Order(pub Vec<u64>);

impl Order {
    /// By value.
    #[must_use]
    pub fn line(&self, index: usize, label: String) -> u64 {
        let bytes = label.into_bytes();
        self.0.get(index).copied().unwrap_or_default() + bytes.len() as u64
    }
}

/// A method gets the value of the named part.
///
/// # Errors
/// The lock.
#[distributed_lock(key("{order.line(index, label)}:{index}:{order.0[next]}", index = first + 1, label = name.clone(), next = first), wait = none)]
pub async fn inputs(order: Order, first: usize, name: String) -> Result<u64, LockError> {
    Ok(order.0.len() as u64 + first as u64 + name.len() as u64)
}

macro_rules! ensure {
    ($condition:expr) => {
        assert!($condition)
    };
}

/// A macro before the block may hide a `return`.
///
/// # Errors
/// The lock.
#[distributed_lock(key = "order:{id}", guard = lock)]
#[must_use]
pub fn after_a_macro(id: u64) -> Pin<Box<dyn Future<Output = Result<bool, LockError>> + Send>> {
    ensure!(id > 0);
    Box::pin(async move { Ok(lock.is_held() && id > 0) })
}

/// The same without a box.
///
/// # Errors
/// The lock.
#[distributed_lock(key = "order:{id}", guard = lock)]
pub fn unboxed_after_a_macro(id: u64) -> impl Future<Output = Result<bool, LockError>> {
    ensure!(id > 0);
    async move { Ok(lock.is_held() && id > 0) }
}

/// The function begins with an item.
///
/// # Errors
/// The lock.
#[distributed_lock(key = "order:{id}")]
pub fn items_first(id: u64) -> impl Future<Output = Result<u64, LockError>> + Send {
    const STEP: u64 = 1;
    use std::convert::identity;
    let next = identity(id + STEP);
    async move {
        const fn twice(value: u64) -> u64 {
            2 * value
        }
        Ok(twice(next))
    }
}

/// A macro before a box that is created elsewhere.
///
/// # Errors
/// The lock.
#[distributed_lock(key = "order:{id}")]
#[must_use]
pub fn items_first_boxed(id: u64) -> Pin<Box<dyn Future<Output = Result<u64, LockError>> + Send>> {
    const STEP: u64 = 1;
    if id == 0 {
        return Box::pin(items_first(id));
    }
    Box::pin(async move { Ok(id + STEP) })
}

/// The upper key uses one argument, the lower one the other, and the body neither.
///
/// # Errors
/// The lock.
#[distributed_lock(key = "upper:{upper}", guard = lock)]
#[distributed_lock(key("lower:{part}", part = lower))]
pub async fn stacked(upper: String, lower: String) -> Result<String, LockError> {
    Ok(lock.key().to_string())
}

/// Arguments after an unused one, and after a pattern.
///
/// # Errors
/// The lock.
#[distributed_lock(key = "{id}/{tenant}", ttl = lease, manager = locks)]
pub async fn in_any_order(
    _permit: String,
    (first, _): (u64, String),
    id: u64,
    mut last: u64,
    locks: &LockManager,
    (mut left, tenant): (u64, String),
    lease: Duration,
) -> Result<u64, LockError> {
    last += 1;
    left += 1;
    tokio::task::yield_now().await;
    Ok(first + last + left + tenant.len() as u64)
}

/// An extractor without fields: its pattern binds nothing.
#[derive(Debug)]
pub struct RequireAdmin;

/// # Errors
/// The lock.
#[distributed_lock(key = "purge:{id}")]
pub async fn purge(RequireAdmin: RequireAdmin, id: u64) -> Result<u64, LockError> {
    Ok(id)
}

/// Something that delegates to one of its arguments, whose type has no name.
#[derive(Debug)]
pub struct Cached<T>(pub T);

impl<T: Clone + Sync> Cached<T> {
    /// # Errors
    /// Never.
    #[expect(clippy::unused_async, reason = "called as the one below")]
    pub async fn get(&self, _other: &Self, id: u64) -> Result<u64, LockError> {
        Ok(id)
    }
}

/// Delegates.
#[derive(Debug)]
pub struct Front;

impl Front {
    /// # Errors
    /// The lock.
    #[distributed_lock(key = "front:{id}")]
    pub async fn get(&self, cache: &Cached<impl Clone + Sync>, id: u64) -> Result<u64, LockError> {
        cache.get(cache, id).await
    }
}
