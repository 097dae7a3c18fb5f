#![deny(warnings, missing_docs)]
//! The last thing that is done with an argument is a write to one of its fields, which its `Drop` reads.

use async_trait::async_trait;
use redlock_runtime::{LockError, distributed_lock};

/// Undoes something, unless it is defused.
#[derive(Debug)]
pub struct Guard {
    /// `true` if something is undone.
    pub armed: bool,
    /// The same for parts.
    pub parts: [bool; 2],
    /// The same inside.
    pub inner: Inner,
}

/// A part of a guard.
#[derive(Debug)]
pub struct Inner(pub bool, pub u8);

impl Drop for Guard {
    fn drop(&mut self) {
        println!("{} {:?} {:?}", self.armed, self.parts, self.inner);
    }
}

macro_rules! defuse {
    ($guard:ident) => {
        $guard.armed = false
    };
}

/// # Errors
/// The lock.
#[distributed_lock(key = "order:{id}")]
pub async fn field(id: u64, mut guard: Guard) -> Result<(), LockError> {
    tokio::task::yield_now().await;
    guard.armed = false;
    Ok(())
}

/// # Errors
/// The lock.
#[distributed_lock(key = "order:{id}")]
pub async fn inner(id: u64, mut first: Guard, mut second: Guard, mut third: Guard) -> Result<(), LockError> {
    first.inner.0 |= true;
    second.parts[1] = false;
    third.inner.1 = 7;
    Ok(())
}

/// # Errors
/// The lock.
#[distributed_lock(key = "order:{id}")]
pub async fn early(id: u64, mut guard: Guard) -> Result<u64, LockError> {
    if id == 0 {
        guard.armed = false;
        return Ok(0);
    }
    tokio::task::yield_now().await;
    guard.armed = false;
    Ok(id)
}

/// # Errors
/// The lock.
#[distributed_lock(key = "order:{id}")]
pub async fn together(id: u64, mut guard: Guard, mut others: (Guard, u8)) -> Result<(), LockError> {
    (guard.armed, others.0.armed) = (false, false);
    Ok(())
}

/// # Errors
/// The lock.
#[distributed_lock(key = "order:{id}")]
pub async fn macros(id: u64, mut guard: Guard) -> Result<(), LockError> {
    defuse!(guard);
    Ok(())
}

/// # Errors
/// The lock.
#[distributed_lock(key = "order:{id}", ttl = 10, guard = lock, on_contended = skip)]
pub async fn patterns(
    id: u64,
    (mut left, mut right): (Guard, Guard),
    (mut only, _): (Guard, Guard),
    mut last: Guard,
    #[cfg(not(miri))] mut conditional: Guard,
    #[cfg(miri)] mut conditional: Guard,
) -> Result<(), LockError> {
    left.armed = false;
    right.armed = false;
    only.armed = false;
    last.armed = false;
    conditional.armed = false;
    lock.ensure_held()
}

/// # Errors
/// The lock.
#[distributed_lock(key = "order:{guard.armed}")]
pub async fn in_the_key(mut guard: Guard) -> Result<(), LockError> {
    guard.armed = false;
    Ok(())
}

/// Generic.
#[derive(Debug)]
pub struct Job<T: Default> {
    /// `true` if it was done.
    pub done: bool,
    /// A value.
    pub value: T,
}

impl<T: Default> Drop for Job<T> {
    fn drop(&mut self) {
        println!("{}", self.done);
    }
}

impl<T: Default + Send> Job<T> {
    /// # Errors
    /// The lock.
    #[distributed_lock(key = "job")]
    pub async fn run(mut self) -> Result<(), LockError> {
        tokio::task::yield_now().await;
        self.done = true;
        Ok(())
    }

    /// # Errors
    /// The lock.
    #[distributed_lock(key = "job", on_lost = continue, on_contended = skip)]
    pub async fn with(mut self, mut other: Self, value: T) -> Result<(), LockError> {
        self.done = true;
        other.value = value;
        Ok(())
    }
}

/// A trait.
#[async_trait]
pub trait Capture {
    /// # Errors
    /// The lock.
    async fn capture(self, id: u64, guard: Guard) -> Result<(), LockError>;
}

#[async_trait]
impl<T: Default + Send> Capture for Job<T> {
    #[distributed_lock(key = "order:{id}")]
    async fn capture(mut self, id: u64, mut guard: Guard) -> Result<(), LockError> {
        tokio::task::yield_now().await;
        self.done = true;
        guard.armed = false;
        Ok(())
    }
}
