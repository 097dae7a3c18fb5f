//! Shared readers of option values, and their messages.

use crate::errors;
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Expr, Ident, LitStr};

/// Returns an error at all tokens of `value`.
pub(super) fn refuse<T>(value: impl ToTokens, message: impl std::fmt::Display) -> syn::Result<T> {
    Err(syn::Error::new_spanned(value, message))
}

/// Unwraps an expression from a `macro_rules!` variable, which is in an invisible group.
pub(super) fn ungrouped(value: Expr) -> Expr {
    match value {
        Expr::Group(group) => ungrouped(*group.expr),
        other => other,
    }
}

/// Reads an expression. The message of the parser would contain what it expects, and not what to write.
pub(super) fn expression(input: ParseStream<'_>, example: &str) -> syn::Result<Expr> {
    let start = input.span();
    input.parse().map_err(|_| syn::Error::new(start, format!("this is not an expression: write `{example}`")))
}

/// Returns the word that is written in quotes.
pub(super) fn unquoted<'a>(
    input: ParseStream<'_>,
    words: impl IntoIterator<Item = &'a str>,
) -> Option<(LitStr, &'a str)> {
    let text: LitStr = input.fork().parse().ok()?;
    let word = errors::nearest(&text.value(), words)?;
    Some((text, word))
}

/// Returns the error for a value in quotes. It proposes the value without quotes if it is a path to a value, and
/// `example` otherwise.
pub(super) fn refuse_text<T>(option: &str, text: &LitStr, example: &str) -> syn::Result<T> {
    let value = text.value();
    if is_value_path(&value) {
        refuse_quotes(option, text, &value)
    } else {
        refuse(text, format!("`{option}` takes an expression and not text: write `{example}`"))
    }
}

/// Returns `true` if the text is a path to a value, as in `self.locks`, `LEASE` or `config::locks()`. The compiler's
/// own lexer is not used, because it reports errors itself.
pub(super) fn is_value_path(text: &str) -> bool {
    let text = text.trim_start_matches('&').replace("::", ".");
    let is_name = |name: &str| {
        let name = name.strip_suffix("()").unwrap_or(name);
        name.starts_with(|c: char| c == '_' || c.is_alphabetic())
            && name.chars().all(|c| c == '_' || c.is_alphanumeric())
    };
    text.split('.').all(is_name)
}

/// Returns the error for a word in quotes.
pub(super) fn refuse_quotes<T>(option: &str, text: &LitStr, word: &str) -> syn::Result<T> {
    refuse(text, format!("`{}` is text in quotes: write `{option} = {word}`", text.token()))
}

/// Reads an option that is one of a few words, and returns the meaning of the word.
pub(super) fn word<T: Copy>(input: ParseStream<'_>, option: &str, words: &[(&str, T)]) -> syn::Result<T> {
    let names = || words.iter().map(|(word, _)| *word);
    if let Some((text, word)) = unquoted(input, names()) {
        return refuse_quotes(option, &text, word);
    }
    let Ok(found) = input.call(Ident::parse_any) else {
        return Err(input.error(format!("`{option}` must be {}", errors::any_of(names()))));
    };
    let text = found.unraw().to_string();
    if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
        return Ok(*value);
    }
    match errors::nearest(&text, names()) {
        Some(meant) => refuse(found, format!("unknown word `{text}`: did you mean `{option} = {meant}`?")),
        None => refuse(found, format!("unknown word `{text}`: `{option}` must be {}", errors::any_of(names()))),
    }
}
