//! Determines the form of an async function, and its output when it is awaited.

use super::async_trait::{self, Desugared};
use super::bindings::{self, Binding};
use super::future::{self, Place, Returned};
use super::item::Function;
use super::output;
use proc_macro2::Group;
use syn::spanned::Spanned;
use syn::{ReturnType, Type};

/// Location of the code that must run under the lock.
pub(crate) enum Form {
    /// `async fn`
    Async,
    /// Block of `#[async_trait]` that contains the body.
    Desugared(Place),
    /// Async block at the end of a function that returns a future.
    Block(Place),
    /// Async block at the end, after a macro that may hide another exit.
    LastBlock(Place),
    /// Future that a function returns, however the function creates it.
    Future(Returned),
}

impl Form {
    /// Returns the braces around the user's code.
    pub(crate) const fn body<'a>(&'a self, function: &'a Function) -> &'a Group {
        match self {
            Self::Async | Self::Future(_) => &function.body,
            Self::Desugared(place) | Self::Block(place) | Self::LastBlock(place) => &place.group,
        }
    }
}

/// Returns the form of the function, if it can be locked, and the variables that its body sees. With `needs_block`, the
/// lock must exist before the future is created, so an async block is preferred.
pub(crate) fn read(function: &Function, needs_block: bool) -> (Option<Form>, Vec<Binding>) {
    let signature = &function.signature;
    if let Some(Desugared { place, bindings }) = async_trait::read(signature, &function.body) {
        return (Some(Form::Desugared(place)), bindings);
    }
    let form = if signature.asyncness.is_some() {
        Some(Form::Async)
    } else {
        match future::async_block(&function.body) {
            Some(block) => Some(from_block(block, needs_block)),
            None => future::returned(&signature.output).map(Form::Future),
        }
    };
    (form, bindings::from_arguments(signature))
}

/// Returns the form of a function that ends with an async block.
fn from_block(block: Place, needs_block: bool) -> Form {
    let returned = block.returned();
    // An early `return` returns another future than the block at the end. This is only possible for a box: no other
    // future has the type of a block that is returned without a box.
    if returned == Returned::Unnamed || !future::may_leave(block.before()) {
        Form::Block(block)
    } else if needs_block && !future::returns(block.before()) {
        Form::LastBlock(block)
    } else {
        Form::Future(returned)
    }
}

/// Returns the output type of the function when it is awaited, or `_` if the signature does not contain it.
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
