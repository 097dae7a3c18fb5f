//! What the function and its key must be, whatever the other options say.

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

/// A lock can be waited for by async functions alone, and at run time alone.
pub(super) fn function_can_wait(function: &Function, form: Option<&Form>, errors: &mut Errors) {
    // One error for one function: `const` and `extern` say more than that it is not async.
    if form.is_none() && function.signature.constness.is_none() && function.signature.abi.is_none() {
        is_not_async(function, errors);
    }
    is_called_by_rust_at_run_time(function, errors);
}

/// Says that nothing here can wait, and guesses why.
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

/// `const` and `extern` functions run where nothing can wait.
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

/// Whether `word` stands anywhere in `tokens`.
fn has_word(tokens: TokenStream, word: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Group(group) => has_word(group.stream(), word),
        TokenTree::Ident(ident) => ident == word,
        _ => false,
    })
}

/// A function that returns `()` could not tell its caller that the body did not run. Of other types the compiler
/// judges, by `FromLockError`.
pub(super) fn has_room_for_an_error(
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
        None => "the lock was not obtained",
        Some(_) => "no node answered or that the lock was lost",
    };
    let message = format!(
        "`{name}` returns nothing, so it cannot say that {reason}: return `Result<(), LockError>`, or write \
         `on_error = |error| ..`"
    );
    // `#[async_trait]` writes the type where it stands itself, also when the user has written none.
    match form {
        Some(Form::Desugared(_)) => errors.at(name.span(), message),
        _ => errors.on(output, message),
    }
}

/// An attribute below this one expands later, around the code of this one, and so takes its lock first. If both have
/// the same key, this one would wait for the lock that its own call holds.
pub(super) fn no_second_attribute_with_this_key(options: &Options, function: &Function, errors: &mut Errors) {
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
            let message = "two attributes take the same key, so every call would wait for itself: keep one";
            errors.at(ours.literal.span(), message);
            errors.at(theirs.literal.span(), message);
        }
    }
}

/// A default may name `self`, which a function among methods may lack.
pub(super) fn defaults_fit_without_self(options: &Options, function: &Function, errors: &mut Errors) {
    if function.signature.receiver().is_some() {
        return;
    }
    for (option, tokens) in mentions::tokens_of(options) {
        let is_default = options.name(option).is_some_and(|name| options.is_default(name));
        if is_default && Mentions::of(tokens).have_variable("self") {
            let name = &function.signature.ident;
            let message = format!(
                "`{name}` has no `self`, which `{option}` needs in the defaults around: write `{option} = ..` for this \
                 function"
            );
            errors.at(name.span(), message);
        }
    }
}

/// The names by which examples call a guard.
const GUARDS: &[&str] = &["lock", "guard"];

/// Methods of a guard that other things called `lock` or `guard` do not have.
const OF_GUARDS: &[&str] =
    &["at_risk", "ensure_held", "fencing_token", "give_back_window", "inherit", "is_held", "lost"];

/// A body that calls `lock.ensure_held()` without `guard = lock`. The name is one of nothing else if every mention of it is before
/// a dot: what binds a name mentions it elsewhere.
pub(super) fn guard_has_a_name(
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
        let mut uses = Uses::default();
        uses.read(name, function.body.stream());
        if let (Some(method), false) = (uses.of_a_guard, uses.is_bound) {
            let message = format!("the body does not see its lock: write `guard = {name}` in the attribute");
            errors.at(method, message);
        }
    }
}

/// How a name is used.
#[derive(Default)]
struct Uses {
    /// Where a method of a guard is called for the first time.
    of_a_guard: Option<Span>,
    /// It is mentioned without a dot behind.
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
                    let is_of_guards = |method: &Ident| OF_GUARDS.iter().any(|other| method == other);
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

/// Two arguments may have one name if a macro has made one of them. In the text of a key they cannot be told apart.
pub(super) fn key_names_one_argument(key: &Key, function: &Function, errors: &mut Errors) {
    let arguments = bindings::of_arguments(&function.signature);
    for name in key.arguments() {
        let is_it = |binding: &&Binding| binding.name == name && binding.cfg.is_empty();
        if arguments.iter().filter(is_it).count() > 1 {
            let message = format!(
                "`{name}` is the name of two arguments of `{}`, one of which comes from a macro: give it another name",
                function.signature.ident
            );
            errors.at(key.span(), message);
        }
    }
}

/// The template of the key. Without one, the message shows a key that this function could have.
pub(super) fn has_key<'a>(
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
