//! The key of one function: each placeholder of the template, matched with the argument it names.

use crate::bindings::Binding;
use crate::errors::{self, Errors};
use crate::template::{self, Hole};
use proc_macro2::{Ident, Literal, Span};
use syn::{Index, LitStr, Member};

/// A key, ready to be formatted.
pub(crate) struct Key {
    /// The format string, which captures the `parts` by their names.
    pub(crate) format: Literal,
    pub(crate) parts: Vec<Part>,
    /// The format string is the user's own token, so that the compiler points inside it.
    pub(crate) is_verbatim: bool,
}

/// A value in the key.
pub(crate) struct Part {
    /// The name that the format string captures.
    pub(crate) name: Ident,
    pub(crate) argument: Ident,
    pub(crate) fields: Vec<Member>,
    /// The characters that may follow the value in the key.
    pub(crate) escaped: Vec<char>,
}

/// Reads the template and finds its arguments among `bindings`.
pub(crate) fn read(literal: &LitStr, function: &Ident, bindings: &[Binding], errors: &mut Errors) -> Option<Key> {
    let (template, mistakes) = template::parse(&literal.value());
    for mistake in &mistakes {
        errors.at(literal.span(), mistake);
    }
    let holes = template.distinct_holes();
    let is_verbatim = holes.iter().all(|(hole, _)| hole.fields.is_empty());
    let mut parts = Vec::new();
    for (index, (hole, escaped)) in holes.iter().enumerate() {
        let Some(binding) = bindings.iter().rev().find(|binding| binding.name == hole.name) else {
            errors.at(literal.span(), unknown(&hole.name, function, bindings));
            continue;
        };
        let name = if is_verbatim { identifier(&hole.name, literal.span()) } else { numbered(index, literal) };
        let argument = located(&binding.ident, literal);
        let fields = hole.fields.iter().map(|field| member(field, literal)).collect();
        parts.push(Part { name, argument, fields, escaped: escaped.clone() });
    }
    let format = if is_verbatim {
        literal.token()
    } else {
        let index = |hole: &Hole| holes.iter().position(|(other, _)| *other == hole).unwrap_or_default();
        let text = template.format_string(|hole| numbered(index(hole), literal).to_string());
        LitStr::new(&text, generated(literal)).token()
    };
    (mistakes.is_empty() && parts.len() == holes.len()).then_some(Key { format, parts, is_verbatim })
}

/// A span at the literal whose names belong to generated code. The bare span of the literal would make the compiler
/// offer to edit the user's text where it means ours.
fn generated(literal: &LitStr) -> Span {
    Span::mixed_site().located_at(literal.span())
}

fn numbered(index: usize, literal: &LitStr) -> Ident {
    Ident::new(&format!("__part{index}"), generated(literal))
}

/// The argument as it was bound, pointing at the literal.
fn located(argument: &Ident, literal: &LitStr) -> Ident {
    let mut argument = argument.clone();
    argument.set_span(argument.span().located_at(literal.span()));
    argument
}

fn member(field: &str, literal: &LitStr) -> Member {
    match field.parse() {
        Ok(index) => Member::Unnamed(Index { index, span: generated(literal) }),
        Err(_) => Member::Named(identifier(field, generated(literal))),
    }
}

/// A template names a raw identifier without its `r#`.
fn identifier(name: &str, span: Span) -> Ident {
    match syn::parse_str::<Ident>(name) {
        Err(_) if name != "self" => Ident::new_raw(name, span),
        _ => Ident::new(name, span),
    }
}

fn unknown(name: &str, function: &Ident, bindings: &[Binding]) -> String {
    let names = || bindings.iter().map(|binding| binding.name.as_str());
    let message = format!("`{name}` is not an argument of `{function}`, which");
    if bindings.is_empty() {
        return format!("{message} has none: write a key without placeholders, or add the argument");
    }
    let list = errors::list(names());
    match (errors::nearest(name, names()), bindings) {
        (Some(meant), _) => format!("{message} has {list}: did you mean `{{{meant}}}`?"),
        (None, [only]) => format!("{message} has {list}: write `{{{}}}`", only.name),
        (None, _) => format!("{message} has {list}: write one of them"),
    }
}
