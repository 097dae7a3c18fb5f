//! How the arguments get into the future of the body, so that they are gone before the lock is.
//!
//! A plain function drops its arguments after the locals of its body, the last one first, and what a pattern leaves
//! unbound in the same turn as the rest of its argument. A future drops what it has captured after its locals, in the
//! order of the captures. To drop in the order of the plain function, and to let the compiler warn as it does there:
//!
//! 1. Every argument is captured; the captures stand in reverse order, the last argument first.
//! 2. An argument that nobody uses comes in a box, so that a large one is not stored in the caller's future and in that
//!    of the body as well. Its name is bound to a reference to it, by the user's own tokens, so that the compiler warns
//!    of it as it does in a plain function.
//! 3. An argument whose pattern leaves parts unbound gets a name of its own in the signature, `__arg0`, and its pattern
//!    is bound inside: so the unbound parts are dropped in their turn. Unless the attribute itself uses a name of the
//!    pattern: then the pattern stays in the signature, where the attribute sees it.
//! 4. Every argument after one whose pattern is bound inside becomes a local as well, because a local is dropped before
//!    everything that was captured, and the later argument must be dropped before the earlier one.
//! 5. A name that is bound again inside is a generated one in the signature, so that the user's name hides nothing.
//! 6. The compiler warns of a value that is assigned to a field and never read, unless the variable is dropped: its `Drop` may
//!    read it. It does not see that a capture is dropped, so each capture with such a field is marked, for `expand` to show it.

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

/// What the body does first, and the signature where an argument needs another name.
pub(crate) struct Arguments {
    pub(crate) changed: Option<Signature>,
    pub(crate) entries: Vec<Entry>,
}

/// Where names occur.
pub(crate) struct Names<'a> {
    /// In the attribute, outside of the body.
    pub(crate) in_options: &'a Mentions,
    pub(crate) in_body: &'a Mentions,
}

impl Names<'_> {
    /// Whether somebody may use the argument.
    fn use_it(&self, binding: &Binding) -> bool {
        let name = &binding.name;
        name == "self" || self.in_options.have_variable(name) || self.in_body.have_variable(name)
    }

    /// Returns `true` if the body assigns to a field of the variable itself, which must be `mut` for that.
    fn change_it(&self, binding: &Binding) -> bool {
        let has_changed = |name: &str| self.in_body.have_changed(name);
        binding.mutability.is_some() && (has_changed(&binding.name) || has_changed(&binding.ident.unraw().to_string()))
    }

    /// Whether the body assigns to an argument without `mut`. The compiler refuses that, and words it differently for a
    /// variable that was captured: so such an argument is bound again.
    fn assign_wrongly(&self, argument: &PatType, binding: &Binding) -> bool {
        let is_constant = matches!(&*argument.pat, Pat::Ident(pattern) if pattern.mutability.is_none());
        is_constant && self.in_body.have_assigned(&binding.name)
    }
}

/// One variable that moves into the body, in the order of the arguments.
pub(crate) struct Entry {
    pub(crate) cfg: Vec<Attribute>,
    /// The lint levels of what is bound inside.
    pub(crate) lints: Vec<Attribute>,
    /// Its name outside of the body.
    pub(crate) outside: Ident,
    /// The name of the box in which it comes.
    pub(crate) boxed: Option<Ident>,
    /// It is dropped as a local of the body, and not as one of its captures.
    pub(crate) is_local: bool,
    /// It is captured, and the body assigns to one of its fields.
    pub(crate) is_changed: bool,
    pub(crate) inside: Inside,
    /// What is bound inside has the name of a variable outside.
    pub(crate) hides: bool,
}

/// What the body binds.
pub(crate) enum Inside {
    /// Nothing: the body sees the variable itself, or nobody does.
    Nothing,
    /// A pattern, to the variable.
    Pattern(Pat),
    /// A name that nobody uses, to a reference to the variable.
    Unused(Pat),
}

/// Plans the way of each argument.
pub(crate) fn of_function(signature: &Signature, names: &Names<'_>) -> Arguments {
    let mut plan = Plan { original: signature, names, changed: None, entries: Vec::new() };
    for (index, argument) in signature.inputs.iter().enumerate() {
        match argument {
            FnArg::Receiver(receiver) => {
                let binding = bindings::of_receiver(receiver);
                plan.entries.push(Entry { is_changed: names.change_it(&binding), ..Entry::captured(&binding) });
            }
            FnArg::Typed(argument) => plan.add(index, argument),
        }
    }
    Arguments { changed: plan.changed, entries: plan.entries }
}

/// Plans the way of variables whose declarations cannot be changed.
pub(crate) fn of_variables(bindings: &[Binding], names: &Names<'_>) -> Vec<Entry> {
    let variables = bindings.iter().filter(|binding| names.use_it(binding) || !binding.may_be_a_constant());
    let entries = variables.enumerate().map(|(number, binding)| {
        if names.use_it(binding) {
            return Entry { is_changed: names.change_it(binding), ..Entry::captured(binding) };
        }
        // rustc warns of a needless `mut` at the declaration.
        let binding = Binding { mutability: None, ..binding.clone() };
        Entry { hides: true, ..Entry::unused(&binding, number) }
    });
    entries.collect()
}

impl Entry {
    /// A variable that the body sees as it is.
    fn captured(binding: &Binding) -> Self {
        let Binding { cfg, lints, ident, .. } = binding.clone();
        let (boxed, inside) = (None, Inside::Nothing);
        Self { cfg, lints, outside: ident, boxed, is_local: false, is_changed: false, inside, hides: false }
    }

    /// A variable that nobody uses. Where its name begins with `_`, nobody has to be told.
    fn unused(binding: &Binding, number: usize) -> Self {
        let boxed = (!binding.is_small).then(|| numbered("__unused", number, binding.ident.span()));
        let is_silent = binding.name.starts_with('_');
        let inside = if is_silent { Inside::Nothing } else { Inside::Unused(simple(binding)) };
        Self { boxed, inside, ..Self::captured(binding) }
    }

    /// Whether its pattern borrows a part of the variable mutably, which then has to be `mut` itself.
    pub(crate) fn is_borrowed_mutably(&self) -> bool {
        matches!(&self.inside, Inside::Pattern(pattern) if bindings::borrow_mutably(pattern))
    }

    /// The variable that the future of the body takes with it.
    pub(crate) fn taken(&self) -> &Ident {
        self.boxed.as_ref().unwrap_or(&self.outside)
    }
}

/// The plan, while it is made.
struct Plan<'a> {
    original: &'a Signature,
    names: &'a Names<'a>,
    changed: Option<Signature>,
    entries: Vec<Entry>,
}

impl Plan<'_> {
    /// Plans the way of one argument.
    fn add(&mut self, index: usize, argument: &PatType) {
        let bindings = bindings::of_argument(argument);
        let is_seen_outside = bindings.iter().any(|binding| self.names.in_options.have_variable(&binding.name));
        if leaves_parts(&argument.pat) && !is_seen_outside {
            return self.add_pattern(index, argument);
        }
        for binding in bindings {
            let is_wrong = self.names.assign_wrongly(argument, &binding);
            self.add_binding(index, &binding, is_wrong);
        }
    }

    /// Gives the whole argument a name, and leaves its pattern to the body.
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

    /// Plans the way of one name that an argument binds.
    fn add_binding(&mut self, index: usize, binding: &Binding, is_wrong: bool) {
        let is_local = is_wrong || self.is_after_a_local();
        let is_used = self.names.use_it(binding);
        if !is_used && binding.may_be_a_constant() {
            return;
        }
        if is_used && !is_local {
            let is_changed = self.names.change_it(binding);
            return self.entries.push(Entry { is_changed, ..Entry::captured(binding) });
        }
        let mut entry = if is_used {
            Entry { inside: Inside::Pattern(simple(binding)), ..Entry::captured(binding) }
        } else {
            Entry::unused(binding, self.entries.len())
        };
        entry.is_local = is_local;
        entry.hides = self.names.in_options.have_variable(&binding.name);
        if !entry.hides {
            entry.outside.set_span(Span::mixed_site().located_at(binding.ident.span()));
        }
        if let Some(pattern) = self.pattern(index) {
            self.change(index, Pat::Verbatim(renamed(pattern, &entry.outside)));
        }
        self.entries.push(entry);
    }

    /// Whether an argument before the next one is a local.
    fn is_after_a_local(&self) -> bool {
        self.entries.iter().any(|entry| entry.is_local)
    }

    /// The pattern of an argument as it stands in the signature by now.
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

/// A generated name, such as `__arg0`.
fn numbered(name: &str, number: usize, span: Span) -> Ident {
    Ident::new(&format!("{name}{number}"), Span::mixed_site().located_at(span))
}

/// A pattern that is only a name.
fn simple(Binding { ident, mutability, .. }: &Binding) -> Pat {
    Pat::Ident(PatIdent {
        attrs: Vec::new(),
        by_ref: None,
        mutability: *mutability,
        ident: ident.clone(),
        subpat: None,
    })
}

/// The pattern with another `name` in the place of the same text, and without the `mut` before it, which goes with the
/// user's name.
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

/// Takes a `mut` from the end that does not belong to `ref mut`.
fn drop_mutability(tokens: &mut Vec<TokenTree>) {
    let is_word = |token: &TokenTree, word: &str| matches!(token, TokenTree::Ident(ident) if ident == word);
    match tokens.as_slice() {
        [.., first, last] if is_word(last, "mut") && is_word(first, "ref") => {}
        [.., last] if is_word(last, "mut") => drop(tokens.pop()),
        _ => {}
    }
}

/// Whether the pattern may leave something unbound that has to be dropped.
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
