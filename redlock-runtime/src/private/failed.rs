//! Failure of a body, for `on_failure = reopen`.

use crate::{LockError, LockGuard};

/// Return type that shows if the function has failed: a `Result`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot report whether the function has failed",
    label = "`on_failure = reopen` needs a `Result`",
    note = "return a `Result`, or write `guard = lock` and call `lock.reopen_window()` in the body"
)]
pub trait Failed {
    /// Returns `true` if the function has failed.
    fn has_failed(&self) -> bool;
}

#[diagnostic::do_not_recommend]
impl<T, E> Failed for Result<T, E> {
    fn has_failed(&self) -> bool {
        self.is_err()
    }
}

/// Reopens the window if the body has ended with a failure.
pub fn reopen_if_failed<R: Failed>(guard: &LockGuard, outcome: &Result<R, LockError>) {
    if outcome.as_ref().is_ok_and(Failed::has_failed) {
        guard.reopen_window();
    }
}
