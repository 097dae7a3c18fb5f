//! Conversion of a lock error into the return value of an annotated function.

use crate::error::LockError;

/// Return type that can carry a [`LockError`].
///
/// Implemented for each `Result<T, E>` with `E: From<LockError>`. Implement it for your own return type if this type can express that
/// the lock was not acquired. It is not implemented for `()`, `bool` and `Option`, because a caller could not distinguish "not locked"
/// from "done".
///
/// # Examples
/// ```
/// use redlock_runtime::{FromLockError, LockError, LockManager, LockRequest, Wait};
///
/// #[derive(Debug, PartialEq)]
/// enum Outcome {
///     Done,
///     Busy,
///     Failed,
/// }
///
/// impl FromLockError for Outcome {
///     fn from_lock_error(error: LockError) -> Self {
///         if error.is_contended() { Self::Busy } else { Self::Failed }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
/// let manager = LockManager::in_memory();
/// let _guard = manager.acquire("report").await?;
/// let report = LockRequest::new("report").wait(Wait::None);
/// assert_eq!(manager.with_lock(report, async |_| Outcome::Done).await, Outcome::Busy);
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot carry a `LockError`",
    label = "this return type has no place for a lock error",
    note = "return `Result<_, E>` where `E: From<LockError>`, or write `on_error = |error| ..` to choose what to \
            return",
    note = "in `with_lock`, return a `Result`"
)]
pub trait FromLockError {
    /// Returns the value for a lock that was not acquired, or was lost.
    fn from_lock_error(error: LockError) -> Self;
}

// On a missing `From<LockError>`, the compiler reports the bound of the error type: its message names the remedy.
impl<T, E: CarriesLockError> FromLockError for Result<T, E> {
    fn from_lock_error(error: LockError) -> Self {
        Err(E::carrying(error))
    }
}

/// Error type with a place for a [`LockError`]: every `E: From<LockError>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot carry a `LockError`",
    label = "this error type has no place for a lock error",
    note = "write `on_error = |error| ..` to choose what to return, or, if `{Self}` is a type of this crate, write \
            `impl From<LockError> for {Self} {{ .. }}`"
)]
pub trait CarriesLockError {
    /// Returns the error for a lock that was not acquired, or was lost.
    fn carrying(error: LockError) -> Self;
}

#[diagnostic::do_not_recommend]
impl<E: From<LockError>> CarriesLockError for E {
    fn carrying(error: LockError) -> Self {
        error.into()
    }
}
