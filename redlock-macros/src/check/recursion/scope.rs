//! Meaning of names at one position in a body.

use super::tokens::{begins_a_closure, is_arrow, is_punct, is_word, object, without_reference};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Object of a method call.
#[derive(Clone)]
pub(super) enum Object {
    Receiver,
    /// Another value of the same type.
    Other,
    /// Value of a type that may be the same under another name.
    Of(TokenStream),
    Unknown,
}

/// Meaning of names at one position in the body.
#[derive(Clone)]
pub(super) struct Scope {
    hidden: Vec<String>,
    objects: Vec<(String, Object)>,
}

impl Scope {
    /// Creates the scope at the beginning of the body.
    pub(super) const fn new(objects: Vec<(String, Object)>) -> Self {
        Self { hidden: Vec::new(), objects }
    }

    /// Returns `true` if the name has another meaning here.
    pub(super) fn hides(&self, name: &str) -> bool {
        self.hidden.iter().any(|hidden| hidden == name)
    }

    /// Returns `true` if any name in a pattern is hidden.
    pub(super) fn hides_any(&self, pattern: &str) -> bool {
        pattern.split(|c: char| c != '_' && !c.is_alphanumeric()).any(|name| self.hides(name))
    }

    /// Returns the object of an expression, if the expression is only a variable.
    pub(super) fn object(&self, expression: &[TokenTree]) -> Object {
        let Some(name) = object(without_reference(expression)) else { return Object::Unknown };
        let known = self.objects.iter().rev().find(|(other, _)| *other == name);
        known.map_or(Object::Unknown, |(_, object)| object.clone())
    }

    /// Adds the bindings that begin with the token at `at`.
    pub(super) fn bind(&mut self, tokens: &[TokenTree], at: usize) {
        let (Some(token), after) = (tokens.get(at), tokens.get(at + 1..).unwrap_or_default()) else { return };
        let until =
            |end: &dyn Fn(&TokenTree) -> bool| after.get(..after.iter().position(end).unwrap_or(0)).unwrap_or_default();
        if is_word(token, "let") {
            let pattern = until(&|token| is_punct(token, '=') || is_punct(token, ';'));
            let made = self.object_of_initializer(after.get(pattern.len() + 1..).unwrap_or_default());
            self.hide(pattern);
            let name = pattern.iter().find(|token| !is_word(token, "mut")).map(ToString::to_string);
            self.objects.extend(name.map(|name| (name, made)));
        } else if is_word(token, "for") {
            self.hide(until(&|token| is_word(token, "in")));
        } else if is_punct(token, '|') && begins_a_closure(tokens.get(..at).unwrap_or_default()) {
            self.hide(until(&|token| is_punct(token, '|')));
        } else if is_word(token, "fn") {
            self.hide(until(
                &|token| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace),
            ));
        } else if is_arrow(after) {
            let before = tokens.get(..=at).unwrap_or_default();
            let is_end = |token: &TokenTree| {
                is_punct(token, ',')
                    || matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
            };
            let start = before.iter().rposition(is_end).map_or(0, |at| at + 1);
            // Braces directly before the arrow belong to a pattern.
            self.hide(before.get(start.min(at)..).unwrap_or_default());
        }
    }

    fn hide(&mut self, pattern: &[TokenTree]) {
        for token in pattern {
            match token {
                TokenTree::Ident(name) => {
                    let name = name.to_string();
                    self.objects.retain(|(other, _)| *other != name);
                    self.hidden.push(name);
                }
                TokenTree::Group(group) => self.hide(&group.stream().into_iter().collect::<Vec<_>>()),
                _ => {}
            }
        }
    }

    /// Returns the object that a `let` is initialized with: `self`, `Arc::clone(&self)`, `Self::new()`.
    fn object_of_initializer(&self, after: &[TokenTree]) -> Object {
        let end = after.iter().position(|token| is_punct(token, ';')).unwrap_or(0);
        match after.get(..end).unwrap_or_default() {
            [made, TokenTree::Group(_)] if is_word(made, "Self") => Object::Other,
            [made, _, _, by, TokenTree::Group(_)]
                if is_word(made, "Self") && (is_word(by, "new") || is_word(by, "default")) =>
            {
                Object::Other
            }
            [_, _, _, clone, TokenTree::Group(cloned)] if is_word(clone, "clone") && !cloned.stream().is_empty() => {
                self.object(&cloned.stream().into_iter().collect::<Vec<_>>())
            }
            value => self.object(value),
        }
    }
}
