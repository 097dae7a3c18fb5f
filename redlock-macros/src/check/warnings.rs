//! What compiles and is probably not meant. One function per rule.

use crate::analyze::bindings::{self, Binding};
use crate::analyze::form::Form;
use crate::analyze::item::Function;
use crate::analyze::key::{Key, Root};
use crate::analyze::mentions::Mentions;
use crate::options::Options;
use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use quote::ToTokens;
use std::collections::HashSet;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{FnArg, Pat, PatType, Type};

/// A warning at the user's token.
pub(crate) struct Warning {
    pub(crate) span: Span,
    pub(crate) message: String,
}

/// Applies every rule.
pub(super) fn check(
    options: &Options,
    function: &Function,
    form: &Form,
    key: &Key,
    in_options: &Mentions,
    in_body: &Mentions,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    warnings.extend(key_is_the_same_for_all_calls(options, function, key, in_options));
    warnings.extend(transaction_outlives_the_lock(function));
    let may_call_itself = in_body.have_called(&function.signature.ident.unraw().to_string());
    if matches!(form, Form::Async) && may_call_itself {
        warnings.extend(call_waits_for_itself(function, key));
    }
    warnings
}

/// A function whose arguments could tell its calls apart, and whose key does not.
fn key_is_the_same_for_all_calls(
    options: &Options,
    function: &Function,
    key: &Key,
    in_options: &Mentions,
) -> Option<Warning> {
    let literal = &options.key.as_ref()?.literal;
    if key.depends_on_the_call() {
        return None;
    }
    let arguments: Vec<Argument> = function.signature.inputs.iter().flat_map(arguments).collect();
    let mut could_be_meant = arguments.iter().filter(|argument| !in_options.have_variable(&argument.name));
    let example = match could_be_meant.clone().find(|argument| argument.is_identifier) {
        Some(identifier) => identifier.name.clone(),
        None => could_be_meant.next()?.example(),
    };
    let message = format!(
        "no argument stands in this key, so all calls of `{}` exclude each other: write what tells them apart, as in \
         `key = \"{}:{{{example}}}\"`, or `#[expect(deprecated)]` before the function if that is meant",
        function.signature.ident,
        literal.value().replace('"', "\\\"")
    );
    Some(Warning { span: literal.span(), message })
}

struct Argument {
    name: String,
    /// Its name or its type says that it tells one thing from another, as `order_id` does.
    is_identifier: bool,
    /// It can stand in a key as it is.
    is_text: bool,
}

impl Argument {
    fn example(&self) -> String {
        if self.is_text { self.name.clone() } else { format!("{}.id", self.name) }
    }
}

/// The names that one argument could give to the key. A reference, a shared pointer or an extractor is only a way to
/// something else, and says nothing about what is locked: such arguments are left out unless they look like
/// identifiers.
fn arguments(argument: &FnArg) -> Vec<Argument> {
    let FnArg::Typed(argument) = argument else { return Vec::new() };
    let is_simple = matches!(*argument.pat, Pat::Ident(_));
    let is_typed = is_simple && is_typed_identifier(&argument.ty);
    let is_value = is_simple && is_value(&argument.ty);
    let bindings = bindings::of_argument(argument).into_iter().filter(|binding| !binding.name.starts_with('_'));
    let arguments = bindings.map(|Binding { name, integer, .. }| Argument {
        is_identifier: is_typed || is_called_identifier(&name),
        is_text: integer.is_some() || is_text(&argument.ty),
        name,
    });
    arguments.filter(|argument| argument.is_identifier || is_value).collect()
}

/// Whether the type is a thing itself and not a way to another, as far as its looks tell.
fn is_value(ty: &Type) -> bool {
    match ty {
        Type::Group(ty) => is_value(&ty.elem),
        Type::Paren(ty) => is_value(&ty.elem),
        Type::Path(ty) => ty.path.segments.last().is_some_and(|last| last.ident != "Arc" && last.ident != "Rc"),
        Type::Reference(ty) => matches!(&*ty.elem, Type::Path(ty) if ty.path.is_ident("str")),
        _ => false,
    }
}

/// Whether a value of the type can stand in a key as it is.
fn is_text(ty: &Type) -> bool {
    match ty {
        Type::Reference(ty) => is_text(&ty.elem),
        Type::Path(ty) => ["String", "str", "char", "bool"].iter().any(|name| ty.path.is_ident(name)),
        _ => false,
    }
}

/// Whether the name is one that identifiers have.
fn is_called_identifier(name: &str) -> bool {
    matches!(name.rsplit('_').next(), Some("id" | "uuid" | "key" | "slug" | "number" | "name"))
}

/// Whether the type is named as those of identifiers are.
fn is_typed_identifier(ty: &Type) -> bool {
    match ty {
        Type::Reference(ty) => is_typed_identifier(&ty.elem),
        Type::Path(ty) => ty.path.segments.last().is_some_and(|segment| {
            let name = segment.ident.to_string();
            ["Id", "ID", "Uuid"].iter().any(|end| name.ends_with(end))
        }),
        _ => false,
    }
}

/// An attribute below this one expands later, around the code of this one. If it opens a transaction, the transaction
/// ends after the lock was released.
fn transaction_outlives_the_lock(function: &Function) -> Option<Warning> {
    let is_transaction = |name: &str| matches!(name, "transactional" | "transaction" | "in_transaction" | "tx");
    let path = function.attributes.iter().find_map(|attribute| {
        let name = &attribute.path().segments.last()?.ident;
        is_transaction(&name.to_string()).then(|| attribute.path())
    })?;
    let message = format!(
        "the lock is given back before `#[{}]` commits, so that the next caller does not see what was written: put \
         `#[distributed_lock]` below it",
        path.to_token_stream().to_string().replace(' ', "")
    );
    Some(Warning { span: path.span(), message })
}

/// A call of the function itself with everything that stands in the key unchanged.
fn call_waits_for_itself(function: &Function, key: &Key) -> Option<Warning> {
    if !key.named.is_empty() {
        return None;
    }
    let arguments = function.signature.inputs.iter().filter_map(|argument| match argument {
        FnArg::Typed(argument) => Some(argument),
        FnArg::Receiver(_) => None,
    });
    let arguments: Vec<&PatType> = arguments.collect();
    let in_key: HashSet<String> = key
        .parts
        .iter()
        .filter_map(|part| match &part.root {
            Root::Argument(argument) => Some(argument.to_string()),
            _ => None,
        })
        .collect();
    let call = Call { name: function.signature.ident.to_string(), is_method: function.signature.receiver().is_some() };
    let span = call.find(function.body.stream(), &|given| {
        given.len() == arguments.len()
            && arguments.iter().zip(given).all(|(argument, given)| {
                let is_in_key =
                    bindings::of_argument(argument).iter().any(|binding| in_key.contains(&binding.ident.to_string()));
                !is_in_key || squeezed(&argument.pat) == squeezed(given)
            })
    })?;
    let message = format!(
        "this call of `{}` needs the lock that its caller holds, so it can only wait for it in vain: move what is \
         repeated into a function without `#[distributed_lock]`",
        call.name
    );
    Some(Warning { span, message })
}

/// The tokens as text, in which a `mut` and spaces make no difference.
fn squeezed(tokens: impl ToTokens) -> String {
    tokens.to_token_stream().to_string().replace("mut ", "").replace(' ', "")
}

/// What to look for: a call of the annotated function by itself.
struct Call {
    name: String,
    is_method: bool,
}

impl Call {
    /// The place of the name in the first call whose arguments `same` accepts.
    fn find(&self, tokens: TokenStream, same: &impl Fn(&[TokenStream]) -> bool) -> Option<Span> {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            let TokenTree::Group(group) = token else { continue };
            if let Some(span) = self.find(group.stream(), same) {
                return Some(span);
            }
            let Some((TokenTree::Ident(name), before)) = tokens.get(..at).and_then(<[_]>::split_last) else { continue };
            if group.delimiter() == Delimiter::Parenthesis
                && *name == self.name
                && self.is_called(before)
                && same(&split_at_commas(group.stream()))
            {
                return Some(name.span());
            }
        }
        None
    }

    /// Whether what stands before the name makes it this function.
    fn is_called(&self, before: &[TokenTree]) -> bool {
        let text = |token: Option<&TokenTree>| token.map(ToString::to_string).unwrap_or_default();
        let [.., first, last] = before else {
            return !self.is_method && !matches!(text(before.last()).as_str(), "." | ":");
        };
        match (text(Some(first)).as_str(), text(Some(last)).as_str()) {
            ("self", ".") => self.is_method,
            (_, "." | ":" | "fn") => false,
            _ => !self.is_method,
        }
    }
}

fn split_at_commas(tokens: TokenStream) -> Vec<TokenStream> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',');
    let parts = tokens.split(is_comma).map(|part| part.iter().cloned().collect::<TokenStream>());
    parts.filter(|part| !part.is_empty()).collect()
}
