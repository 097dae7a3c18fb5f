//! `on_contended = skip`: the value that says that nothing was done.

/// A return type with a value for "not done": `()`, `Option<T>`, and a `Result` of those.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no value for a call that was skipped",
    label = "`on_contended = skip` cannot return this type",
    note = "return `()`, `Option<_>` or a `Result` of those, or say what to return with `on_contended = |error| ..`"
)]
pub trait Skip {
    /// The value of a call that did nothing.
    fn skipped() -> Self;
}

#[diagnostic::do_not_recommend]
impl Skip for () {
    fn skipped() -> Self {}
}

#[diagnostic::do_not_recommend]
impl<T> Skip for Option<T> {
    fn skipped() -> Self {
        None
    }
}

#[diagnostic::do_not_recommend]
impl<T: Skip, E> Skip for Result<T, E> {
    fn skipped() -> Self {
        Ok(T::skipped())
    }
}

/// What `on_contended = skip` returns.
#[must_use]
pub fn skipped<R: Skip>() -> R {
    R::skipped()
}
