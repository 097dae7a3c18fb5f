#![allow(unreachable_pub, reason = "also a module of other crates")]
//! What a crate of services has as its own prelude.

use redlock_runtime::LockError;

/// Shadows the standard library's.
pub type Result<T, E = LockError> = std::result::Result<T, E>;
