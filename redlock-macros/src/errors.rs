//! Collects all mistakes, and finds the name that was probably meant.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use std::fmt::Display;

/// Mistakes found so far. Checking continues after each one.
#[derive(Default)]
pub(crate) struct Errors {
    found: Option<syn::Error>,
}

impl Errors {
    pub(crate) fn add(&mut self, error: syn::Error) {
        match &mut self.found {
            Some(errors) => errors.combine(error),
            None => self.found = Some(error),
        }
    }

    /// Returns `true` if no mistake was found so far.
    pub(crate) const fn is_empty(&self) -> bool {
        self.found.is_none()
    }

    /// Adds a mistake at one token.
    pub(crate) fn at(&mut self, span: Span, message: impl Display) {
        self.add(syn::Error::new(span, message));
    }

    /// Adds a mistake that spans several tokens.
    pub(crate) fn on(&mut self, tokens: impl ToTokens, message: impl Display) {
        self.add(syn::Error::new_spanned(tokens, message));
    }

    /// Returns the value, or adds the mistake and returns `None`.
    pub(crate) fn ok<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    #[cfg(test)]
    pub(crate) fn messages(self) -> Vec<String> {
        self.found.into_iter().flatten().map(|error| error.to_string()).collect()
    }

    /// Returns one `compile_error!` for each mistake, or `None` without a mistake.
    pub(crate) fn into_compile_errors(self) -> Option<TokenStream> {
        self.found.map(syn::Error::into_compile_error)
    }
}

/// Returns the name that is closest to `word`, if it is close enough.
pub(crate) fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let tolerated = word.chars().count().max(3) / 3;
    names
        .into_iter()
        .map(|name| (distance(word, name), name))
        .filter(|(distance, _)| *distance <= tolerated)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Returns `true` if `word` is `name` with one letter too many, one too few, or two that are swapped. A replaced letter
/// may make another word: `ship` is not `skip`.
pub(crate) fn is_slip(word: &str, name: &str) -> bool {
    let sorted = |text: &str| {
        let mut chars: Vec<char> = text.chars().collect();
        chars.sort_unstable();
        chars
    };
    distance(word, name) == 1 && (word.chars().count() != name.chars().count() || sorted(word) == sorted(name))
}

/// Lists names in a message: "`a`, `b` and `c`".
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    joined(names, "and")
}

/// Lists alternatives in a message: "`a`, `b` or `c`".
pub(crate) fn any_of<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    joined(names, "or")
}

/// Quotes the names, and puts `conjunction` before the last one.
fn joined<'a>(names: impl IntoIterator<Item = &'a str>, conjunction: &str) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match quoted.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} {conjunction} {last}", first.join(", ")),
        all => all.concat(),
    }
}

/// Returns the number of characters to insert, remove, replace or swap with their neighbour. Ignores case.
///
/// Source: the optimal string alignment distance, with three rows of the table kept.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.to_lowercase().chars().collect();
    let mut before = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    let mut last = None;
    for (row, c) in left.to_lowercase().chars().enumerate() {
        let mut current = vec![row + 1];
        for (column, &d) in right.iter().enumerate() {
            let at = |cells: &[usize], column: usize| cells.get(column).copied().unwrap_or(usize::MAX / 2);
            let mut cell = (at(&above, column) + usize::from(c != d))
                .min(at(&above, column + 1) + 1)
                .min(at(&current, column) + 1);
            let previous = column.checked_sub(1).and_then(|column| Some((column, *right.get(column)?)));
            if let Some((column, e)) = previous
                && last == Some(d)
                && e == c
            {
                cell = cell.min(at(&before, column) + 1);
            }
            current.push(cell);
        }
        before = std::mem::replace(&mut above, current);
        last = Some(c);
    }
    above.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{any_of, distance, is_slip, list, nearest};

    #[test]
    fn distances() {
        let table = [
            ("", "", 0),
            ("ttl", "ttl", 0),
            ("tll", "ttl", 1),
            ("TTL", "ttl", 0),
            ("tlt", "ttl", 1),
            ("wiat", "wait", 1),
            ("", "key", 3),
            ("permit", "permits", 1),
            ("kitten", "sitting", 3),
        ];
        for (left, right, expected) in table {
            assert_eq!(distance(left, right), expected, "{left:?} {right:?}");
            assert_eq!(distance(right, left), expected, "{right:?} {left:?}");
        }
    }

    #[test]
    fn only_close_names_are_suggested() {
        let names = ["key", "ttl", "wait", "manager", "on_error"];
        for (word, expected) in [
            ("kee", Some("key")),
            ("tll", Some("ttl")),
            ("manger", Some("manager")),
            ("onerror", Some("on_error")),
            ("colour", None),
            ("x", None),
        ] {
            assert_eq!(nearest(word, names), expected, "{word}");
        }
    }

    #[test]
    fn replaced_letter_is_not_a_typo() {
        for (word, expected) in [("skipp", true), ("skp", true), ("sikp", true), ("ship", false), ("skip", false)] {
            assert_eq!(is_slip(word, "skip"), expected, "{word}");
        }
    }

    #[test]
    fn lists_are_formatted_for_messages() {
        assert_eq!(list([]), "");
        assert_eq!(list(["a"]), "`a`");
        assert_eq!(list(["a", "b", "c"]), "`a`, `b` and `c`");
        assert_eq!(any_of(["a", "b", "c"]), "`a`, `b` or `c`");
    }
}
