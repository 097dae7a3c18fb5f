//! Moves the arguments into the future of the body, so that they are dropped before the lock is released.
//!
//! A plain function drops its arguments after the locals of its body, the last argument first. A part that a pattern
//! leaves unbound is dropped together with the rest of its argument. A future drops its captures after its locals, in
//! the order of the captures. The following rules keep the drop order and the compiler's warnings of the plain
//! function:
//!
//! 1. Every argument is captured, in reverse order: the last argument first.
//! 2. An unused argument is moved in a box, so that a large argument is not stored twice: in the future of the caller
//!    and in that of the body. Its name is bound to a reference, by the user's own tokens, so that the compiler warns
//!    as it does in a plain function.
//! 3. An argument whose pattern leaves parts unbound gets a generated name in the signature, `__arg0`, and its pattern
//!    is bound in the body. The unbound parts are then dropped in the right order. If the attribute uses a name of the
//!    pattern, the pattern stays in the signature, where the attribute sees it.
//! 4. Every argument after one whose pattern is bound in the body becomes a local as well. Locals are dropped before
//!    all captures, and the later argument must be dropped before the earlier one.
//! 5. A name that is bound again in the body has a generated name in the signature, so that the user's name shadows
//!    nothing.
//! 6. The compiler warns of a value that is assigned to a field and never read, unless the variable is dropped, because
//!    `Drop` may read it. The compiler does not see the drop of a capture. Each capture with such a field is therefore
//!    marked, and `expand` makes its drop visible.

#[cfg(test)]
mod tests;

use super::bindings::{self, Binding};
use super::item::with_contents;
use super::lints;
use super::mentions::Mentions;
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, FnArg, Pat, PatIdent, PatType, Signature};

/// Variables that move into the body, and the signature if an argument gets another name.
pub(crate) struct Arguments {
    pub(crate) changed: Option<Signature>,
    pub(crate) entries: Vec<Entry>,
}

/// Names that occur in the attribute and in the body.
pub(crate) struct Names<'a> {
    /// Names in the attribute, outside the body.
    pub(crate) in_options: &'a Mentions,
    pub(crate) in_body: &'a Mentions,
}

impl Names<'_> {
    /// Returns `true` if the attribute or the body may use the argument.
    fn uses(&self, binding: &Binding) -> bool {
        let name = &binding.name;
        name == "self" || self.in_options.contains_variable(name) || self.in_body.contains_variable(name)
    }

    /// Returns `true` if the body assigns to a field of the variable itself, which must be `mut` for that.
    fn changes_field(&self, binding: &Binding) -> bool {
        let has_changed = |name: &str| self.in_body.contains_field_assignment(name);
        binding.mutability.is_some() && (has_changed(&binding.name) || has_changed(&binding.ident.unraw().to_string()))
    }

    /// Returns `true` if the body assigns to an argument without `mut`. The compiler rejects this, with another text
    /// for a captured variable. Such an argument is therefore bound again.
    fn assigns_immutable(&self, argument: &PatType, binding: &Binding) -> bool {
        let is_constant = matches!(&*argument.pat, Pat::Ident(pattern) if pattern.mutability.is_none());
        is_constant && self.in_body.contains_assignment(&binding.name)
    }
}

/// Variable that moves into the body. Entries are in the order of the arguments.
pub(crate) struct Entry {
    pub(crate) cfg: Vec<Attribute>,
    /// Lint levels of the binding in the body.
    pub(crate) lints: Vec<Attribute>,
    /// Name outside the body.
    pub(crate) outside: Ident,
    /// Name of the box that contains it, if any.
    pub(crate) boxed: Option<Ident>,
    /// `true` if it is dropped as a local of the body, and not as a capture.
    pub(crate) is_local: bool,
    /// `true` if it is captured and the body assigns to one of its fields.
    pub(crate) is_changed: bool,
    pub(crate) inside: Inside,
    /// `true` if the binding in the body has the name of a variable outside.
    pub(crate) hides: bool,
}

/// Binding of a variable in the body.
pub(crate) enum Inside {
    /// No binding: the body uses the variable itself, or the variable is unused.
    Nothing,
    /// A pattern that the variable is bound to.
    Pattern(Pat),
    /// An unused name, bound to a reference to the variable.
    Unused(Pat),
}

/// Plans how each argument of a function moves into the body.
pub(crate) fn from_function(signature: &Signature, names: &Names<'_>) -> Arguments {
    let mut plan = Plan { original: signature, names, changed: None, entries: Vec::new() };
    for (index, argument) in signature.inputs.iter().enumerate() {
        match argument {
            FnArg::Receiver(receiver) => {
                let binding = bindings::from_receiver(receiver);
                plan.entries.push(Entry { is_changed: names.changes_field(&binding), ..Entry::captured(&binding) });
            }
            FnArg::Typed(argument) => plan.add(index, argument),
        }
    }
    Arguments { changed: plan.changed, entries: plan.entries }
}

/// Plans how variables move into the body if their declarations cannot be changed.
pub(crate) fn from_variables(bindings: &[Binding], names: &Names<'_>) -> Vec<Entry> {
    let variables = bindings.iter().filter(|binding| names.uses(binding) || !binding.may_be_a_constant());
    let entries = variables.enumerate().map(|(number, binding)| {
        if names.uses(binding) {
            return Entry { is_changed: names.changes_field(binding), ..Entry::captured(binding) };
        }
        // rustc warns of a needless `mut` at the declaration.
        let binding = Binding { mutability: None, ..binding.clone() };
        Entry { hides: true, ..Entry::unused(&binding, number) }
    });
    entries.collect()
}

impl Entry {
    /// Creates an entry for a variable that the body uses directly.
    fn captured(binding: &Binding) -> Self {
        let Binding { cfg, lints, ident, .. } = binding.clone();
        let (boxed, inside) = (None, Inside::Nothing);
        Self { cfg, lints, outside: ident, boxed, is_local: false, is_changed: false, inside, hides: false }
    }

    /// Creates an entry for an unused variable. If its name begins with `_`, no warning is needed.
    fn unused(binding: &Binding, number: usize) -> Self {
        let boxed = (!binding.is_small).then(|| numbered("__unused", number, binding.ident.span()));
        let is_silent = binding.name.starts_with('_');
        let inside = if is_silent { Inside::Nothing } else { Inside::Unused(simple(binding)) };
        Self { boxed, inside, ..Self::captured(binding) }
    }

    /// Returns `true` if its pattern borrows a part of the variable mutably. The variable must then be `mut` itself.
    pub(crate) fn is_borrowed_mutably(&self) -> bool {
        matches!(&self.inside, Inside::Pattern(pattern) if bindings::borrow_mutably(pattern))
    }

    /// Returns the variable that the future of the body captures.
    pub(crate) fn taken(&self) -> &Ident {
        self.boxed.as_ref().unwrap_or(&self.outside)
    }
}

/// Plan under construction.
struct Plan<'a> {
    original: &'a Signature,
    names: &'a Names<'a>,
    changed: Option<Signature>,
    entries: Vec<Entry>,
}

impl Plan<'_> {
    /// Plans one argument.
    fn add(&mut self, index: usize, argument: &PatType) {
        let bindings = bindings::from_argument(argument);
        let is_seen_outside = bindings.iter().any(|binding| self.names.in_options.contains_variable(&binding.name));
        if leaves_parts(&argument.pat) && !is_seen_outside {
            return self.add_pattern(index, argument);
        }
        for binding in bindings {
            let is_wrong = self.names.assigns_immutable(argument, &binding);
            self.add_binding(index, &binding, is_wrong);
        }
    }

    /// Gives the whole argument a generated name, and binds its pattern in the body.
    fn add_pattern(&mut self, index: usize, argument: &PatType) {
        let name = numbered("__arg", index, argument.pat.span());
        let is_small = bindings::is_small(&argument.ty);
        let binding = Binding { is_small, ..Binding::new(&name, &argument.attrs) };
        let entry = if matches!(*argument.pat, Pat::Wild(_)) {
            // `let _ = __arg0;` would not move the argument, so it is captured under its new name.
            Entry { is_local: self.is_after_a_local(), ..Entry::unused(&binding, self.entries.len()) }
        } else {
            Entry { inside: Inside::Pattern((*argument.pat).clone()), is_local: true, ..Entry::captured(&binding) }
        };
        self.entries.push(entry);
        self.change(index, simple(&binding));
    }

    /// Plans one name that an argument binds.
    fn add_binding(&mut self, index: usize, binding: &Binding, is_wrong: bool) {
        let is_local = is_wrong || self.is_after_a_local();
        let is_used = self.names.uses(binding);
        if !is_used && binding.may_be_a_constant() {
            return;
        }
        if is_used && !is_local {
            let is_changed = self.names.changes_field(binding);
            return self.entries.push(Entry { is_changed, ..Entry::captured(binding) });
        }
        let mut entry = if is_used {
            Entry { inside: Inside::Pattern(simple(binding)), ..Entry::captured(binding) }
        } else {
            Entry::unused(binding, self.entries.len())
        };
        entry.is_local = is_local;
        entry.hides = self.names.in_options.contains_variable(&binding.name);
        if !entry.hides {
            entry.outside.set_span(Span::mixed_site().located_at(binding.ident.span()));
        }
        if let Some(pattern) = self.pattern(index) {
            self.change(index, Pat::Verbatim(renamed(pattern, &entry.outside)));
        }
        self.entries.push(entry);
    }

    /// Returns `true` if an earlier argument is a local of the body.
    fn is_after_a_local(&self) -> bool {
        self.entries.iter().any(|entry| entry.is_local)
    }

    /// Returns the current pattern of an argument in the signature.
    fn pattern(&self, index: usize) -> Option<TokenStream> {
        match self.changed.as_ref().unwrap_or(self.original).inputs.iter().nth(index)? {
            FnArg::Typed(argument) => Some(argument.pat.to_token_stream()),
            FnArg::Receiver(_) => None,
        }
    }

    /// Changes the pattern of an argument in the signature.
    fn change(&mut self, index: usize, pattern: Pat) {
        let signature = self.changed.get_or_insert_with(|| self.original.clone());
        if let Some(FnArg::Typed(argument)) = signature.inputs.iter_mut().nth(index) {
            lints::allow_instead(&mut argument.attrs);
            *argument.pat = pattern;
        }
    }
}

/// Creates a generated name, such as `__arg0`.
fn numbered(name: &str, number: usize, span: Span) -> Ident {
    Ident::new(&format!("{name}{number}"), Span::mixed_site().located_at(span))
}

/// Creates a pattern that is only a name.
fn simple(Binding { ident, mutability, .. }: &Binding) -> Pat {
    Pat::Ident(PatIdent {
        attrs: Vec::new(),
        by_ref: None,
        mutability: *mutability,
        ident: ident.clone(),
        subpat: None,
    })
}

/// Replaces the name in a pattern by `name`, which has the same text and another span. Removes the `mut` before it,
/// which belongs to the user's name.
fn renamed(pattern: TokenStream, name: &Ident) -> TokenStream {
    let mut tokens: Vec<TokenTree> = Vec::new();
    for token in pattern {
        let token = match token {
            TokenTree::Ident(ident) if ident == *name => {
                drop_mutability(&mut tokens);
                name.clone().into()
            }
            TokenTree::Group(group) => with_contents(&group, renamed(group.stream(), name)).into(),
            other => other,
        };
        tokens.push(token);
    }
    tokens.into_iter().collect()
}

/// Removes a `mut` from the end, unless it belongs to `ref mut`.
fn drop_mutability(tokens: &mut Vec<TokenTree>) {
    let is_word = |token: &TokenTree, word: &str| matches!(token, TokenTree::Ident(ident) if ident == word);
    match tokens.as_slice() {
        [.., first, last] if is_word(last, "mut") && is_word(first, "ref") => {}
        [.., last] if is_word(last, "mut") => drop(tokens.pop()),
        _ => {}
    }
}

/// Returns `true` if the pattern may leave a part unbound that has to be dropped.
fn leaves_parts(pattern: &Pat) -> bool {
    match pattern {
        Pat::Ident(pattern) => {
            pattern.by_ref.is_some() || pattern.subpat.as_ref().is_some_and(|(_, inner)| leaves_parts(inner))
        }
        Pat::Paren(pattern) => leaves_parts(&pattern.pat),
        Pat::Or(pattern) => pattern.cases.iter().any(leaves_parts),
        Pat::Struct(pattern) => pattern.rest.is_some() || pattern.fields.iter().any(|field| leaves_parts(&field.pat)),
        Pat::Slice(pattern) => pattern.elems.iter().any(leaves_parts),
        Pat::Tuple(pattern) => pattern.elems.iter().any(leaves_parts),
        Pat::TupleStruct(pattern) => pattern.elems.iter().any(leaves_parts),
        Pat::Type(pattern) => leaves_parts(&pattern.pat),
        Pat::Rest(_) | Pat::Wild(_) => true,
        _ => false,
    }
}
