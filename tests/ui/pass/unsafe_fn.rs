#![deny(warnings, missing_docs)]
//! An `unsafe fn` stays one.

use redlock_runtime::{LockError, distributed_lock};

/// # Safety
/// `number` is valid.
///
/// # Errors
/// The lock.
#[distributed_lock(key = "nightly")]
pub async unsafe fn careful(number: &std::cell::UnsafeCell<u64>) -> Result<u64, LockError> {
    // SAFETY: the caller's promise.
    Ok(unsafe { *number.get() })
}
