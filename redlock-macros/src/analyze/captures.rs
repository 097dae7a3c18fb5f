//! How the arguments get into the future of the body, so that they are gone before the lock is.
//!
//! A plain function drops its arguments after the locals of its body, the last one first, and what a pattern leaves
//! unbound in the same turn as the rest of its argument. A future drops what it has captured after its locals, in the
//! order of the captures. To drop in the order of the plain function, and to let the compiler warn as it does there:
//!
//! 1. An argument that the body uses is captured; the captures stand in reverse order, the last argument first.
//! 2. An argument that the body does not use is not captured but bound again inside, by the user's own tokens, as the
//!    compiler does it in a plain `async fn`: so the compiler still warns of it.
//! 3. Every argument after one that is bound again is bound again as well, because a local is dropped before everything
//!    that was captured, and the later argument must be dropped before the earlier one.
//! 4. An argument whose pattern leaves parts unbound gets a name of its own in the signature, `__arg0`, and its pattern
//!    is bound inside: so the unbound parts are dropped in their turn. Unless the attribute itself uses a name of the
//!    pattern: then the pattern stays in the signature, where the attribute sees it.

use super::bindings::{self, Binding};
use super::mentions::Mentions;
use proc_macro2::{Ident, Span};
use syn::spanned::Spanned;
use syn::{Attribute, FnArg, Pat, PatIdent, PatType, Signature};

/// What the body does first, and the signature where an argument needs a name or another `mut`.
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
    /// Whether the argument counts as used, so that the compiler has nothing to warn of.
    fn use_it(&self, binding: &Binding) -> bool {
        let name = &binding.name;
        let is_mentioned = || self.in_options.have_variable(name) || self.in_body.have_variable(name);
        name.starts_with('_') || name == "self" || is_mentioned()
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
    pub(crate) variable: Ident,
    /// The pattern of a `let` inside the body; otherwise it is captured.
    pub(crate) rebound: Option<Pat>,
    is_used: bool,
}

/// Plans the way of each argument.
pub(crate) fn of_function(signature: &Signature, names: &Names<'_>) -> Arguments {
    let mut changed = None;
    let mut entries = Vec::new();
    for (index, argument) in signature.inputs.iter().enumerate() {
        match argument {
            FnArg::Receiver(receiver) => {
                let binding = Binding::new(&Ident::new("self", receiver.self_token.span), &receiver.attrs);
                entries.push(Entry::captured(binding, true));
            }
            FnArg::Typed(argument) => {
                let bindings = bindings::of_argument(argument);
                let is_seen_outside = bindings.iter().any(|binding| names.in_options.have_variable(&binding.name));
                if leaves_parts(&argument.pat) && !is_seen_outside {
                    let entry = named(argument, index);
                    rename(changed.get_or_insert_with(|| signature.clone()), index, &entry.variable);
                    entries.push(entry);
                } else {
                    entries.extend(bindings.into_iter().map(|binding| {
                        let is_used = names.use_it(&binding) && !names.assign_wrongly(argument, &binding);
                        Entry::captured(binding, is_used)
                    }));
                }
            }
        }
    }
    if rebind_from_the_first_unused(&mut entries) {
        let changed = changed.get_or_insert_with(|| signature.clone());
        for entry in &mut entries {
            entry.take_mutability(changed);
        }
    }
    Arguments { changed, entries }
}

/// Plans the way of variables whose declarations cannot be changed.
pub(crate) fn of_variables(bindings: &[Binding], names: &Names<'_>) -> Vec<Entry> {
    let entries = bindings.iter().map(|binding| Entry::captured(binding.clone(), names.use_it(binding)));
    let mut entries: Vec<Entry> = entries.collect();
    rebind_from_the_first_unused(&mut entries);
    entries
}

impl Entry {
    fn captured(binding: Binding, is_used: bool) -> Self {
        Self { cfg: binding.cfg, variable: binding.ident, rebound: None, is_used }
    }

    /// Moves the `mut` of an argument that is bound again from the signature to the body, where it is needed, or where
    /// the compiler warns of it.
    fn take_mutability(&mut self, signature: &mut Signature) {
        if let Some(Pat::Ident(rebound)) = &mut self.rebound
            && rebound.ident == self.variable
        {
            rebound.mutability = simple_pattern(signature, &self.variable).and_then(|found| found.mutability.take());
        }
    }
}

/// Gives the whole argument a name, and leaves its pattern to the body.
fn named(argument: &PatType, index: usize) -> Entry {
    let variable = Ident::new(&format!("__arg{index}"), Span::mixed_site().located_at(argument.pat.span()));
    // `let _ = __arg0;` would not move the argument, so an argument called `_` is captured under its new name.
    let rebound = (!matches!(*argument.pat, Pat::Wild(_))).then(|| (*argument.pat).clone());
    let cfg = argument.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg")).cloned().collect();
    Entry { cfg, variable, is_used: rebound.is_none(), rebound }
}

/// Puts `name` in the place of a pattern in the signature.
fn rename(signature: &mut Signature, index: usize, name: &Ident) {
    if let Some(FnArg::Typed(argument)) = signature.inputs.iter_mut().nth(index) {
        *argument.pat = simple(name.clone());
    }
}

/// Plans to bind again the first argument that is not used, and all after it. Whether there is one.
fn rebind_from_the_first_unused(entries: &mut [Entry]) -> bool {
    let first = entries.iter().position(|entry| !entry.is_used).unwrap_or(entries.len());
    for entry in entries.iter_mut().skip(first).filter(|entry| entry.rebound.is_none()) {
        entry.rebound = Some(simple(entry.variable.clone()));
    }
    first < entries.len()
}

/// The pattern of the argument that is called `variable` and nothing else.
fn simple_pattern<'a>(signature: &'a mut Signature, variable: &Ident) -> Option<&'a mut PatIdent> {
    signature.inputs.iter_mut().find_map(|argument| match argument {
        FnArg::Typed(PatType { pat, .. }) => match &mut **pat {
            Pat::Ident(pattern) if pattern.ident == *variable => Some(pattern),
            _ => None,
        },
        FnArg::Receiver(_) => None,
    })
}

/// A pattern that is only a name.
fn simple(ident: Ident) -> Pat {
    Pat::Ident(PatIdent { attrs: Vec::new(), by_ref: None, mutability: None, ident, subpat: None })
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

#[cfg(test)]
mod tests {
    use super::{Names, of_function};
    use crate::analyze::mentions::Mentions;
    use quote::ToTokens;

    fn plan(signature: &str, in_options: &[&str], in_body: &[&str]) -> (String, String) {
        let mentions = |names: &[&str]| Mentions::of(names.join(" ").parse().unwrap());
        let (in_options, in_body) = (mentions(in_options), mentions(in_body));
        let signature = syn::parse_str(signature).unwrap();
        let arguments = of_function(&signature, &Names { in_options: &in_options, in_body: &in_body });
        let entries = arguments.entries.iter().map(|entry| match &entry.rebound {
            Some(pattern) => format!("{}={}", pattern.to_token_stream().to_string().replace(' ', ""), entry.variable),
            None => entry.variable.to_string(),
        });
        let entries = entries.collect::<Vec<_>>().join(" ");
        let signature = arguments.changed.unwrap_or(signature);
        (signature.inputs.to_token_stream().to_string().replace(' ', ""), entries)
    }

    #[test]
    fn every_argument_finds_its_way() {
        type Row<'a> = (&'a str, &'a [&'a str], &'a [&'a str], &'a str, &'a str);
        let table: &[Row<'_>] = &[
            ("fn f(&self, a: A, mut b: B)", &[], &["a", "b"], "&self,a:A,mutb:B", "self a b"),
            ("fn f(a: A, b: B, mut c: C)", &[], &["a", "c"], "a:A,b:B,c:C", "a b=b mutc=c"),
            ("fn f(assigned: A, b: B)", &[], &["assigned = 1;", "b"], "assigned:A,b:B", "assigned=assigned b=b"),
            ("fn f(mut assigned: A)", &[], &["assigned = 1;"], "mutassigned:A", "assigned"),
            ("fn f(a: A, _b: B)", &["a"], &[], "a:A,_b:B", "a _b"),
            ("fn f(a: A, _: B, c: C)", &[], &["a", "c"], "a:A,__arg1:B,c:C", "a __arg1 c"),
            ("fn f((a, _): A, b: B)", &[], &["a", "b"], "__arg0:A,b:B", "(a,_)=__arg0 b=b"),
            ("fn f((a, _): A, b: B)", &["a"], &["b"], "(a,_):A,b:B", "a b"),
            ("fn f(Path(a): A, S { b, .. }: B)", &[], &["a", "b"], "Path(a):A,__arg1:B", "a S{b,..}=__arg1"),
        ];
        for (signature, in_options, in_body, inputs, entries) in table {
            assert_eq!(
                plan(signature, in_options, in_body),
                ((*inputs).to_owned(), (*entries).to_owned()),
                "{signature}"
            );
        }
    }
}
