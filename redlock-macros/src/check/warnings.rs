//! What compiles and is probably not meant. One function per rule.

use super::recursion::{self, Found};
use crate::analyze::bindings::Binding;
use crate::analyze::form::Form;
use crate::analyze::identity::{self, Identity};
use crate::analyze::item::Function;
use crate::analyze::key::Key;
use crate::analyze::mentions::Mentions;
use crate::options::{Mode, Options};
use crate::template;
use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::spanned::Spanned;

/// A warning at the user's token.
pub(crate) struct Warning {
    pub(crate) span: Span,
    pub(crate) message: String,
    /// The type that must be `Self` for it to be true.
    pub(crate) only_if: Option<TokenStream>,
}

/// What the rules look at.
pub(super) struct Checked<'a> {
    pub(super) options: &'a Options,
    pub(super) function: &'a Function,
    pub(super) form: &'a Form,
    pub(super) bindings: &'a [Binding],
    pub(super) key: &'a Key,
    /// The names that all options but the key use.
    pub(super) in_options: &'a Mentions,
    pub(super) in_body: &'a Mentions,
}

/// Applies every rule.
pub(super) fn check(checked: &Checked<'_>) -> Vec<Warning> {
    let foreign = placeholder_of_another_language(checked);
    let rules = [
        // A key with such a placeholder is the same for all calls because of it.
        key_is_the_same_for_all_calls(checked).filter(|_| foreign.is_none()),
        transaction_outlives_the_lock(checked.function),
        call_waits_for_itself(checked),
        foreign,
    ];
    rules.into_iter().flatten().collect()
}

/// A function with an argument that says what is locked, and a key that does not. Calls that share their lock do not exclude
/// each other, whatever they are called with, and a limit for all calls is what permits are for.
fn key_is_the_same_for_all_calls(checked: &Checked<'_>) -> Option<Warning> {
    let Checked { options, function, bindings, key, in_options, .. } = checked;
    let template = options.key.as_ref()?;
    if template.constant.is_some() || key.depends_on_the_call() || options.is_shared() || options.permits.is_some() {
        return None;
    }
    let mut identities = identity::of_arguments(&function.signature, bindings, &key.template);
    identities.retain(|identity| !in_options.have_variable(&identity.argument));
    if identities.is_empty() {
        return None;
    }
    let first = &template.first;
    let (option, separator) = if first.is_path { ("path", '/') } else { ("key", ':') };
    let text = first.literal.value().replace('"', "\\\"");
    let meant = if template.others.is_empty() { format!("\"{text}\"") } else { "[..]".to_owned() };
    let message = format!(
        "no argument stands in this {option}, so all calls of `{}` exclude each other: write what tells them apart, as in \
         `{}`, or `{option}({meant}, constant)` if that is meant",
        function.signature.ident,
        with_identities((option, separator), &text, &identities),
    );
    Some(Warning { span: first.literal.span(), message, only_if: None })
}

/// `"order:${id}"` or `"order:#{id}"`, which puts the `$` into the key, or `"order:{{id}}"`, which puts no value there.
fn placeholder_of_another_language(checked: &Checked<'_>) -> Option<Warning> {
    let is_argument = |name: &str| checked.bindings.iter().any(|binding| binding.name == name);
    checked.options.key.as_ref()?.all().find_map(|key| {
        let text = key.literal.value();
        let template::Foreign { written, meant } = template::foreign(&text, is_argument)?;
        let sign = written.chars().next().filter(|sign| *sign != '{' && written.contains('{'));
        let part = sign.map(|sign| format!("the `{sign}` of ")).unwrap_or_default();
        let message = format!(
            "{part}`{written}` is text in a key, because a placeholder has one pair of braces and no sign \
                               before it: write `\"{meant}\"`"
        );
        Some(Warning { span: key.literal.span(), message, only_if: None })
    })
}

/// The key with what could stand in it.
fn with_identities((option, separator): (&str, char), template: &str, identities: &[Identity]) -> String {
    let holes = identities.iter().map(|identity| format!("{separator}{{{}}}", identity.name));
    let key = format!("\"{template}{}\"", holes.collect::<String>());
    let named =
        identities.iter().filter_map(|identity| Some(format!(", {} = {}", identity.name, identity.value.as_ref()?)));
    let named: String = named.collect();
    if named.is_empty() { format!("{option} = {key}") } else { format!("{option}({key}{named})") }
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
    Some(Warning { span: path.span(), message, only_if: None })
}

/// A call of the function by itself with the same key.
fn call_waits_for_itself(checked: &Checked<'_>) -> Option<Warning> {
    let Checked { options, function, form, bindings, key, in_body, .. } = checked;
    if options.enters_its_own() {
        return None;
    }
    let Found { span, only_if } = recursion::find(function, form, bindings, key, in_body)?;
    let name = &function.signature.ident;
    let why = match options.mode {
        // One permit more may be free for as long as nobody else is there.
        Mode::Exclusive if options.permits.is_some() => return None,
        Mode::Exclusive => "needs the lock that its caller holds, so it can only wait for it in vain",
        // Behind a writer that waits for the caller.
        Mode::Shared => "needs the lock of which its caller has a share, and fails as soon as a writer waits for that",
    };
    let message = format!(
        "this call of `{name}` {why}: write `reentrant`, or move what is repeated into a function without \
         `#[distributed_lock]`"
    );
    Some(Warning { span, message, only_if })
}
