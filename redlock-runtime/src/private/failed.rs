//! `on_failure = reopen`: whether a body has failed.

use crate::{LockError, LockGuard};

/// A return type that says whether the function has failed: a `Result`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot report whether the function has failed",
    label = "`on_failure = reopen` needs a `Result`",
    note = "return a `Result`, or write `guard = lock` and call `lock.reopen_window()` in the body"
)]
pub trait Failed {
    /// Whether it has.
    fn has_failed(&self) -> bool;
}

#[diagnostic::do_not_recommend]
impl<T, E> Failed for Result<T, E> {
    fn has_failed(&self) -> bool {
        self.is_err()
    }
}

/// Gives the window back when the body has ended, and has failed.
pub fn reopen_if_failed<R: Failed>(guard: &LockGuard, outcome: &Result<R, LockError>) {
    if outcome.as_ref().is_ok_and(Failed::has_failed) {
        guard.reopen_window();
    }
}
