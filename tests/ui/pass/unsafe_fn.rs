#![deny(warnings, missing_docs)]
//! An `unsafe fn` stays one.

use redlock_runtime::{LockError, distributed_lock};

/// # Safety
/// No other code uses `cell`.
///
/// # Errors
/// The lock.
#[distributed_lock(key = "nightly")]
pub async unsafe fn careful(cell: &std::cell::UnsafeCell<u64>) -> Result<u64, LockError> {
    // SAFETY: the caller's promise.
    Ok(unsafe { *cell.get() })
}
