//! Recognizes the code that `#[async_trait]` generates from a function, if that attribute expands first:
//!
//! ```text
//! Box::pin(async move {
//!     let __self = self;
//!     let Path(id) = __arg1;
//!     let __ret: Ret = { the body };
//!     __ret
//! })
//! ```
//!
//! 1. The function has the lifetime `'async_trait`, which is not written in ordinary code.
//! 2. The async block is found as in any function that returns one. The value of the last `let` in it is a block, which
//!    contains the body.
//! 3. The complete `let` statements before it bind the arguments again, under the names that the body uses, and `self`
//!    under another name. These bindings replace the arguments of the same names.
//! 4. Arguments that were moved into such a pattern, such as `__arg1`, are removed: a template cannot name them.

use super::bindings::{self, Binding};
use super::future::{self, Place};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::parse::Parser;
use syn::{Block, Expr, GenericParam, Local, Signature, Stmt};

/// Body inside the desugared function, and the variables that it sees.
pub(crate) struct Desugared {
    pub(crate) place: Place,
    pub(crate) bindings: Vec<Binding>,
}

/// Finds the body of a function that went through `#[async_trait]`.
pub(crate) fn read(signature: &Signature, body: &Group) -> Option<Desugared> {
    let desugared = signature.generics.params.iter().any(
        |parameter| matches!(parameter, GenericParam::Lifetime(parameter) if parameter.lifetime.ident == "async_trait"),
    );
    if !desugared {
        return None;
    }
    let block = future::async_block(body)?;
    let tokens: Vec<TokenTree> = block.group.stream().into_iter().collect();
    let at = last_block_in_let(&tokens)?;
    let locals = locals(tokens.iter().take(at).cloned().collect());
    let bindings = bindings(signature, &locals);
    Some(Desugared { place: Place::new(Some(block), tokens, at)?, bindings })
}

/// Finds the block of `let __ret: Ret = { .. };` or `let _: () = { .. };`, which only `__ret` follows.
fn last_block_in_let(tokens: &[TokenTree]) -> Option<usize> {
    let start = tokens.iter().rposition(|token| is_word(token, "let"))?;
    let name = tokens.get(start + 1)?;
    let at = tokens.iter().rposition(|token| is_group(token, Delimiter::Brace))?;
    let equals = tokens.get(at.checked_sub(1)?)?;
    let found = at > start && (is_word(name, "__ret") || is_word(name, "_")) && is_punct(equals, '=');
    found.then_some(at)
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == word)
}

fn is_punct(token: &TokenTree, c: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == c)
}

fn is_group(token: &TokenTree, delimiter: Delimiter) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == delimiter)
}

/// Parses the complete `let` statements in `tokens`. The last `let` is incomplete.
fn locals(tokens: TokenStream) -> Vec<Local> {
    let mut tokens: Vec<TokenTree> = tokens.into_iter().collect();
    tokens.truncate(tokens.iter().rposition(|token| is_word(token, "let")).unwrap_or(0));
    let statements = Block::parse_within.parse2(tokens.into_iter().collect()).unwrap_or_default();
    let locals = statements.into_iter().filter_map(|statement| match statement {
        Stmt::Local(local) => Some(local),
        _ => None,
    });
    locals.collect()
}

/// Collects the variables that the body sees: the arguments, and what the `let` statements bind instead of them.
fn bindings(signature: &Signature, locals: &[Local]) -> Vec<Binding> {
    let mut bindings = bindings::from_arguments(signature);
    for local in locals {
        let is_receiver = local.init.as_ref().is_some_and(|init| is_self(&init.expr));
        for mut binding in bindings::from_local(local) {
            if is_receiver {
                binding.name = "self".into();
            }
            bindings.retain(|earlier| earlier.name != binding.name);
            bindings.push(binding);
        }
    }
    bindings.retain(|binding| !is_placeholder(binding, locals));
    bindings
}

fn is_self(expression: &Expr) -> bool {
    matches!(expression, Expr::Path(path) if path.path.is_ident("self"))
}

/// Returns `true` for `__arg1`, which was moved into its pattern.
fn is_placeholder(binding: &Binding, locals: &[Local]) -> bool {
    let bound = locals.iter().flat_map(bindings::from_local).any(|local| local.ident == binding.ident);
    binding.name.starts_with("__arg") && !bound
}
