//! The names that the arguments of a function bind.

use proc_macro2::{Literal, TokenStream, TokenTree};
use std::collections::HashSet;
use syn::ext::IdentExt;
use syn::{Attribute, FnArg, Ident, Local, Pat, PatType, Signature};

/// A variable that the body sees.
#[derive(Clone)]
pub(crate) struct Binding {
    /// What a template calls it: without `r#`, and `self` wherever the receiver has gone.
    pub(crate) name: String,
    /// How generated code names it, with the hygiene it was bound with.
    pub(crate) ident: Ident,
    /// The conditions under which it exists.
    pub(crate) cfg: Vec<Attribute>,
}

impl Binding {
    pub(crate) fn new(ident: &Ident, attributes: &[Attribute]) -> Self {
        let cfg = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).cloned().collect();
        Self { name: ident.unraw().to_string(), ident: ident.clone(), cfg }
    }
}

/// In the order of the arguments.
pub(crate) fn of_arguments(signature: &Signature) -> Vec<Binding> {
    let mut bindings = Vec::new();
    for argument in &signature.inputs {
        match argument {
            FnArg::Receiver(receiver) => {
                let ident = Ident::new("self", receiver.self_token.span);
                bindings.push(Binding::new(&ident, &receiver.attrs));
            }
            FnArg::Typed(argument) => bindings.extend(of_argument(argument)),
        }
    }
    bindings
}

/// The names in the pattern of one argument.
pub(crate) fn of_argument(PatType { attrs, pat, .. }: &PatType) -> Vec<Binding> {
    let mut bindings = Vec::new();
    visit(pat, &mut |ident| bindings.push(Binding::new(ident, attrs)));
    bindings
}

/// The names that a `let` binds.
pub(crate) fn of_local(local: &Local) -> Vec<Binding> {
    let mut bindings = Vec::new();
    visit(&local.pat, &mut |ident| bindings.push(Binding::new(ident, &local.attrs)));
    bindings
}

fn visit(pattern: &Pat, found: &mut impl FnMut(&Ident)) {
    match pattern {
        Pat::Ident(pattern) => {
            found(&pattern.ident);
            if let Some((_, inner)) = &pattern.subpat {
                visit(inner, found);
            }
        }
        // Every case binds the same names.
        Pat::Or(pattern) => pattern.cases.iter().take(1).for_each(|case| visit(case, found)),
        Pat::Paren(pattern) => visit(&pattern.pat, found),
        Pat::Reference(pattern) => visit(&pattern.pat, found),
        Pat::Slice(pattern) => pattern.elems.iter().for_each(|element| visit(element, found)),
        Pat::Struct(pattern) => pattern.fields.iter().for_each(|field| visit(&field.pat, found)),
        Pat::Tuple(pattern) => pattern.elems.iter().for_each(|element| visit(element, found)),
        Pat::TupleStruct(pattern) => pattern.elems.iter().for_each(|element| visit(element, found)),
        Pat::Type(pattern) => visit(&pattern.pat, found),
        _ => {}
    }
}

/// All names in `tokens` that may be variables, those inside format strings too. Without `r#`.
///
/// Names of fields are left out where that is certain: after a dot, and before a colon.
pub(crate) fn mentioned(tokens: TokenStream, names: &mut HashSet<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => mentioned(group.stream(), names),
            TokenTree::Ident(_) if is_field(&tokens, at) || is_in_a_path(&tokens, at) => {}
            TokenTree::Ident(ident) => {
                names.insert(ident.unraw().to_string());
            }
            TokenTree::Literal(literal) => names.extend(captured(literal)),
            TokenTree::Punct(_) => {}
        }
    }
}

fn is_field(tokens: &[TokenTree], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).and_then(|at| tokens.get(at));
    let follows_a_dot = is_punct(before(1), '.') && !is_punct(before(2), '.');
    let precedes_a_colon = is_punct(tokens.get(at + 1), ':') && !is_punct(tokens.get(at + 2), ':');
    follows_a_dot || precedes_a_colon
}

/// `a::b`: no variable is part of a path of several names.
fn is_in_a_path(tokens: &[TokenTree], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).and_then(|at| tokens.get(at));
    let follows = is_punct(before(1), ':') && is_punct(before(2), ':');
    let precedes = is_punct(tokens.get(at + 1), ':') && is_punct(tokens.get(at + 2), ':');
    follows || precedes
}

/// All names to which something is assigned, by `=` or `+=`.
pub(crate) fn assigned(tokens: TokenStream, names: &mut HashSet<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        let is_at = |ahead: usize, c: char| is_punct(tokens.get(at + ahead), c);
        match token {
            TokenTree::Group(group) => assigned(group.stream(), names),
            TokenTree::Ident(ident) => {
                let is_plain = is_at(1, '=') && !is_at(2, '=') && !is_at(2, '>');
                let is_compound = "+-*/%&|^".chars().any(|c| is_at(1, c)) && is_at(2, '=');
                let shift = |c: char| is_at(1, c) && is_at(2, c) && is_at(3, '=');
                if is_plain || is_compound || shift('<') || shift('>') {
                    names.insert(ident.unraw().to_string());
                }
            }
            _ => {}
        }
    }
}

fn is_punct(token: Option<&TokenTree>, c: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == c)
}

fn captured(literal: &Literal) -> Vec<String> {
    let text = literal.to_string();
    let after_braces = text.split('{').skip(1);
    let names = after_braces.map(|text| text.split(|c: char| c != '_' && !c.is_alphanumeric()).next());
    names.flatten().filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::{assigned, mentioned, of_arguments};
    use std::collections::HashSet;

    #[test]
    fn names_inside_patterns_count() {
        let signature = "async fn f(&self, Path(id): Path<u64>, mut a: A, (b, _): (B, C), \
                         Order { line: Line { sku, .. }, total, .. }: Order, [d, rest @ ..]: [u8; 4], &e: &u8, \
                         (Ok(g) | Err(g)): Result<u8, u8>, ref h: H, r#type: u8, _unused: U, _: V)";
        let bindings = of_arguments(&syn::parse_str(signature).unwrap());
        let names: Vec<_> = bindings.iter().map(|binding| binding.name.as_str()).collect();
        let expected = "self id a b sku total d rest e g h type _unused";
        assert_eq!(names.join(" "), expected);
    }

    #[test]
    fn assignments_are_found() {
        let mut names = HashSet::new();
        assigned("a = 1; { b += 1; c <<= 2 } d == 1; e => 2; f <= 3; g.h = 4;".parse().unwrap(), &mut names);
        assert_eq!(names, ["a", "b", "c", "h"].map(str::to_owned).into());
    }

    #[test]
    fn names_in_format_strings_are_mentioned() {
        let tokens = r#"{ let y = self.r#type; let z = 0..end; Local { len: 5 }; println!("{x:?} {{z}} {}", w) }"#;
        let mut names = HashSet::new();
        mentioned(tokens.parse().unwrap(), &mut names);
        for name in ["y", "self", "x", "w", "end"] {
            assert!(names.contains(name), "{name}");
        }
        assert!(!names.contains("type") && !names.contains("len"), "a field is no variable");
    }
}
