//! Functions that return a future: finds their async block, and checks that the function always reaches it.
//!
//! 1. The last tokens of the body are matched: `async {..}` or `async move {..}`, alone, inside `..pin(..)`, or before
//!    `.boxed()`. This block must run under the lock. The code before it runs without the lock.
//! 2. A block in a box is used only if the function cannot be left before it. It may be left by a `return` outside an
//!    async block, or by an unknown macro that may hide a `return`. A `return` in a closure is treated in the same way,
//!    which only costs the shorter expansion.
//! 3. Without such a block, the return type must look like a future. The whole future is then awaited under the lock,
//!    wherever it comes from.

use super::item::with_contents;
use crate::keywords::is_keyword;
use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use syn::{GenericArgument, PathArguments, ReturnType, Type, TypeParamBound};

/// Group inside a function body, with the tokens around it.
pub(crate) struct Place {
    outer: Option<Box<Place>>,
    before: Vec<TokenTree>,
    pub(crate) group: Group,
    after: Vec<TokenTree>,
}

impl Place {
    /// Creates the place of the group at `index`, inside the `outer` place or the body.
    pub(crate) fn new(outer: Option<Self>, mut tokens: Vec<TokenTree>, index: usize) -> Option<Self> {
        let after = tokens.split_off(tokens.len().min(index + 1));
        let TokenTree::Group(group) = tokens.pop()? else { return None };
        Some(Self { outer: outer.map(Box::new), before: tokens, group, after })
    }

    /// Returns the body with `contents` inside the group.
    pub(crate) fn fill(&self, contents: TokenStream) -> TokenStream {
        let mut tokens = self.before.iter().cloned().collect::<TokenStream>();
        tokens.extend([TokenTree::Group(with_contents(&self.group, contents))]);
        tokens.extend(self.after.iter().cloned());
        match &self.outer {
            Some(outer) => outer.fill(tokens),
            None => tokens,
        }
    }

    /// Returns the tokens before the group, in the same and in outer groups.
    pub(crate) fn before(&self) -> TokenStream {
        let outer = self.outer.as_ref().map(|outer| outer.before()).unwrap_or_default();
        outer.into_iter().chain(self.before.iter().cloned()).collect()
    }

    /// Returns how the function returns this async block.
    pub(crate) fn returned(&self) -> Returned {
        if self.outer.is_some() || !self.after.is_empty() { Returned::Boxed } else { Returned::Unnamed }
    }

    /// Returns `true` if the group belongs to `async move`, `false` for `async`.
    pub(crate) fn is_move(&self) -> bool {
        self.before.last().is_some_and(|token| is_word(token, "move"))
    }
}

/// Finds the async block at the end of the body: alone, in `Box::pin(..)`, or before `.boxed()`.
pub(crate) fn async_block(body: &Group) -> Option<Place> {
    let tokens: Vec<TokenTree> = body.stream().into_iter().collect();
    match tokens.as_slice() {
        [.., call, TokenTree::Group(group)] if is_word(call, "pin") && group.delimiter() == Delimiter::Parenthesis => {
            let inside = group.stream().into_iter().collect();
            let at = tokens.len() - 1;
            block_at_end(Some(Place::new(None, tokens, at)?), inside, 0)
        }
        [.., dot, method, TokenTree::Group(_)] if is_dot(dot) && is_boxing(method) => block_at_end(None, tokens, 3),
        _ => block_at_end(None, tokens, 0),
    }
}

/// Finds the async block before the last `after` tokens.
fn block_at_end(outer: Option<Place>, tokens: Vec<TokenTree>, after: usize) -> Option<Place> {
    let end = tokens.len().checked_sub(after)?;
    let is_async = match tokens.get(..end)? {
        [.., first, second, TokenTree::Group(_)] if is_word(second, "move") => is_word(first, "async"),
        [.., first, TokenTree::Group(_)] => is_word(first, "async"),
        _ => false,
    };
    is_async.then(|| Place::new(outer, tokens, end.checked_sub(1)?)).flatten()
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == word)
}

fn is_dot(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == '.')
}

/// Returns `true` for the methods of the crate `futures` that box a future.
fn is_boxing(token: &TokenTree) -> bool {
    is_word(token, "boxed") || is_word(token, "boxed_local")
}

/// Common macros that never return from the surrounding function, and that use only names among their tokens and in the
/// braces of their format strings. If a macro is missing, functions that use it get the longer expansion. If a macro in
/// the list does return, a future could bypass the lock.
const USUAL: &[&str] = &[
    "assert",
    "assert_eq",
    "assert_ne",
    "concat",
    "dbg",
    "debug",
    "debug_assert",
    "debug_assert_eq",
    "env",
    "eprintln",
    "error",
    "event",
    "format",
    "format_args",
    "include_str",
    "info",
    "json",
    "matches",
    "panic",
    "print",
    "println",
    "span",
    "todo",
    "trace",
    "unimplemented",
    "unreachable",
    "vec",
    "warn",
    "write",
    "writeln",
];

/// Returns `true` if the function may be left here: by a `return` outside an async block, or by a macro that may hide
/// one.
pub(crate) fn may_leave(tokens: TokenStream) -> bool {
    leaves(tokens, &|name| !is_usual(name))
}

/// Returns `true` if there is a `return` outside an async block. Ignores what macros may hide.
pub(crate) fn returns(tokens: TokenStream) -> bool {
    leaves(tokens, &|_| false)
}

/// Returns `true` if there is a `return` outside an async block, or a call of a macro that `hides` one.
fn leaves(tokens: TokenStream, hides: &impl Fn(&Ident) -> bool) -> bool {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let before = |at: usize, back: usize| at.checked_sub(back).and_then(|at| tokens.get(at));
    let is = |token: Option<&TokenTree>, word: &str| token.is_some_and(|token| is_word(token, word));
    tokens.iter().enumerate().any(|(at, token)| match token {
        TokenTree::Ident(ident) => ident == "return",
        TokenTree::Group(group) => {
            let is_block = is(before(at, 1), "async") || (is(before(at, 1), "move") && is(before(at, 2), "async"));
            let called = before(at, 1).is_some_and(is_exclamation).then(|| before(at, 2)).flatten();
            let is_hidden = matches!(called, Some(TokenTree::Ident(name)) if is_macro(name) && hides(name));
            is_hidden || (!is_block && leaves(group.stream(), hides))
        }
        _ => false,
    })
}

/// Returns `true` if the word before an exclamation mark names a macro. In `if !(..)` it does not.
pub(super) fn is_macro(name: &Ident) -> bool {
    !is_keyword(&name.to_string())
}

/// Returns `true` if a call of the macro hides no `return` and no names.
pub(super) fn is_usual(name: &Ident) -> bool {
    USUAL.iter().any(|usual| name == usual)
}

fn is_exclamation(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == '!')
}

/// Form in which a function without `async` returns a future.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Returned {
    /// `impl Future`
    Unnamed,
    /// `Pin<Box<dyn Future>>`, or an alias of it.
    Boxed,
}

/// Returns the form of the future, if the return type looks like one.
pub(crate) fn returned(output: &ReturnType) -> Option<Returned> {
    match output {
        ReturnType::Type(_, ty) => returned_type(ty),
        ReturnType::Default => None,
    }
}

/// Returns the form of the future, if the type looks like one.
fn returned_type(ty: &Type) -> Option<Returned> {
    match ty {
        Type::Group(ty) => returned_type(&ty.elem),
        Type::Paren(ty) => returned_type(&ty.elem),
        Type::ImplTrait(ty) => has_future(&ty.bounds).then_some(Returned::Unnamed),
        Type::Path(ty) => {
            let name = ty.path.segments.last()?.ident.to_string();
            let boxed =
                name.ends_with("BoxFuture") || (name == "Pin" && awaited_type(&Type::Path(ty.clone())).is_some());
            boxed.then_some(Returned::Boxed)
        }
        _ => None,
    }
}

/// Returns the output of the returned future, if the type contains it.
pub(crate) fn awaited(output: &ReturnType) -> Option<&Type> {
    match output {
        ReturnType::Type(_, ty) => awaited_type(ty),
        ReturnType::Default => None,
    }
}

/// Returns the output of a future type, if the type contains it.
fn awaited_type(ty: &Type) -> Option<&Type> {
    match ty {
        Type::Group(ty) => awaited_type(&ty.elem),
        Type::Paren(ty) => awaited_type(&ty.elem),
        Type::ImplTrait(ty) => output_of(&ty.bounds),
        Type::TraitObject(ty) => output_of(&ty.bounds),
        Type::Path(ty) => {
            let segment = ty.path.segments.last()?;
            let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
            let last = arguments.args.iter().rev().find_map(|argument| match argument {
                GenericArgument::Type(ty) => Some(ty),
                _ => None,
            })?;
            let is_name_of_boxed = segment.ident.to_string().ends_with("BoxFuture");
            if is_name_of_boxed { Some(last) } else { awaited_type(last) }
        }
        _ => None,
    }
}

type Bounds = syn::punctuated::Punctuated<TypeParamBound, syn::Token![+]>;

/// Returns `true` if `Future` is among the bounds.
fn has_future(bounds: &Bounds) -> bool {
    bounds.iter().any(|bound| match bound {
        TypeParamBound::Trait(bound) => bound.path.segments.last().is_some_and(|segment| segment.ident == "Future"),
        _ => false,
    })
}

/// Returns the `Output` of a `Future` bound.
fn output_of(bounds: &Bounds) -> Option<&Type> {
    bounds.iter().find_map(|bound| {
        let TypeParamBound::Trait(bound) = bound else { return None };
        let segment = bound.path.segments.last().filter(|segment| segment.ident == "Future")?;
        let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
        arguments.args.iter().find_map(|argument| match argument {
            GenericArgument::AssocType(output) if output.ident == "Output" => Some(&output.ty),
            _ => None,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{Returned, async_block, awaited, may_leave, returned, returns};
    use proc_macro2::{Group, TokenStream};
    use quote::ToTokens;

    fn squeezed(tokens: impl ToTokens) -> String {
        tokens.to_token_stream().to_string().replace(' ', "")
    }

    #[test]
    fn trailing_async_block_is_found() {
        let table = [
            ("{ async { 1 } }", Some("async{x}")),
            ("{ let a = 1; async move { a } }", Some("leta=1;asyncmove{x}")),
            ("{ Box::pin(async move { 1 }) }", Some("Box::pin(asyncmove{x})")),
            ("{ std::boxed::Box::pin(async { 1 }) }", Some("std::boxed::Box::pin(async{x})")),
            ("{ async move { 1 }.boxed() }", Some("asyncmove{x}.boxed()")),
            ("{ async { async { 1 } } }", Some("async{x}")),
            ("{ }", None),
            ("{ self.call(async { 1 }) }", None),
            ("{ async { 1 }; }", None),
            ("{ Box::pin(async { 1 }.map(f)) }", None),
            ("{ if a { Box::pin(async {}) } else { Box::pin(async {}) } }", None),
        ];
        for (body, expected) in table {
            let group: Group = syn::parse_str(body).unwrap();
            let filled = async_block(&group).map(|place| squeezed(place.fill("x".parse::<TokenStream>().unwrap())));
            assert_eq!(filled.as_deref(), expected, "{body}");
        }
    }

    #[test]
    fn return_inside_an_async_block_does_not_exit_the_function() {
        let table = [
            ("if a { return b; } async { 1 }", true),
            ("call(return)", true),
            ("async { return 1; }", false),
            ("async move { return 1; }", false),
            ("async { 1 }; { return }", true),
            ("returned(1)", false),
            ("ensure!(a > 1); 1", true),
            ("let a = format!(\"{b}\"); tracing::info!(a); if !(a == b) { 1 }", false),
        ];
        for (tokens, expected) in table {
            assert_eq!(may_leave(tokens.parse().unwrap()), expected, "{tokens}");
            let is_told = expected && !tokens.contains("ensure!");
            assert_eq!(returns(tokens.parse().unwrap()), is_told, "{tokens}");
        }
    }

    #[test]
    fn future_types_are_recognized() {
        let table = [
            ("-> impl Future<Output = Result<u8, E>> + Send + '_", Some(Returned::Unnamed), Some("Result<u8,E>")),
            ("-> impl Send + std::future::Future<Output = u8>", Some(Returned::Unnamed), Some("u8")),
            ("-> Pin<Box<dyn Future<Output = ()> + 'a>>", Some(Returned::Boxed), Some("()")),
            ("-> BoxFuture<'static, Result<u8, E>>", Some(Returned::Boxed), Some("Result<u8,E>")),
            ("-> futures::future::LocalBoxFuture<'_, u8>", Some(Returned::Boxed), Some("u8")),
            ("-> Result<u8, E>", None, None),
            ("-> Pin<Box<u8>>", None, None),
            ("-> impl Iterator<Item = u8>", None, None),
            ("", None, None),
        ];
        for (output, form, ty) in table {
            let output = syn::parse_str(output).unwrap();
            assert_eq!(returned(&output), form, "{}", squeezed(&output));
            assert_eq!(awaited(&output).map(squeezed).as_deref(), ty, "{}", squeezed(&output));
        }
    }
}
