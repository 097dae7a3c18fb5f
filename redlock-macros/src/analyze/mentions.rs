//! Names that occur in tokens. They are collected in one pass, because reading tokens is most of the cost of the
//! attribute.
//!
//! The tokens are not parsed. A name is therefore a variable unless its neighbours show that it is not. A false
//! variable costs one missing compiler warning. A missed variable would capture too little.
//!
//! 1. Groups are read recursively, including macro calls.
//! 2. A name after a single dot, or before a single colon, is a field. A name before or after `::` is part of a path.
//!    Every other name may be a variable.
//! 3. A name before parentheses is also called. A name before `=`, `+=` and similar operators is also assigned to. So
//!    is a field of a name, as in `a.b[0] = 1` and `(a.b, c) = (1, 2)`.
//! 4. Each name after an opening brace in a literal may be a variable that a format string captures.
//! 5. A colon in a macro call can have any meaning, so a name before a colon may be a variable as well. Every word of a
//!    literal in an unknown macro may also be a variable. `include!` may mention any name.

use super::future;
use crate::options::{Contended, Options, Time, Waiting};
use proc_macro2::{Delimiter, Group, Ident, Literal, TokenStream, TokenTree};
use quote::ToTokens;

/// Names in tokens, without `r#`.
#[derive(Default)]
pub(crate) struct Mentions {
    variables: Vec<String>,
    assigned: Vec<String>,
    /// Names with a field that is assigned to.
    changed: Vec<String>,
    called: Vec<String>,
    everything: bool,
}

/// Context of tokens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Code,
    /// A macro that takes expressions and a format string, such as `println!`.
    UsualMacro,
    Macro,
}

impl Mentions {
    /// Collects all names in `tokens`, including those in format strings.
    pub(crate) fn from_tokens(tokens: TokenStream) -> Self {
        let mut mentions = Self::default();
        mentions.add(tokens);
        mentions
    }

    /// Collects the names that all options except the key use.
    pub(crate) fn from_options(options: &Options) -> Self {
        let mut mentions = Self::default();
        for (_, tokens) in tokens_of(options) {
            mentions.add(tokens);
        }
        mentions
    }

    /// Adds all names in `tokens`.
    pub(crate) fn add(&mut self, tokens: TokenStream) {
        self.read(tokens, Place::Code, false);
    }

    /// Treats every name as mentioned.
    pub(crate) const fn add_everything(&mut self) {
        self.everything = true;
    }

    /// Reads tokens. `is_target` means that they are in parentheses on the left side of an assignment.
    fn read(&mut self, tokens: TokenStream, place: Place, is_target: bool) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Group(group) => {
                    let is_target = is_target || is_assigned_tuple(group, &tokens, at);
                    self.read(group.stream(), place.of_group(&tokens, at), is_target);
                }
                TokenTree::Ident(ident) => {
                    let end = end_of_field_access(&tokens, at);
                    // The use of a name in a macro is unknown.
                    let is_changed = is_target || place == Place::Macro || is_before_assignment(&tokens, end - 1);
                    if is_changed && !follows_a_dot(&tokens, at) && (end > at + 1 || place == Place::Macro) {
                        self.changed.push(unraw(ident));
                    }
                    self.read_name(ident, &tokens, at, place);
                }
                TokenTree::Literal(literal) => self.read_literal(literal, place),
                TokenTree::Punct(_) => {}
            }
        }
    }

    /// Adds a variable.
    pub(crate) fn add_variable(&mut self, ident: &Ident) {
        self.variables.push(unraw(ident));
    }

    /// Returns `true` if a name may be used as a variable.
    pub(crate) fn contains_variable(&self, name: &str) -> bool {
        self.everything || self.variables.iter().any(|variable| variable == name)
    }

    /// Returns `true` if the name is assigned to, by `=`, `+=` and similar operators.
    pub(crate) fn contains_assignment(&self, name: &str) -> bool {
        self.assigned.iter().any(|variable| variable == name)
    }

    /// Returns `true` if a field of the name is assigned to, or may be.
    pub(crate) fn contains_field_assignment(&self, name: &str) -> bool {
        self.changed.iter().any(|variable| variable == name)
    }

    /// Returns `true` if the name is before parentheses.
    pub(crate) fn contains_call(&self, name: &str) -> bool {
        self.called.iter().any(|function| function == name)
    }

    fn read_name(&mut self, ident: &Ident, tokens: &[TokenTree], at: usize, place: Place) {
        let name = unraw(ident);
        if is_before_parentheses(tokens, at) {
            self.called.push(name.clone());
        }
        if is_before_assignment(tokens, at) {
            self.assigned.push(name.clone());
        }
        if name == "include" && is_punct(tokens.get(at + 1), '!') {
            self.add_everything();
        }
        let is_field = follows_a_dot(tokens, at) || (place == Place::Code && precedes_a_colon(tokens, at));
        if !is_field && !is_in_a_path(tokens, at) {
            self.variables.push(name);
        }
    }

    /// Adds every name after an opening brace, as in a format string, even if the text is not one.
    fn read_literal(&mut self, literal: &Literal, place: Place) {
        let text = literal.to_string();
        let is_other = |c: char| c != '_' && !c.is_alphanumeric();
        let names: Vec<&str> = if place == Place::Macro {
            text.split(is_other).collect()
        } else {
            text.split('{').skip(1).filter_map(|text| text.split(is_other).next()).collect()
        };
        self.variables.extend(names.into_iter().filter(|name| !name.is_empty()).map(str::to_owned));
    }
}

impl Place {
    /// Returns the context of the tokens in the group at `at`.
    fn of_group(self, tokens: &[TokenTree], at: usize) -> Self {
        let before = |back: usize| at.checked_sub(back).and_then(|at| tokens.get(at));
        match before(2) {
            Some(TokenTree::Ident(name)) if is_punct(before(1), '!') && future::is_macro(name) => {
                if future::is_usual(name) { Self::UsualMacro } else { Self::Macro }
            }
            // `macro_rules! name { .. }`
            Some(TokenTree::Punct(_)) if is_punct(before(2), '!') => Self::Macro,
            _ => self,
        }
    }
}

/// Returns the expressions of all options except the key, each with the name of its option.
pub(crate) fn tokens_of(options: &Options) -> Vec<(&'static str, TokenStream)> {
    let waiting = options.wait.as_ref().and_then(Waiting::time);
    let times = [
        ("ttl", options.ttl.as_ref()),
        ("wait", waiting),
        ("max_hold", options.max_hold.as_ref()),
        ("min_hold", options.min_hold.as_ref()),
        ("linger", options.linger.as_ref()),
        ("once_per", options.once_per.as_ref()),
        ("window_start", options.window_start.as_ref()),
    ];
    let times = times.into_iter().filter_map(|(name, time)| match time? {
        Time::Literal(_) => None,
        time => Some((name, time.to_token_stream())),
    });
    let handler = match &options.on_contended {
        Some(Contended::Handler(handler)) => Some(handler),
        _ => None,
    };
    let expressions = [
        ("permits", options.permits.as_ref()),
        ("manager", options.manager.as_ref()),
        ("on_error", options.on_error.as_ref()),
        ("on_contended", handler),
    ];
    let expressions = expressions.into_iter().filter_map(|(name, value)| Some((name, value?.to_token_stream())));
    times.chain(expressions).collect()
}

/// Returns the name without `r#`.
fn unraw(ident: &Ident) -> String {
    let name = ident.to_string();
    name.strip_prefix("r#").map(str::to_owned).unwrap_or(name)
}

fn is_before_parentheses(tokens: &[TokenTree], at: usize) -> bool {
    matches!(tokens.get(at + 1), Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis)
}

/// Returns the end of a field access such as `a.b[0].c`, which begins with the name at `at`.
fn end_of_field_access(tokens: &[TokenTree], at: usize) -> usize {
    let mut end = at + 1;
    loop {
        match (tokens.get(end), tokens.get(end + 1)) {
            (Some(TokenTree::Group(index)), _) if index.delimiter() == Delimiter::Bracket => end += 1,
            (Some(TokenTree::Punct(dot)), Some(TokenTree::Ident(_) | TokenTree::Literal(_)))
                if dot.as_char() == '.' =>
            {
                end += 2;
            }
            _ => return end,
        }
    }
}

/// Returns `true` for `(a.b, c) = ..`. A call has parentheses after another token.
fn is_assigned_tuple(group: &Group, tokens: &[TokenTree], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|at| tokens.get(at));
    let is_call = matches!(before, Some(TokenTree::Ident(_) | TokenTree::Group(_)));
    group.delimiter() == Delimiter::Parenthesis && !is_call && is_before_assignment(tokens, at)
}

fn is_before_assignment(tokens: &[TokenTree], at: usize) -> bool {
    let Some(TokenTree::Punct(punct)) = tokens.get(at + 1) else { return false };
    let is_at = |ahead: usize, c: char| is_punct(tokens.get(at + ahead), c);
    match punct.as_char() {
        '=' => !is_at(2, '=') && !is_at(2, '>'),
        '+' | '-' | '*' | '/' | '%' | '&' | '|' | '^' => is_at(2, '='),
        shift @ ('<' | '>') => is_at(2, shift) && is_at(3, '='),
        _ => false,
    }
}

/// Returns `true` after a dot that does not belong to `..`.
fn follows_a_dot(tokens: &[TokenTree], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).and_then(|at| tokens.get(at));
    is_punct(before(1), '.') && !is_punct(before(2), '.')
}

/// Returns `true` before a colon that does not belong to `::`.
fn precedes_a_colon(tokens: &[TokenTree], at: usize) -> bool {
    is_punct(tokens.get(at + 1), ':') && !is_punct(tokens.get(at + 2), ':')
}

/// Returns `true` in a path such as `a::b`, which contains no variables.
fn is_in_a_path(tokens: &[TokenTree], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).and_then(|at| tokens.get(at));
    let follows = is_punct(before(1), ':') && is_punct(before(2), ':');
    let precedes = is_punct(tokens.get(at + 1), ':') && is_punct(tokens.get(at + 2), ':');
    follows || precedes
}

fn is_punct(token: Option<&TokenTree>, c: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == c)
}

#[cfg(test)]
mod tests {
    use super::Mentions;

    #[test]
    fn assignments_are_found() {
        let tokens = "a = 1; { b += 1; c <<= 2 } d == 1; e => 2; f <= 3; g.h = 4; i >>= j > 1";
        let mentions = Mentions::from_tokens(tokens.parse().unwrap());
        assert_eq!(mentions.assigned, ["a", "b", "c", "h", "i"]);
    }

    #[test]
    fn assignments_to_fields_are_found() {
        let tokens = "a.x = 1; { b.0.1 |= true } c.x == 1; d.x() ; (e.x, f) = (1, 2); g[0].x = 1; h(i.x); set!(j, 1); \
                      println!(\"{}\", k.x); l..m = 1; n = 1; o.p.q = 1";
        let mentions = Mentions::from_tokens(tokens.parse().unwrap());
        assert_eq!(mentions.changed, ["a", "b", "e", "g", "j", "o"]);
    }

    #[test]
    fn names_in_format_strings_are_mentioned() {
        let tokens = r#"{ let y = self.r#type; let z = 0..end; Local { len: 5 }; println!("{x:?} {{z}} {}", w) }"#;
        let mentions = Mentions::from_tokens(tokens.parse().unwrap());
        for name in ["y", "self", "x", "w", "end"] {
            assert!(mentions.contains_variable(name), "{name}");
        }
        assert!(!mentions.contains_variable("type") && !mentions.contains_variable("len"), "a field is no variable");
    }

    #[test]
    fn unknown_macros_may_use_any_name() {
        let tokens = r#"json!({ a: 1, "b": c.d }); println!("{e} f", g); query!("SELECT h FROM i"); if !("j") {}"#;
        let mentions = Mentions::from_tokens(tokens.parse().unwrap());
        assert_eq!(
            "abcdefghij".chars().filter(|c| mentions.contains_variable(&c.to_string())).collect::<String>(),
            "aceghi"
        );
        assert!(Mentions::from_tokens("include!(\"x.rs\")".parse().unwrap()).contains_variable("anything"));
    }

    #[test]
    fn calls_are_found() {
        let mentions = Mentions::from_tokens("a(); { self.b(c) } Self::r#d::<T>(); e!(); f".parse().unwrap());
        assert_eq!(mentions.called, ["a", "b"]);
        assert!(mentions.contains_call("a") && !mentions.contains_call("e"));
    }
}
