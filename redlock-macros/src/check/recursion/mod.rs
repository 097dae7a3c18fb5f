//! Calls of the function by itself under the key that it holds, which wait for their own caller.
//!
//! 1. The body is read once, in its order. `f(..)` calls a free function, `Self::f(..)` and `self.f(..)` a method, and
//!    so does `other.f(..)` where `other` is a `Self` by its declaration or by what it was made of. Whether the type of
//!    an argument is `Self` under its own name is left to the compiler.
//! 2. What stands in the key must be handed on as it came: under the name of the argument, which nothing has changed.
//! 3. A pattern that binds a name hides the argument, or the function, of that name from there to the end of its block.
//!    That is more than it does in some places, and costs a warning.
//! 4. Nobody waits for what is spawned.

mod scope;
#[cfg(test)]
mod tests;
mod tokens;

use self::scope::{Object, Scope};
use self::tokens::{called, has, is_punct, is_word, split_at_commas, text, without_copying, without_reference};
use crate::analyze::bindings::{self, Binding};
use crate::analyze::form::Form;
use crate::analyze::item::{Function, with_contents};
use crate::analyze::key::{Key, Root, Way};
use crate::analyze::mentions::Mentions;
use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{FnArg, GenericArgument, Member, Pat, PatType, PathArguments, Type, Visibility};

/// A call that waits for its own caller.
pub(super) struct Found {
    /// The name in the call.
    pub(super) span: Span,
    /// The type that must be `Self`, where only the compiler knows.
    pub(super) only_if: Option<TokenStream>,
}

/// Finds a call of the function by itself with everything that stands in the key unchanged.
pub(super) fn find(
    function: &Function,
    form: &Form,
    bindings: &[Binding],
    key: &Key,
    in_body: &Mentions,
) -> Option<Found> {
    let name = function.signature.ident.to_string();
    // What an expression makes of the arguments may be different each time.
    if !key.named.is_empty() || !in_body.have_called(&name) {
        return None;
    }
    let body = match form {
        Form::Desugared(place) => &place.group,
        Form::Async | Form::Block(_) | Form::LastBlock(_) | Form::Future(_) => &function.body,
    };
    let calls = Calls::of(function, name, bindings, key, in_body)?;
    calls.find(body.stream(), &mut Scope::new(objects(function, bindings)))
}

/// The receiver, and the arguments that may be of its type.
fn objects(function: &Function, bindings: &[Binding]) -> Vec<(String, Object)> {
    let receiver = bindings.iter().find(|binding| binding.name == "self");
    let receiver = receiver.map(|binding| (binding.ident.to_string(), Object::Receiver));
    let others = function.signature.inputs.iter().filter_map(typed).filter_map(|argument| {
        let Pat::Ident(pattern) = &*argument.pat else { return None };
        let object = match pointee(&argument.ty) {
            Type::Path(ty) if ty.path.is_ident("Self") => Object::Other,
            ty @ Type::Path(_) if can_stand_in_a_body(&ty.to_token_stream()) => {
                Object::Of(without_lifetimes(ty.to_token_stream()))
            }
            _ => Object::Unknown,
        };
        Some((pattern.ident.to_string(), object))
    });
    receiver.into_iter().chain(others).collect()
}

/// Whether a type of the signature can be written where no type may be left open.
fn can_stand_in_a_body(ty: &TokenStream) -> bool {
    let is_open = |word: &Ident| word == "impl" || word == "for" || word == "_";
    !has(ty, &|rest| matches!(rest.first(), Some(TokenTree::Ident(word)) if is_open(word)))
}

/// What to look for.
struct Calls {
    name: String,
    forms: Forms,
    /// The key is another one for another object.
    is_of_the_object: bool,
    /// How each argument must be handed on, if it stands in the key.
    arguments: Vec<Option<String>>,
}

/// How the function can be called by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Forms {
    /// `f(..)`, and `Self::f(..)`
    Free,
    /// `Self::f(..)`
    Associated,
    /// `self.f(..)`, and `Self::f(self, ..)`
    Method,
    /// `self.f(..)`: a method without a visibility may be one of a trait. There, `Self::f(self)` is how one calls the
    /// method of the type itself that has the same name.
    MethodOfTrait,
}

impl Forms {
    fn of(function: &Function, has_receiver: bool, name: &str) -> Self {
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
    /// `None` if something in the key may change while the body runs.
    fn of(function: &Function, name: String, bindings: &[Binding], key: &Key, in_body: &Mentions) -> Option<Self> {
        let mut in_key = Mentions::default();
        key.add_mentions(&mut in_key);
        let receiver = bindings.iter().find(|binding| binding.name == "self").map(|binding| binding.ident.to_string());
        let arguments: Vec<&PatType> = function.signature.inputs.iter().filter_map(typed).collect();
        let is_in_key = |argument: &PatType| {
            bindings::of_argument(argument).iter().any(|binding| in_key.have_variable(&binding.name))
        };
        let is_changed = |argument: &PatType| {
            let is_mutable = matches!(&*argument.pat, Pat::Ident(pattern) if pattern.mutability.is_some());
            is_mutable || bindings::of_argument(argument).iter().any(|binding| in_body.have_assigned(&binding.name))
        };
        if arguments.iter().any(|argument| is_in_key(argument) && is_changed(argument))
            || has_changed_field(key, in_body)
        {
            return None;
        }
        Some(Self {
            forms: Forms::of(function, receiver.is_some(), &name),
            is_of_the_object: receiver.as_ref().is_some_and(|receiver| {
                key.parts().any(|part| matches!(&part.root, Root::Argument(argument) if argument == receiver))
            }),
            arguments: arguments.iter().map(|argument| is_in_key(argument).then(|| text(&argument.pat))).collect(),
            name,
        })
    }

    /// The place of the name in the first call.
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

    /// What a call that waits for this one is made on: `before` stands before the name, and `given` in the parentheses.
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
        (is_locked_too && self.are_same(given, scope)).then_some(object)
    }

    /// Whether every argument that stands in the key is handed on as it came.
    fn are_same(&self, given: &[Vec<TokenTree>], scope: &Scope) -> bool {
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

/// Whether anything is assigned to a field of which the key is made.
fn has_changed_field(key: &Key, in_body: &Mentions) -> bool {
    let mut steps = key.parts().flat_map(|part| &part.way);
    steps.any(|way| matches!(way, Way::Field(Member::Named(field)) if in_body.have_assigned(&field.to_string())))
}

/// The type behind references and pointers.
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

/// With `'_` in the place of each lifetime.
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

/// Whether the function says `Self`, and so is none that could be called by its name alone.
fn is_in_an_impl(function: &Function) -> bool {
    has(&function.head, &|tokens| matches!(tokens, [word, ..] if is_word(word, "Self")))
        || has(&function.body.stream(), &|tokens| matches!(tokens, [word, ..] if is_word(word, "Self")))
}

/// Whether a function of this name is declared or imported inside the body.
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
