#![deny(warnings, missing_docs)]
#![warn(clippy::all, clippy::pedantic, clippy::nursery)]
//! A crate may have its own `Result`, `Ok`, `Some`, `core` and `format_args`.

pub use redlock_runtime as locks;

/// Not the prelude's.
pub type Result = std::result::Result<u64, ::redlock_runtime::LockError>;
/// Not the prelude's.
#[derive(Debug)]
pub struct Option;
/// Not the prelude's.
#[derive(Debug)]
pub struct Box;
/// Not the prelude's.
#[derive(Debug)]
pub enum Mine {
    /// Not the prelude's.
    Ok,
    /// Not the prelude's.
    Err,
    /// Not the prelude's.
    Some,
    /// Not the prelude's.
    None,
}
pub use Mine::*;

/// Not the prelude's.
#[macro_export]
macro_rules! format_args {
    ($($anything:tt)*) => {
        compile_error!("the user's `format_args`")
    };
}

/// Not the standard library's.
pub mod core {}
/// Not the standard library's.
pub mod std_shadow {}

/// The user's `__guard`, `__acquire` and `__error` are independent of the generated ones.
///
/// # Errors
/// The lock.
#[crate::locks::distributed_lock(key = "order:{__guard}:{__acquire}", ttl = 5, wait = 5, crate = crate::locks)]
pub async fn shadowed(__guard: u64, __acquire: u64, __error: u64, __output: u64) -> Result {
    Result::Ok(__guard + __acquire + __error + __output)
}
