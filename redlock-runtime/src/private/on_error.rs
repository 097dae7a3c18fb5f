//! What generated code does with a lock error.

use crate::{FromLockError, LockError};

/// The default for `on_error`.
#[must_use]
pub fn from_lock_error<R: FromLockError>(error: LockError) -> R {
    R::from_lock_error(error)
}

/// `on_error = handler`. A function, so that the argument of a closure has a type.
pub fn handle_lock_error<R, H: FnOnce(LockError) -> R>(handler: H, error: LockError) -> R {
    handler(error)
}
