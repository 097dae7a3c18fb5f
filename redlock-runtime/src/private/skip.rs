//! Return value of a skipped call, for `on_contended = skip`.

/// Return type with a value for "not done": `()`, `Option<T>`, and a `Result` of those.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no value for a skipped call",
    label = "`on_contended = skip` cannot return this type",
    note = "return `()`, `Option<_>` or a `Result` of those, or write `on_contended = |error| ..` to choose what to \
            return"
)]
pub trait Skip {
    /// Returns the value of a call that did nothing.
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
