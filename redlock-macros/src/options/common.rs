//! What several options read in one way, and say of what they cannot read.

use crate::errors;
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Expr, Ident, LitStr};

/// A mistake at all tokens of `value`.
pub(super) fn refuse<T>(value: impl ToTokens, message: impl std::fmt::Display) -> syn::Result<T> {
    Err(syn::Error::new_spanned(value, message))
}

/// An expression that came through a `macro_rules!` variable stands in an invisible group.
pub(super) fn ungrouped(value: Expr) -> Expr {
    match value {
        Expr::Group(group) => ungrouped(*group.expr),
        other => other,
    }
}

/// Reads an expression. A parser would say of what is none what it expects, and not what to write.
pub(super) fn expression(input: ParseStream<'_>, example: &str) -> syn::Result<Expr> {
    let start = input.span();
    input.parse().map_err(|_| syn::Error::new(start, format!("this is not an expression: write `{example}`")))
}

/// The word that text in quotes stands for.
pub(super) fn unquoted<'a>(
    input: ParseStream<'_>,
    words: impl IntoIterator<Item = &'a str>,
) -> Option<(LitStr, &'a str)> {
    let text: LitStr = input.fork().parse().ok()?;
    let word = errors::nearest(&text.value(), words)?;
    Some((text, word))
}

/// What to say of a value in quotes: the same without them where that is the way to a value, and `example` where it is not.
pub(super) fn refuse_text<T>(option: &str, text: &LitStr, example: &str) -> syn::Result<T> {
    let value = text.value();
    if is_way(&value) {
        has_quotes(option, text, &value)
    } else {
        refuse(text, format!("this is text: write `{example}`"))
    }
}

/// Returns `true` if text is the way to a value, as in `self.locks`, `LEASE` or `config::locks()`. The compiler's own lexer is not
/// asked, because it reports by itself what it does not like.
pub(super) fn is_way(text: &str) -> bool {
    let text = text.trim_start_matches('&').replace("::", ".");
    let is_name = |name: &str| {
        let name = name.strip_suffix("()").unwrap_or(name);
        name.starts_with(|c: char| c == '_' || c.is_alphabetic())
            && name.chars().all(|c| c == '_' || c.is_alphanumeric())
    };
    text.split('.').all(is_name)
}

/// What to say of a word in quotes.
pub(super) fn has_quotes<T>(option: &str, text: &LitStr, word: &str) -> syn::Result<T> {
    refuse(text, format!("`{}` is text: write `{option} = {word}`", text.token()))
}

/// Reads the value of an option that is one of a few words, and gives what the word stands for.
pub(super) fn word<T: Copy>(input: ParseStream<'_>, option: &str, words: &[(&str, T)]) -> syn::Result<T> {
    let names = || words.iter().map(|(word, _)| *word);
    if let Some((text, word)) = unquoted(input, names()) {
        return has_quotes(option, &text, word);
    }
    let Ok(found) = input.call(Ident::parse_any) else {
        return Err(input.error(format!("`{option}` is one of {}", errors::list(names()))));
    };
    let text = found.unraw().to_string();
    if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
        return Ok(*value);
    }
    match errors::nearest(&text, names()) {
        Some(meant) => refuse(found, format!("unknown word `{text}`: did you mean `{option} = {meant}`?")),
        None => refuse(found, format!("unknown word `{text}`: `{option}` is one of {}", errors::list(names()))),
    }
}
