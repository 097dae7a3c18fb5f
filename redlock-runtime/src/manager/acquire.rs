//! A request together with the manager that acquires it.

use super::LockManager;
use crate::error::LockError;
use crate::guard::Fencing;
use crate::lock::Mode;
use crate::request::{Fenced, LockRequest, Unfenced, Wait};
use std::fmt;
use std::future::{Future, IntoFuture};
use std::panic::Location;
use std::pin::Pin;
use std::time::Duration;

/// Acquisition that begins when it is awaited, returned by [`LockManager::lock`]. It has the methods of [`LockRequest`].
#[must_use = "nothing is acquired until it is awaited"]
pub struct Acquire<'m, F = Unfenced> {
    manager: &'m LockManager,
    request: LockRequest<F>,
}

impl LockManager {
    /// Acquires a lock, with options as chained methods, and waits for it if another caller holds it.
    ///
    /// | method | use |
    /// |---|---|
    /// | `lock` | a guard, with options as chained methods; its future is boxed |
    /// | [`acquire`](Self::acquire) | a guard, for a prepared [`LockRequest`]; its future is not boxed |
    /// | [`with_lock`](Self::with_lock) | a closure that is stopped if the lock is lost |
    ///
    /// Code with a guard is not stopped by a loss: check [`is_held`](crate::LockGuard::is_held), or wait for
    /// [`lost`](crate::LockGuard::lost).
    ///
    /// # Errors
    /// The errors of [`acquire`](Self::acquire).
    ///
    /// # Panics
    /// On a tokio runtime without time enabled, when it is awaited.
    ///
    /// # Cancel safety
    /// Cancel safe, like [`acquire`](Self::acquire).
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager};
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let locks = LockManager::in_memory();
    /// let guard = locks.lock("order:7").ttl(Duration::from_secs(10)).wait(Duration::from_secs(2)).await?;
    /// guard.release().await
    /// # }
    /// ```
    #[track_caller]
    pub fn lock<F>(&self, request: impl Into<LockRequest<F>>) -> Acquire<'_, F> {
        let request = request.into().inner.called_at(Location::caller());
        Acquire { manager: self, request: LockRequest::from_inner(request) }
    }
}

impl<'m> Acquire<'m> {
    /// Requests a fencing token; see [`LockRequest::fencing`].
    pub fn fencing(self) -> Acquire<'m, Fenced> {
        Acquire { manager: self.manager, request: self.request.fencing() }
    }
}

/// Methods that change the request.
macro_rules! options {
    ($($option:ident($($value:ident: $type:ty)?);)+) => {
        impl<F> Acquire<'_, F> {$(
            #[doc = concat!("See [`LockRequest::", stringify!($option), "`].")]
            pub fn $option(self $(, $value: $type)?) -> Self {
                Self { request: self.request.$option($($value)?), ..self }
            }
        )+}
    };
}

options! {
    mode(mode: Mode);
    permits(permits: u32);
    label(label: &'static str);
    ttl(ttl: Duration);
    wait(wait: impl Into<Wait>);
    without_renewal();
    max_hold(max_hold: Duration);
    min_hold(min_hold: Duration);
    linger(linger: Duration);
    once_per(period: Duration);
    window_start(start: Duration);
    reentrant();
    without_order_check();
}

impl<'m, F: Fencing + 'm> IntoFuture for Acquire<'m, F> {
    type Output = Result<F::Guard, LockError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'm>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.manager.acquire_inner::<F>(self.request.inner))
    }
}

impl<F> fmt::Debug for Acquire<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire").field("request", &self.request).finish_non_exhaustive()
    }
}
