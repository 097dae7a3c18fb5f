#![allow(unreachable_pub, reason = "also a module of other crates")]
//! Prelude of a crate of services.

use redlock_runtime::LockError;

/// Shadows the standard library's type.
pub type Result<T, E = LockError> = std::result::Result<T, E>;
