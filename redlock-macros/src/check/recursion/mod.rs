//! Finds recursive calls with the same key, which wait for their own caller.
//!
//! 1. The body is read once, in order. `f(..)` calls a free function. `Self::f(..)` and `self.f(..)` call a method. So
//!    does `other.f(..)` if `other` is a `Self` by its declaration or its initial value. If the type of an argument may
//!    be `Self` under another name, the compiler decides.
//! 2. The arguments in the key must be passed unchanged, under the name of the argument.
//! 3. A pattern that binds a name hides the argument or function of this name to the end of its block. In some places
//!    it hides less, which costs a missing warning.
//! 4. Spawned calls do not count, because the caller does not wait for them.

mod scope;
#[cfg(test)]
mod tests;
mod tokens;

use self::scope::{Object, Scope};
use self::tokens::{called, has, is_punct, is_word, split_at_commas, text, without_copying, without_reference};
use crate::analyze::bindings::{self, Binding};
use crate::analyze::form::Form;
use crate::analyze::item::{Function, with_contents};
use crate::analyze::key::{Access, Key, Root};
use crate::analyze::mentions::Mentions;
use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{FnArg, GenericArgument, Member, Pat, PatType, PathArguments, Type, Visibility};

/// Call that waits for its own caller.
pub(super) struct Found {
    /// Span of the name in the call.
    pub(super) span: Span,
    /// Type that must be `Self`, if only the compiler can decide it.
    pub(super) only_if: Option<TokenStream>,
}

/// Finds a recursive call that passes everything in the key unchanged.
pub(super) fn find(
    function: &Function,
    form: &Form,
    bindings: &[Binding],
    key: &Key,
    in_body: &Mentions,
) -> Option<Found> {
    let name = function.signature.ident.to_string();
    // A named expression may have another value each time.
    if !key.named.is_empty() || !in_body.contains_call(&name) {
        return None;
    }
    let body = match form {
        Form::Desugared(place) => &place.group,
        Form::Async | Form::Block(_) | Form::LastBlock(_) | Form::Future(_) => &function.body,
    };
    let calls = Calls::new(function, name, bindings, key, in_body)?;
    calls.find(body.stream(), &mut Scope::new(objects(function, bindings)))
}

/// Returns the receiver, and the arguments that may have its type.
fn objects(function: &Function, bindings: &[Binding]) -> Vec<(String, Object)> {
    let receiver = bindings.iter().find(|binding| binding.name == "self");
    let receiver = receiver.map(|binding| (binding.ident.to_string(), Object::Receiver));
    let others = function.signature.inputs.iter().filter_map(typed).filter_map(|argument| {
        let Pat::Ident(pattern) = &*argument.pat else { return None };
        let object = match pointee(&argument.ty) {
            Type::Path(ty) if ty.path.is_ident("Self") => Object::Other,
            ty @ Type::Path(_) if can_be_a_receiver_in_a_body(&ty.to_token_stream()) => {
                Object::Of(without_lifetimes(ty.to_token_stream()))
            }
            _ => Object::Unknown,
        };
        Some((pattern.ident.to_string(), object))
    });
    receiver.into_iter().chain(others).collect()
}

/// Returns `true` if a type of the signature can be written in a body, where no part may be open.
fn can_be_a_receiver_in_a_body(ty: &TokenStream) -> bool {
    let is_open = |word: &Ident| word == "impl" || word == "for" || word == "_";
    !has(ty, &|rest| matches!(rest.first(), Some(TokenTree::Ident(word)) if is_open(word)))
}

/// Search for recursive calls.
struct Calls {
    name: String,
    forms: Forms,
    /// `true` if the key depends on the object.
    is_of_the_object: bool,
    /// How each argument in the key must be passed.
    arguments: Vec<Option<String>>,
}

/// Forms of a recursive call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Forms {
    /// `f(..)`, and `Self::f(..)`
    Free,
    /// `Self::f(..)`
    Associated,
    /// `self.f(..)`, and `Self::f(self, ..)`
    Method,
    /// `self.f(..)`. A method without a visibility may belong to a trait. There, `Self::f(self)` calls the inherent
    /// method of the same name.
    MethodOfTrait,
}

impl Forms {
    fn new(function: &Function, has_receiver: bool, name: &str) -> Self {
        match has_receiver {
            true if matches!(function.visibility, Visibility::Inherited) => Self::MethodOfTrait,
            true => Self::Method,
            false if is_in_an_impl(function) || is_declared(&function.body, name) => Self::Associated,
            false => Self::Free,
        }
    }

    const fn have_receiver(self) -> bool {
        matches!(self, Self::Method | Self::MethodOfTrait)
    }
}

impl Calls {
    /// Prepares the search. Returns `None` if a value in the key may change while the body runs.
    fn new(function: &Function, name: String, bindings: &[Binding], key: &Key, in_body: &Mentions) -> Option<Self> {
        let mut in_key = Mentions::default();
        key.add_mentions(&mut in_key);
        let receiver = bindings.iter().find(|binding| binding.name == "self").map(|binding| binding.ident.to_string());
        let arguments: Vec<&PatType> = function.signature.inputs.iter().filter_map(typed).collect();
        let is_in_key = |argument: &PatType| {
            bindings::from_argument(argument).iter().any(|binding| in_key.contains_variable(&binding.name))
        };
        let is_changed = |argument: &PatType| {
            let is_mutable = matches!(&*argument.pat, Pat::Ident(pattern) if pattern.mutability.is_some());
            is_mutable
                || bindings::from_argument(argument).iter().any(|binding| in_body.contains_assignment(&binding.name))
        };
        if arguments.iter().any(|argument| is_in_key(argument) && is_changed(argument))
            || has_changed_field(key, in_body)
        {
            return None;
        }
        Some(Self {
            forms: Forms::new(function, receiver.is_some(), &name),
            is_of_the_object: receiver.as_ref().is_some_and(|receiver| {
                key.parts().any(|part| matches!(&part.root, Root::Argument(argument) if argument == receiver))
            }),
            arguments: arguments.iter().map(|argument| is_in_key(argument).then(|| text(&argument.pat))).collect(),
            name,
        })
    }

    /// Finds the first recursive call.
    fn find(&self, tokens: TokenStream, scope: &mut Scope) -> Option<Found> {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            scope.bind(&tokens, at);
            let TokenTree::Group(group) = token else { continue };
            let (before, called) = called(tokens.get(..at).unwrap_or_default());
            if called.is_some_and(|called| called.to_string().starts_with("spawn")) {
                continue;
            }
            if let Some(called) = called.filter(|called| **called == self.name)
                && group.delimiter() == Delimiter::Parenthesis
                && let Some(object) = self.called_on(before, group.stream(), scope)
            {
                let only_if = if let Object::Of(ty) = object { Some(ty) } else { None };
                return Some(Found { span: called.span(), only_if });
            }
            if let Some(found) = self.find(group.stream(), &mut scope.clone()) {
                return Some(found);
            }
        }
        None
    }

    /// Returns the object of a recursive call. `before` are the tokens before the name, `given` those in the
    /// parentheses.
    fn called_on(&self, before: &[TokenTree], given: TokenStream, scope: &Scope) -> Option<Object> {
        let given = split_at_commas(given);
        let (object, given) = match (before, given.as_slice()) {
            ([.., base, a, b], given) if is_punct(a, ':') && is_punct(b, ':') => match given {
                _ if !is_word(base, "Self") => return None,
                [_, ..] if self.forms == Forms::MethodOfTrait => return None,
                [receiver, given @ ..] if self.forms == Forms::Method => (scope.object(receiver), given),
                given => (Object::Receiver, given),
            },
            ([receiver @ .., dot], given) if is_punct(dot, '.') && self.forms.have_receiver() => {
                (scope.object(receiver), given)
            }
            ([.., word], _) if is_word(word, "fn") || is_punct(word, ':') || is_punct(word, '.') => return None,
            (_, given) if self.forms == Forms::Free && !scope.hides(&self.name) => (Object::Receiver, given),
            _ => return None,
        };
        let is_locked_too = match object {
            Object::Receiver => true,
            Object::Other | Object::Of(_) => !self.is_of_the_object,
            Object::Unknown => false,
        };
        (is_locked_too && self.passes_key_unchanged(given, scope)).then_some(object)
    }

    /// Returns `true` if every argument in the key is passed unchanged.
    fn passes_key_unchanged(&self, given: &[Vec<TokenTree>], scope: &Scope) -> bool {
        given.len() == self.arguments.len()
            && self.arguments.iter().zip(given).all(|(argument, given)| {
                let Some(argument) = argument else { return true };
                let given = text(without_copying(without_reference(given)).iter().cloned().collect::<TokenStream>());
                *argument == given && !scope.hides_any(argument)
            })
    }
}

fn typed(argument: &FnArg) -> Option<&PatType> {
    match argument {
        FnArg::Typed(argument) => Some(argument),
        FnArg::Receiver(_) => None,
    }
}

/// Returns `true` if the body assigns to a field that is in the key.
fn has_changed_field(key: &Key, in_body: &Mentions) -> bool {
    let mut steps = key.parts().flat_map(|part| &part.accesses);
    steps.any(|access| matches!(access, Access::Field(Member::Named(field)) if in_body.contains_assignment(&field.to_string())))
}

/// Returns the type behind references and pointers.
fn pointee(ty: &Type) -> &Type {
    match ty {
        Type::Group(ty) => pointee(&ty.elem),
        Type::Paren(ty) => pointee(&ty.elem),
        Type::Reference(ty) => pointee(&ty.elem),
        Type::Path(path) => {
            let Some(last) = path.path.segments.last() else { return ty };
            let PathArguments::AngleBracketed(arguments) = &last.arguments else { return ty };
            match arguments.args.first() {
                Some(GenericArgument::Type(inner)) if ["Arc", "Box", "Rc"].iter().any(|name| last.ident == name) => {
                    pointee(inner)
                }
                _ => ty,
            }
        }
        ty => ty,
    }
}

/// Replaces each lifetime by `'_`.
fn without_lifetimes(tokens: TokenStream) -> TokenStream {
    let mut is_lifetime = false;
    let tokens = tokens.into_iter().map(|token| {
        let is_after_quote = std::mem::replace(&mut is_lifetime, is_punct(&token, '\''));
        match token {
            TokenTree::Ident(name) if is_after_quote => TokenTree::Ident(Ident::new("_", name.span())),
            TokenTree::Group(group) => TokenTree::Group(with_contents(&group, without_lifetimes(group.stream()))),
            token => token,
        }
    });
    tokens.collect()
}

/// Returns `true` if the function contains `Self`. Such a function cannot be called by its name alone.
fn is_in_an_impl(function: &Function) -> bool {
    has(&function.head, &|tokens| matches!(tokens, [word, ..] if is_word(word, "Self")))
        || has(&function.body.stream(), &|tokens| matches!(tokens, [word, ..] if is_word(word, "Self")))
}

/// Returns `true` if a function of this name is declared or imported inside the body.
fn is_declared(body: &Group, name: &str) -> bool {
    has(&body.stream(), &|tokens| match tokens {
        [word, other, ..] if is_word(word, "fn") || is_word(word, "as") => is_word(other, name),
        [word, rest @ ..] if is_word(word, "use") => {
            let end = rest.iter().position(|token| is_punct(token, ';')).unwrap_or(rest.len());
            let imported = rest.iter().take(end).cloned().collect::<TokenStream>();
            has(&imported, &|tokens| matches!(tokens, [word, ..] if is_word(word, name)))
        }
        _ => false,
    })
}
