//! Helpers for unparsed tokens.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;

/// Returns `true` if `found` is true at some position in the tokens, for the rest of the same group.
pub(super) fn has(tokens: &TokenStream, found: &dyn Fn(&[TokenTree]) -> bool) -> bool {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    tokens.iter().enumerate().any(|(at, token)| {
        let is_inside = matches!(token, TokenTree::Group(group) if has(&group.stream(), found));
        is_inside || found(tokens.get(at..).unwrap_or_default())
    })
}

/// Splits the called name from the end of `tokens`, which precede parentheses.
pub(super) fn called(tokens: &[TokenTree]) -> (&[TokenTree], Option<&Ident>) {
    match tokens {
        [before @ .., TokenTree::Ident(name)] => (before, Some(name)),
        before => (before, None),
    }
}

/// Returns the variable of a method call, if it is only a variable: `self`, `other`, `self.clone()`.
pub(super) fn object(tokens: &[TokenTree]) -> Option<String> {
    let [before @ .., TokenTree::Ident(name)] = without_copying(tokens) else { return None };
    let is_part = before.last().is_some_and(|token| is_punct(token, '.') || is_punct(token, ':'));
    (!is_part).then(|| name.to_string())
}

/// Removes `&` and `&mut` from the front.
pub(super) fn without_reference(tokens: &[TokenTree]) -> &[TokenTree] {
    match tokens {
        [first, rest @ ..] if is_punct(first, '&') || is_punct(first, '*') || is_word(first, "mut") => {
            without_reference(rest)
        }
        tokens => tokens,
    }
}

/// Removes `.clone()` and similar calls from the end.
pub(super) fn without_copying(tokens: &[TokenTree]) -> &[TokenTree] {
    const COPYING: &[&str] = &["clone", "to_owned", "to_string", "as_str", "as_ref", "into"];
    match tokens {
        [rest @ .., dot, method, TokenTree::Group(group)]
            if is_punct(dot, '.')
                && group.stream().is_empty()
                && COPYING.iter().any(|copying| is_word(method, copying)) =>
        {
            without_copying(rest)
        }
        tokens => tokens,
    }
}

/// Returns `true` if a `|` after `before` begins a closure and is not an operator.
pub(super) fn begins_a_closure(before: &[TokenTree]) -> bool {
    match before.last() {
        None => true,
        Some(TokenTree::Ident(word)) => ["async", "else", "in", "move", "return"].iter().any(|before| word == before),
        Some(TokenTree::Punct(punct)) => punct.as_char() != '|' && punct.as_char() != '?',
        Some(TokenTree::Group(_) | TokenTree::Literal(_)) => false,
    }
}

/// Returns `true` for `=>`.
pub(super) fn is_arrow(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [first, second, ..] if is_punct(first, '=') && is_punct(second, '>'))
}

pub(super) fn is_punct(token: &TokenTree, c: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == c)
}

pub(super) fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == word)
}

/// Returns the tokens as text without spaces.
pub(super) fn text(tokens: impl ToTokens) -> String {
    tokens.to_token_stream().to_string().replace(' ', "")
}

pub(super) fn split_at_commas(tokens: TokenStream) -> Vec<Vec<TokenTree>> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is_comma = |token: &TokenTree| is_punct(token, ',');
    tokens.split(is_comma).filter(|part| !part.is_empty()).map(<[TokenTree]>::to_vec).collect()
}
