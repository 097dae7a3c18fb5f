#![deny(warnings)]
#![warn(clippy::all, clippy::pedantic, clippy::nursery)]
//! The services in a crate that has its own `Result`, `Ok`, `Some` and `format_args`: as functions, what the services
//! call works, and what generated code would match does not.

/// Not the prelude's.
#[macro_export]
macro_rules! format_args {
    ($($anything:tt)*) => {
        compile_error!("the user's `format_args`")
    };
}

#[path = "../../tests/services/jobs.rs"]
pub mod jobs;

/// Everything that has a name in the standard library's prelude.
pub mod prelude {
    #![allow(non_snake_case, reason = "named as in the standard library's")]
    #![allow(clippy::missing_errors_doc, clippy::unnecessary_wraps, reason = "typed as in the standard library's")]
    use redlock_runtime::LockError;

    /// Not the prelude's.
    pub type Result<T, E = LockError> = std::result::Result<T, E>;

    /// Not the prelude's.
    pub const fn Ok<T, E>(value: T) -> Result<T, E> {
        Result::Ok(value)
    }

    /// Not the prelude's.
    pub const fn Err<T, E>(error: E) -> Result<T, E> {
        Result::Err(error)
    }

    /// Not the prelude's.
    pub const fn Some<T>(value: T) -> Option<T> {
        Option::Some(value)
    }
}

#[path = "../../tests/services/rest.rs"]
pub mod rest;
#[path = "../../tests/services/rpc.rs"]
pub mod rpc;
#[path = "../../tests/services/store.rs"]
pub mod store;
