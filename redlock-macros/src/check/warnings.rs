//! Warnings about code that compiles and is probably a mistake. One function per rule.

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

/// Warning at a token of the user.
pub(crate) struct Warning {
    pub(crate) span: Span,
    pub(crate) message: String,
    /// Type that must be `Self`, if the warning depends on it.
    pub(crate) only_if: Option<TokenStream>,
}

/// Input of the rules.
pub(super) struct Checked<'a> {
    pub(super) options: &'a Options,
    pub(super) function: &'a Function,
    pub(super) form: &'a Form,
    pub(super) bindings: &'a [Binding],
    pub(super) key: &'a Key,
    /// Names that all options except the key use.
    pub(super) in_options: &'a Mentions,
    pub(super) in_body: &'a Mentions,
}

/// Applies every rule.
pub(super) fn check(checked: &Checked<'_>) -> Vec<Warning> {
    let foreign = placeholder_of_another_language(checked);
    let rules = [
        // Such a placeholder is also the reason that the key is the same for all calls.
        key_without_argument(checked).filter(|_| foreign.is_none()),
        transaction_around_lock(checked.function),
        recursive_call(checked),
        foreign,
    ];
    rules.into_iter().flatten().collect()
}

/// Warns of a key without arguments on a function with an argument that looks like the id of what is locked. Shared
/// locks do not exclude each other, and permits are a limit for all calls, so neither is checked.
fn key_without_argument(checked: &Checked<'_>) -> Option<Warning> {
    let Checked { options, function, bindings, key, in_options, .. } = checked;
    let template = options.key.as_ref()?;
    if template.constant.is_some() || key.depends_on_the_call() || options.is_shared() || options.permits.is_some() {
        return None;
    }
    let mut identities = identity::from_arguments(&function.signature, bindings, &key.template);
    identities.retain(|identity| !in_options.contains_variable(&identity.argument));
    if identities.is_empty() {
        return None;
    }
    let first = &template.first;
    let (option, separator) = if first.is_path { ("path", '/') } else { ("key", ':') };
    let text = first.literal.value().replace('"', "\\\"");
    let meant = if template.others.is_empty() { format!("\"{text}\"") } else { "[..]".to_owned() };
    let message = format!(
        "this {option} contains no argument, so all calls of `{}` exclude each other: add an argument, as in `{}`, or \
         write `{option}({meant}, constant)` if this is intended",
        function.signature.ident,
        with_identities((option, separator), &text, &identities),
    );
    Some(Warning { span: first.literal.span(), message, only_if: None })
}

/// Warns of `"order:${id}"` and `"order:#{id}"`, which put the sign into the key, and of `"order:{{id}}"`, which
/// contains no value.
fn placeholder_of_another_language(checked: &Checked<'_>) -> Option<Warning> {
    let is_argument = |name: &str| checked.bindings.iter().any(|binding| binding.name == name);
    checked.options.key.as_ref()?.all().find_map(|key| {
        let text = key.literal.value();
        let template::Foreign { written, meant } = template::foreign(&text, is_argument)?;
        let sign = written.chars().next().filter(|sign| *sign != '{' && written.contains('{'));
        let part = sign.map(|sign| format!("the `{sign}` of ")).unwrap_or_default();
        let message = format!(
            "{part}`{written}` is plain text in a key, because a placeholder has one pair of braces and no sign \
             before it: write `\"{meant}\"`"
        );
        Some(Warning { span: key.literal.span(), message, only_if: None })
    })
}

/// Returns the key with placeholders for the ids.
fn with_identities((option, separator): (&str, char), template: &str, identities: &[Identity]) -> String {
    let holes = identities.iter().map(|identity| format!("{separator}{{{}}}", identity.name));
    let key = format!("\"{template}{}\"", holes.collect::<String>());
    let named =
        identities.iter().filter_map(|identity| Some(format!(", {} = {}", identity.name, identity.value.as_ref()?)));
    let named: String = named.collect();
    if named.is_empty() { format!("{option} = {key}") } else { format!("{option}({key}{named})") }
}

/// Warns of an attribute that opens a transaction below this one. It expands later, around the code of this one, so the
/// transaction ends after the release of the lock.
fn transaction_around_lock(function: &Function) -> Option<Warning> {
    let is_transaction = |name: &str| matches!(name, "transactional" | "transaction" | "in_transaction" | "tx");
    let path = function.attributes.iter().find_map(|attribute| {
        let name = &attribute.path().segments.last()?.ident;
        is_transaction(&name.to_string()).then(|| attribute.path())
    })?;
    let message = format!(
        "the lock is released before `#[{}]` commits, so the next holder may not see what this call has written: put \
         `#[distributed_lock]` below it",
        path.to_token_stream().to_string().replace(' ', "")
    );
    Some(Warning { span: path.span(), message, only_if: None })
}

/// Warns of a recursive call with the same key.
fn recursive_call(checked: &Checked<'_>) -> Option<Warning> {
    let Checked { options, function, form, bindings, key, in_body, .. } = checked;
    if options.is_reentrant() {
        return None;
    }
    let Found { span, only_if } = recursion::find(function, form, bindings, key, in_body)?;
    let name = &function.signature.ident;
    let why = match options.mode {
        // Another permit may be free, so the nested call may succeed.
        Mode::Exclusive if options.permits.is_some() => return None,
        Mode::Exclusive => "needs the lock that its caller already holds, so it can never acquire it",
        // The nested call would wait behind a writer that waits for the caller.
        Mode::Shared => {
            "needs a lock that its caller already shares, so it fails as soon as a writer waits for that lock"
        }
    };
    let message = format!(
        "this call of `{name}` {why}: write `reentrant`, or move the repeated code into a function without \
         `#[distributed_lock]`"
    );
    Some(Warning { span, message, only_if })
}
