//! What must be true of an annotated function: one function per rule.

mod contradictions;
mod warnings;

pub(crate) use self::warnings::Warning;

use crate::analyze::async_trait::{self, Desugared};
use crate::analyze::bindings::{self, Binding};
use crate::analyze::future::{self, Place, Returned};
use crate::analyze::item::Function;
use crate::analyze::key::{self, Key};
use crate::analyze::mentions::Mentions;
use crate::analyze::output;
use crate::errors::Errors;
use crate::options::{KeyTemplate, Options};
use proc_macro2::{Group, Span, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::{Meta, ReturnType, Type};

/// A function that can be locked.
pub(crate) struct Lock {
    pub(crate) options: Options,
    pub(crate) function: Function,
    pub(crate) key: Key,
    pub(crate) form: Form,
    /// The names that the body sees.
    pub(crate) bindings: Vec<Binding>,
    /// What the function gives when it is awaited.
    pub(crate) output: Type,
    pub(crate) warnings: Vec<Warning>,
    /// The names that the attribute uses outside of the body.
    pub(crate) in_options: Mentions,
    pub(crate) in_body: Mentions,
}

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

/// Applies every rule.
pub(crate) fn check(options: Options, function: Function, errors: &mut Errors) -> Option<Lock> {
    let (form, bindings) = read_form(&function);
    let output = read_output(&function, form.as_ref());
    if form.is_none() && function.signature.constness.is_none() && function.signature.abi.is_none() {
        is_not_async(&function, errors);
    }
    is_called_by_rust_at_run_time(&function, errors);
    has_room_for_an_error(&options, &function, &output, errors);
    contradictions::check(&options, &function, form.as_ref(), &bindings, &output, errors);
    no_second_attribute_with_this_key(&options, &function, errors);
    let template = has_key(&options, &function, &bindings, errors)?;
    let key = key::read(template, &function.signature.ident, &bindings, errors)?;
    let form = form?;
    let mut in_options = options.mentions();
    let in_body = Mentions::of(form.body(&function).stream());
    let warnings = warnings::check(&options, &function, &form, &key, &in_options, &in_body);
    key.add_mentions(&mut in_options);
    Some(Lock { options, function, key, form, bindings, output, warnings, in_options, in_body })
}

/// Which function this is, if one at all that can be locked, and the names that its body sees.
fn read_form(function: &Function) -> (Option<Form>, Vec<Binding>) {
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

fn is_not_async(function: &Function, errors: &mut Errors) {
    let name = &function.signature.ident;
    let mend = if has_word(function.body.stream(), "block_on") {
        "an attribute above this one has made it block, as `#[tokio::main]` does: put `#[distributed_lock]` first"
            .into()
    } else {
        format!("write `async fn {name}`")
    };
    let message = format!("`{name}` is not async, so it cannot wait for a lock: {mend}");
    errors.at(function.signature.fn_token.span, message);
}

fn is_called_by_rust_at_run_time(function: &Function, errors: &mut Errors) {
    let Function { signature, .. } = function;
    let name = &signature.ident;
    if let Some(token) = &signature.constness {
        let message = format!("`{name}` is `const`, and a lock can only be waited for at run time: remove `const`");
        errors.on(token, message);
    }
    if let Some(abi) = &signature.abi {
        let message = format!(
            "`{name}` is called by another language, which cannot wait for a lock: lock an `async fn` that it starts"
        );
        errors.on(abi, message);
    }
}

fn has_word(tokens: TokenStream, word: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Group(group) => has_word(group.stream(), word),
        TokenTree::Ident(ident) => ident == word,
        _ => false,
    })
}

fn read_output(function: &Function, form: Option<&Form>) -> Type {
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

/// Only a type that says so can be known here; the compiler judges all others by `FromLockError`.
fn has_room_for_an_error(options: &Options, function: &Function, output: &Type, errors: &mut Errors) {
    if options.name("on_error").is_some() || !output::is_unit(output) {
        return;
    }
    let name = &function.signature.ident;
    let reason = match &options.on_contended {
        None => "the lock was not obtained",
        Some(_) => "no node answered or that the lock was lost",
    };
    errors.on(
        output,
        format!(
            "`{name}` returns nothing, so it cannot say that {reason}: return `Result<(), LockError>`, or write \
             `on_error = |error| ..`"
        ),
    );
}

/// An attribute below this one takes its lock first, and this one would wait for it.
fn no_second_attribute_with_this_key(options: &Options, function: &Function, errors: &mut Errors) {
    let Some(key) = &options.key else { return };
    for attribute in &function.attributes {
        let is_ours = attribute.path().segments.last().is_some_and(|segment| segment.ident == "distributed_lock");
        let Meta::List(list) = &attribute.meta else { continue };
        let other =
            is_ours.then(|| Options::read(list.tokens.clone(), &mut Errors::default())).and_then(|options| options.key);
        if let Some(other) = other.filter(|other| other.literal.value() == key.literal.value()) {
            let message = "two attributes take the same key, so every call would wait for itself: keep one";
            errors.at(key.literal.span(), message);
            errors.at(other.literal.span(), message);
        }
    }
}

fn has_key<'a>(
    options: &'a Options,
    function: &Function,
    bindings: &[Binding],
    errors: &mut Errors,
) -> Option<&'a KeyTemplate> {
    if let Some(value) = &options.key {
        return Some(value);
    }
    if !options.has_key {
        let name = &function.signature.ident;
        let example = match bindings.iter().find(|binding| binding.name != "self" && !binding.name.starts_with('_')) {
            Some(binding) => format!("{name}:{{{}}}", binding.name),
            None => name.to_string(),
        };
        errors.at(Span::call_site(), format!("`key` is missing: write `key = \"{example}\"`"));
    }
    None
}
