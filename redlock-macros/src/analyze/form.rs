//! Which of the forms that can be locked a function has, and what it gives when it is awaited.

use super::async_trait::{self, Desugared};
use super::bindings::{self, Binding};
use super::future::{self, Place, Returned};
use super::item::Function;
use super::output;
use proc_macro2::Group;
use syn::spanned::Spanned;
use syn::{ReturnType, Type};

/// Where the body is that must not run without the lock.
pub(crate) enum Form {
    /// `async fn`
    Async,
    /// The block that `#[async_trait]` has put the body into.
    Desugared(Place),
    /// The async block at the end of a function that returns a future.
    Block(Place),
    /// The future that a function returns, however it comes by it.
    Future(Returned),
}

impl Form {
    /// The braces around what the user wrote.
    pub(crate) const fn body<'a>(&'a self, function: &'a Function) -> &'a Group {
        match self {
            Self::Async | Self::Future(_) => &function.body,
            Self::Desugared(place) | Self::Block(place) => &place.group,
        }
    }
}

/// Which function this is, if one at all that can be locked, and the names that its body sees.
pub(crate) fn read(function: &Function) -> (Option<Form>, Vec<Binding>) {
    let signature = &function.signature;
    if let Some(Desugared { place, bindings }) = async_trait::read(signature, &function.body) {
        return (Some(Form::Desugared(place)), bindings);
    }
    let form = if signature.asyncness.is_some() {
        Some(Form::Async)
    } else {
        // An early `return` gives another future than the block at the end.
        match future::async_block(&function.body) {
            Some(block) if future::may_leave(block.before()) => Some(Form::Future(block.returned())),
            Some(block) => Some(Form::Block(block)),
            None => future::returned(&signature.output).map(Form::Future),
        }
    };
    (form, bindings::of_arguments(signature))
}

/// The type that the function gives when it is awaited; `_` where its signature does not say.
pub(crate) fn read_output(function: &Function, form: Option<&Form>) -> Type {
    let signature = &function.signature;
    let written = match form {
        Some(Form::Async) => match &signature.output {
            ReturnType::Type(_, ty) => Some(&**ty),
            ReturnType::Default => return output::unit(signature.ident.span()),
        },
        _ => future::awaited(&signature.output),
    };
    match written {
        Some(ty) => output::in_expression(ty),
        None => output::inferred(signature.output.span()),
    }
}
