//! Error handlers of generated code.

use crate::LockError;

/// Handler for a function that returns `R`. The bound gives the argument of a closure its type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot handle the error of a function that returns `{R}`",
    label = "does not take a `LockError`, or does not return `{R}`",
    note = "write `|error| ..`, or the name of a function that takes a `LockError` and returns `{R}`"
)]
pub trait Handler<R>: FnOnce(LockError) -> R {}

#[diagnostic::do_not_recommend]
impl<R, H: FnOnce(LockError) -> R> Handler<R> for H {}

/// Calls the handler of `on_error`. The type of the handler is not a parameter that generated code would name by `_`. Otherwise the
/// compiler would report a mistake there and at the handler.
pub fn handle_lock_error<R>(handler: impl Handler<R>, error: LockError) -> R {
    handler(error)
}
