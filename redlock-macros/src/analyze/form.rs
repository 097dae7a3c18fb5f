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
    /// The same behind a macro, in which another way out could be hidden.
    LastBlock(Place),
    /// The future that a function returns, however it comes by it.
    Future(Returned),
}

impl Form {
    /// The braces around what the user wrote.
    pub(crate) const fn body<'a>(&'a self, function: &'a Function) -> &'a Group {
        match self {
            Self::Async | Self::Future(_) => &function.body,
            Self::Desugared(place) | Self::Block(place) | Self::LastBlock(place) => &place.group,
        }
    }
}

/// Which function this is, if one at all that can be locked, and the names that its body sees. `needs_block` says that
/// the lock must be there before the future is made, so that an async block is to be found if that can be.
pub(crate) fn read(function: &Function, needs_block: bool) -> (Option<Form>, Vec<Binding>) {
    let signature = &function.signature;
    if let Some(Desugared { place, bindings }) = async_trait::read(signature, &function.body) {
        return (Some(Form::Desugared(place)), bindings);
    }
    let form = if signature.asyncness.is_some() {
        Some(Form::Async)
    } else {
        match future::async_block(&function.body) {
            Some(block) => Some(of_block(block, needs_block)),
            None => future::returned(&signature.output).map(Form::Future),
        }
    };
    (form, bindings::of_arguments(signature))
}

/// The form of a function that ends with an async block.
fn of_block(block: Place, needs_block: bool) -> Form {
    let returned = block.returned();
    // An early `return` gives another future than the block at the end. But only a box can hold both: no other future
    // has the type of a block that is returned as it is.
    if returned == Returned::Unnamed || !future::may_leave(block.before()) {
        Form::Block(block)
    } else if needs_block && !future::returns(block.before()) {
        Form::LastBlock(block)
    } else {
        Form::Future(returned)
    }
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
