//! Requirements for the function and its key, independent of the other options.

use crate::analyze::bindings::{self, Binding};
use crate::analyze::form::Form;
use crate::analyze::item::{self, Function};
use crate::analyze::key::Key;
use crate::analyze::mentions::{self, Mentions};
use crate::analyze::output;
use crate::errors::Errors;
use crate::options::{self, KeyTemplate, KeyTemplates, Options};
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::{Meta, Type};

/// Reports a function that cannot wait for a lock: only async functions can, and only at run time.
pub(super) fn report_function_that_cannot_wait(function: &Function, form: Option<&Form>, errors: &mut Errors) {
    // One error per function: the errors for `const` and `extern` are more specific.
    if form.is_none() && function.signature.constness.is_none() && function.signature.abi.is_none() {
        report_blocking_function(function, errors);
    }
    report_const_or_extern(function, errors);
}

/// Reports a function that is not async, with the probable reason.
fn report_blocking_function(function: &Function, errors: &mut Errors) {
    let name = &function.signature.ident;
    let remedy = if has_word(function.body.stream(), "block_on") {
        "an attribute above this one, such as `#[tokio::main]`, has made it a blocking function: put \
         `#[distributed_lock]` above that attribute"
            .into()
    } else {
        format!("write `async fn {name}`")
    };
    let message = format!("`{name}` is not async, so it cannot wait for a lock: {remedy}");
    errors.at(function.signature.fn_token.span, message);
}

/// Reports `const` and `extern` functions, which run where nothing can wait.
fn report_const_or_extern(function: &Function, errors: &mut Errors) {
    let Function { signature, .. } = function;
    let name = &signature.ident;
    if let Some(token) = &signature.constness {
        let message = format!("`{name}` is `const`, but a lock can be acquired only at run time: remove `const`");
        errors.on(token, message);
    }
    if let Some(abi) = &signature.abi {
        let message = format!(
            "`{name}` is `extern`, and its callers in another language cannot wait for a lock: put \
             `#[distributed_lock]` on an `async fn` that it runs"
        );
        errors.on(abi, message);
    }
}

/// Returns `true` if `tokens` contain `word`.
fn has_word(tokens: TokenStream, word: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Group(group) => has_word(group.stream(), word),
        TokenTree::Ident(ident) => ident == word,
        _ => false,
    })
}

/// Reports a function that returns `()`, which could not report that the body did not run. Other types are checked by
/// the compiler, through `FromLockError`.
pub(super) fn report_unit_output(
    options: &Options,
    function: &Function,
    form: Option<&Form>,
    output: &Type,
    errors: &mut Errors,
) {
    if options.name("on_error").is_some() || !output::is_unit(output) {
        return;
    }
    let name = &function.signature.ident;
    let reason = match &options.on_contended {
        None => "the lock was not acquired",
        Some(_) => "no node answered or that the lock was lost",
    };
    let message = format!(
        "`{name}` returns nothing, so it cannot report that {reason}: return `Result<(), LockError>`, or write \
         `on_error = |error| ..`"
    );
    // `#[async_trait]` writes the type at its own position, even if the user has written none.
    match form {
        Some(Form::Desugared(_)) => errors.at(name.span(), message),
        _ => errors.on(output, message),
    }
}

/// Reports a second attribute with the same key. An attribute below this one expands later, around the code of this
/// one, and acquires its lock first. This one would then wait for the lock of its own call.
pub(super) fn report_second_attribute(options: &Options, function: &Function, errors: &mut Errors) {
    let Some(key) = &options.key else { return };
    for attribute in function.attributes.iter().filter(|attribute| item::is_lock(attribute)) {
        let Meta::List(list) = &attribute.meta else { continue };
        let other = options::read(list.tokens.clone(), &mut Errors::default()).key;
        let Some(other) = other else { continue };
        let is_same = |ours: &KeyTemplate, theirs: &KeyTemplate| {
            ours.is_path == theirs.is_path && ours.literal.value() == theirs.literal.value()
        };
        let mut pairs = key.all().flat_map(|ours| other.all().map(move |theirs| (ours, theirs)));
        if let Some((ours, theirs)) = pairs.find(|(ours, theirs)| is_same(ours, theirs)) {
            let message = "two attributes lock the same key, so every call would wait for itself: remove one of the \
                           two";
            errors.at(ours.literal.span(), message);
            errors.at(theirs.literal.span(), message);
        }
    }
}

/// Reports defaults with `self` on a function without a receiver.
pub(super) fn report_default_with_self(options: &Options, function: &Function, errors: &mut Errors) {
    if function.signature.receiver().is_some() {
        return;
    }
    for (option, tokens) in mentions::tokens_of(options) {
        let is_default = options.name(option).is_some_and(|name| options.is_default(name));
        if is_default && Mentions::from_tokens(tokens).contains_variable("self") {
            let name = &function.signature.ident;
            let message = format!(
                "`{name}` has no `self`, but the default for `{option}` uses it: write `{option} = ..` for this \
                 function"
            );
            errors.at(name.span(), message);
        }
    }
}

/// Names of guards in examples.
const GUARDS: &[&str] = &["lock", "guard"];

/// Methods that only a guard has, among the values called `lock` or `guard`.
const OF_GUARDS: &[&str] =
    &["ensure_held", "fencing_token", "inherit", "is_held", "lost", "near_expiry", "reopen_window"];

/// Reports a body that calls `lock.ensure_held()` without `guard = lock`. The name is unbound if every mention of it
/// precedes a dot: a binding of the name would mention it elsewhere.
pub(super) fn report_unnamed_guard(
    options: &Options,
    function: &Function,
    form: Option<&Form>,
    bindings: &[Binding],
    errors: &mut Errors,
) {
    if options.name("guard").is_some() || form.is_none_or(|form| matches!(form, Form::Future(_))) {
        return;
    }
    for name in GUARDS.iter().filter(|name| !bindings.iter().any(|binding| binding.name == **name)) {
        let mut uses = Uses { methods: OF_GUARDS, ..Uses::default() };
        uses.read(name, function.body.stream());
        if let (Some(method), false) = (uses.of_a_guard, uses.is_bound) {
            let message = format!("`{name}` is not defined in this body: write `guard = {name}` in the attribute");
            errors.at(method, message);
        }
    }
}

/// Reports a body that calls `lock.fencing_token()` without `fencing`. As for [`report_unnamed_guard`], every mention of the
/// guard must precede a dot.
pub(super) fn report_unfenced_guard(options: &Options, function: &Function, errors: &mut Errors) {
    let Some(name) = options.guard.as_ref().filter(|_| !options.is_fenced).map(Ident::to_string) else { return };
    let mut uses = Uses { methods: &["fencing_token"], ..Uses::default() };
    uses.read(&name, function.body.stream());
    if let (Some(method), false) = (uses.of_a_guard, uses.is_bound) {
        let message = format!("`{name}` has no fencing token: write `fencing, guard = {name}` in the attribute");
        errors.at(method, message);
    }
}

/// Uses of a name.
#[derive(Default)]
struct Uses {
    /// Methods to look for.
    methods: &'static [&'static str],
    /// First call of one of the methods.
    of_a_guard: Option<Span>,
    /// `true` if a mention is not followed by a dot.
    is_bound: bool,
}

impl Uses {
    fn read(&mut self, name: &str, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Group(group) => self.read(name, group.stream()),
                TokenTree::Ident(ident)
                    if ident == name && !is_dot(at.checked_sub(1).and_then(|at| tokens.get(at))) =>
                {
                    self.is_bound |= !is_dot(tokens.get(at + 1));
                    let method = tokens.get(at + 2);
                    let is_of_guards = |method: &Ident| self.methods.iter().any(|other| method == other);
                    if matches!(method, Some(TokenTree::Ident(method)) if is_of_guards(method)) {
                        self.of_a_guard.get_or_insert(ident.span());
                    }
                }
                _ => {}
            }
        }
    }
}

fn is_dot(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == '.')
}

/// Reports two arguments with one name, which is possible if a macro has made one of them. A key template could then
/// mean either argument.
pub(super) fn report_ambiguous_argument(key: &Key, function: &Function, errors: &mut Errors) {
    let arguments = bindings::from_arguments(&function.signature);
    for name in key.arguments() {
        let is_it = |binding: &&Binding| binding.name == name && binding.cfg.is_empty();
        if arguments.iter().filter(is_it).count() > 1 {
            let message = format!(
                "`{}` has two arguments named `{name}`, one of them from a macro, so the key cannot tell them apart: \
                 rename one of them",
                function.signature.ident
            );
            errors.at(key.span(), message);
        }
    }
}

/// Returns the templates of the key. Reports a missing key, with an example for this function.
pub(super) fn key_or_report<'a>(
    options: &'a Options,
    function: &Function,
    bindings: &[Binding],
    errors: &mut Errors,
) -> Option<&'a KeyTemplates> {
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
