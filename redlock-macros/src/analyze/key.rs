//! What one function locks: each placeholder of its templates, matched with the value it names.
//!
//! 1. Each template is read, and each placeholder that stands in it several times becomes one hole. What is wrong with
//!    the text is reported, and all the same the holes that could be read are looked at.
//! 2. Every named part, such as `id = order.id`, must be the root of a hole in one of the templates, or what one takes, or it is reported as unused.
//! 3. The root of a hole is looked up: a path with `::` is a constant; one name is first a named part, then an
//!    argument, the last one of that name, and then, if it is written in capitals, a constant. Any other name is a
//!    mistake, and the message names the one that was probably meant.
//! 4. The steps from the root to the value are taken over. A name that a call or an index takes is looked up as in step
//!    3.
//! 5. If every hole is one name that is known, and no two holes have the same name, the user's own literal becomes the
//!    format string, which captures these names: then the compiler points inside the literal. Otherwise, and for a path with
//!    characters that are encoded there, a format string is made, in which the values are called `__part0`, `__part1` and so on.
//! 6. A single argument whose type is an integer of the language needs no escaping, unless a digit or `-` follows it.

use super::bindings::Binding;
use super::mentions::Mentions;
use crate::errors::{self, Errors};
use crate::keywords::is_keyword;
use crate::options::{KeyTemplate, KeyTemplates, Mode};
use crate::template::{self, Hole, Input, Mistake, Step, Template};
use proc_macro2::{Ident, Literal, Span};
use quote::ToTokens;
use std::collections::BTreeSet;
use syn::ext::IdentExt;
use syn::{Expr, Index, LitStr, Member};

/// What is locked, ready to be formatted.
pub(crate) struct Key {
    /// The template as it was written, or all of them as the runtime writes several keys: `"a" + "b"`.
    pub(crate) template: String,
    /// Each key or path. There is one at least.
    pub(crate) all: Vec<Formatted>,
    /// `id = order.id`
    pub(crate) named: Vec<Named>,
}

/// One key or path.
pub(crate) struct Formatted {
    /// The format string, which captures the `parts` by their names or is given them.
    pub(crate) format: Literal,
    pub(crate) parts: Vec<Part>,
    /// The format string is the user's own token, so that the compiler points inside it.
    pub(crate) is_verbatim: bool,
    pub(crate) is_path: bool,
    /// If it is not that of all.
    pub(crate) mode: Option<Mode>,
}

/// An expression of the attribute that the template can name.
pub(crate) struct Named {
    pub(crate) variable: Ident,
    pub(crate) value: Expr,
    /// No placeholder begins with it: it is what a method or an index takes, and taken by value.
    pub(crate) is_input: bool,
}

/// A value in the key.
pub(crate) struct Part {
    /// The name that stands in the format string.
    pub(crate) name: Ident,
    pub(crate) root: Root,
    pub(crate) way: Vec<Way>,
    /// How many references an argument begins with. The part is what they refer to: a `LockKeyPart` of the user's own may
    /// have none for references.
    pub(crate) references: usize,
    /// The characters that may follow the value in the key: inside the value they are escaped, so that they end it.
    pub(crate) escaped: Vec<char>,
    /// What the value is there.
    pub(crate) place: Place,
    /// The placeholder has a format, so its value must be an integer.
    pub(crate) is_integer: bool,
    /// The name of the type of an argument that stands in the key without escaping: an integer of the language, which
    /// cannot contain what follows it.
    pub(crate) plain: Option<&'static str>,
    /// The span of the code for this value, which is reported at the literal.
    pub(crate) span: Span,
}

/// What a value is in its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    InKey,
    /// A segment of a path.
    Segment,
    /// A part of a segment.
    InSegment,
    /// `{dir:/}`: several segments.
    Subpath,
}

/// What a placeholder begins with, and so where its value comes from.
pub(crate) enum Root {
    Argument(Ident),
    /// The variable of a named part.
    Named(Ident),
    Constant(Vec<Ident>),
}

/// A step to the value.
pub(crate) enum Way {
    Field(Member),
    Call(Ident, Vec<Operand>),
    Index(Operand),
}

/// What a call or an index takes.
pub(crate) enum Operand {
    Number(Literal),
    Value(Ident),
    /// What the variable of a named part refers to.
    Referred(Ident),
}

impl Key {
    /// Whether any value in the key can differ from call to call.
    pub(crate) fn depends_on_the_call(&self) -> bool {
        self.parts().any(|part| !matches!(part.root, Root::Constant(_)))
    }

    /// The place of the first text.
    pub(crate) fn span(&self) -> Span {
        self.all.first().map_or_else(Span::call_site, |formatted| formatted.format.span())
    }

    /// The values in it.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &Part> {
        self.all.iter().flat_map(|formatted| &formatted.parts)
    }

    /// The key, if it is one key and nothing else.
    pub(crate) fn only(&self) -> Option<&Formatted> {
        match self.all.as_slice() {
            [only] if !only.is_path => Some(only),
            _ => None,
        }
    }

    /// Adds the names that the key uses.
    pub(crate) fn add_mentions(&self, mentions: &mut Mentions) {
        for named in &self.named {
            mentions.add(named.value.to_token_stream());
        }
        for variable in self.variables() {
            mentions.add_variable(variable);
        }
    }

    /// What the template names, but for what expressions of the attribute name.
    fn variables(&self) -> impl Iterator<Item = &Ident> {
        self.parts().flat_map(|part| {
            let root = match &part.root {
                Root::Argument(variable) => Some(variable),
                Root::Named(_) | Root::Constant(_) => None,
            };
            let operands = part.way.iter().flat_map(|way| match way {
                Way::Field(_) => &[],
                Way::Call(_, inputs) => inputs.as_slice(),
                Way::Index(input) => std::slice::from_ref(input),
            });
            let taken = operands.filter_map(|operand| match operand {
                Operand::Value(variable) => Some(variable),
                Operand::Number(_) | Operand::Referred(_) => None,
            });
            root.into_iter().chain(taken)
        })
    }

    /// The names in the template that may be those of arguments.
    pub(crate) fn arguments(&self) -> BTreeSet<String> {
        self.variables().map(|variable| variable.unraw().to_string()).collect()
    }
}

/// What a template can name.
struct Scope<'a> {
    literal: &'a LitStr,
    function: &'a Ident,
    bindings: &'a [Binding],
    named: &'a [(Ident, Expr)],
    /// Whether a placeholder of any template begins with a name.
    roots: &'a BTreeSet<String>,
}

/// A template, read.
struct Parsed<'a> {
    written: &'a KeyTemplate,
    template: Template,
    is_right: bool,
}

/// Reads the templates and finds their values.
pub(crate) fn read(key: &KeyTemplates, function: &Ident, bindings: &[Binding], errors: &mut Errors) -> Option<Key> {
    let parsed: Vec<_> = key.all().map(|written| parse(written, errors)).collect();
    let holes: Vec<_> = parsed.iter().flat_map(|parsed| parsed.template.distinct_holes()).collect();
    let roots = holes.iter().filter_map(|(hole, _)| hole.root.first().cloned()).collect::<BTreeSet<_>>();
    let is_right = parsed.iter().all(|parsed| parsed.is_right);
    for (name, _) in &key.named {
        let text = name.unraw().to_string();
        let is_used = roots.contains(&text) || holes.iter().any(|(hole, _)| hole.takes(&text));
        if is_right && !is_used {
            errors.at(name.span(), format!("`{name}` is not in the key: write `{{{name}}}` there, or leave it out"));
        }
    }
    let scope = |literal| Scope { literal, function, bindings, named: &key.named, roots: &roots };
    let all: Vec<_> = parsed.iter().map(|parsed| scope(&parsed.written.literal).format(parsed, errors)).collect();
    let named = key.named.iter().enumerate().map(|(index, (name, value))| Named {
        variable: numbered("__named", index, &key.first.literal),
        value: value.clone(),
        is_input: !roots.contains(&name.unraw().to_string()),
    });
    let (named, template) = (named.collect(), written(key));
    let all = all.into_iter().collect::<Option<_>>()?;
    is_right.then(|| Key { template, all, named })
}

/// The template, or all of them as the runtime writes several keys.
fn written(key: &KeyTemplates) -> String {
    match key.others.as_slice() {
        [] => key.first.literal.value(),
        _ => key.all().map(|template| format!("{:?}", template.literal.value())).collect::<Vec<_>>().join(" + "),
    }
}

/// Reads one template, and reports what is wrong with its text.
fn parse<'a>(written: &'a KeyTemplate, errors: &mut Errors) -> Parsed<'a> {
    let text = written.literal.value();
    let (template, mistakes) = if written.is_path { template::parse_path(&text) } else { template::parse(&text) };
    for mistake in &mistakes {
        errors.at(written.literal.span(), mistake.under(&text));
    }
    Parsed { written, template, is_right: mistakes.is_empty() }
}

impl Scope<'_> {
    /// One template with its values. `None` when one of them means nothing.
    fn format(&self, parsed: &Parsed<'_>, errors: &mut Errors) -> Option<Formatted> {
        let (literal, is_path, mode) = (self.literal, parsed.written.is_path, parsed.written.mode);
        let (template, text) = (&parsed.template, literal.value());
        let holes = template.distinct_holes();
        let has_one_name_for_each = holes.iter().enumerate().all(|(index, (hole, _))| {
            let is_again = |name: &str| holes.iter().take(index).any(|(other, _)| other.name() == Some(name));
            hole.name().is_some_and(|name| self.is_variable(name) && !is_again(name))
        });
        let is_verbatim = has_one_name_for_each && (!is_path || template.is_encoded());
        let mut parts = Vec::new();
        for (index, (hole, escaped)) in holes.iter().enumerate() {
            let name = match hole.name() {
                Some(name) if is_verbatim => identifier(name, generated(literal)),
                _ => numbered("__part", index, literal),
            };
            let place = match is_path {
                false => Place::InKey,
                true if hole.is_subpath => Place::Subpath,
                true if template.is_segment(hole) => Place::Segment,
                true => Place::InSegment,
            };
            match self.part(hole, name, escaped.clone(), place) {
                Ok(part) => parts.push(part),
                Err(message) => errors.at(literal.span(), Mistake::new(template.place(hole), message).under(&text)),
            }
        }
        let is_whole = parts.len() == holes.len();
        let format = if is_verbatim {
            literal.token()
        } else {
            let index = |hole: &Hole| holes.iter().position(|(other, _)| *other == hole).unwrap_or_default();
            let name = |hole: &Hole| format!("__part{}", index(hole));
            let text = if is_path { template.encoded_format(name) } else { template.format_string(name) };
            LitStr::new(&text, generated(literal)).token()
        };
        is_whole.then_some(Formatted { format, parts, is_verbatim, is_path, mode })
    }

    /// The value of one hole.
    fn part(&self, hole: &Hole, name: Ident, escaped: Vec<char>, place: Place) -> Result<Part, String> {
        let way = hole.steps.iter().map(|step| self.way(step)).collect::<Result<_, _>>()?;
        let root = self.root(&hole.root)?;
        let is_argument = matches!(root, Root::Argument(_));
        let plain = is_argument.then(|| self.plain(hole, &escaped)).flatten();
        let argument = hole.name().filter(|_| is_argument).and_then(|name| self.binding(name));
        let references = argument.map_or(0, |argument| argument.references);
        let (is_integer, span) = (hole.format.is_some(), generated(self.literal));
        Ok(Part { name, root, way, references, escaped, place, is_integer, plain, span })
    }

    /// The integer type of a hole that needs no escaping.
    fn plain(&self, hole: &Hole, escaped: &[char]) -> Option<&'static str> {
        let may_contain = |c: &char| c.is_ascii_digit() || *c == '-';
        let name = hole.name().filter(|_| !escaped.iter().any(may_contain))?;
        self.binding(name)?.integer
    }

    /// What the first name of a hole means, or what to say of it.
    fn root(&self, path: &[String]) -> Result<Root, String> {
        let constant = || Root::Constant(path.iter().map(|name| identifier(name, generated(self.literal))).collect());
        let [name] = path else { return Ok(constant()) };
        if let Some(index) = self.named.iter().position(|(other, _)| other.unraw() == name) {
            return Ok(Root::Named(numbered("__named", index, self.literal)));
        }
        match self.argument(name) {
            Some(argument) => Ok(Root::Argument(argument)),
            None if is_constant(name) => Ok(constant()),
            None => Err(self.unknown(name)),
        }
    }

    /// One step of the template, as code can write it.
    fn way(&self, step: &Step) -> Result<Way, String> {
        let span = generated(self.literal);
        Ok(match step {
            Step::Field(field) if field.starts_with(|c: char| c.is_ascii_digit()) => {
                let index = field.parse().map_err(|_| too_large(field))?;
                Way::Field(Member::Unnamed(Index { index, span }))
            }
            Step::Field(field) => Way::Field(Member::Named(identifier(field, span))),
            Step::Call(method, inputs) => {
                let inputs = inputs.iter().map(|input| self.operand(input)).collect::<Result<_, _>>()?;
                Way::Call(identifier(method, span), inputs)
            }
            Step::Index(input) => Way::Index(self.operand(input)?),
        })
    }

    /// What a call or an index takes, looked up as the root of a hole is.
    fn operand(&self, input: &Input) -> Result<Operand, String> {
        match input {
            Input::Number(number) => {
                let mut literal = if number.starts_with('-') {
                    Literal::i64_unsuffixed(number.parse().map_err(|_| too_large(number))?)
                } else {
                    Literal::u64_unsuffixed(number.parse().map_err(|_| too_large(number))?)
                };
                literal.set_span(generated(self.literal));
                Ok(Operand::Number(literal))
            }
            Input::Name(name) if matches!(name.as_str(), "true" | "false") => {
                Ok(Operand::Value(Ident::new(name, generated(self.literal))))
            }
            Input::Name(name) => match self.root(std::slice::from_ref(name))? {
                Root::Named(variable) if self.is_root(name) => Ok(Operand::Referred(variable)),
                Root::Argument(variable) | Root::Named(variable) => Ok(Operand::Value(variable)),
                Root::Constant(_) => Ok(Operand::Value(identifier(name, generated(self.literal)))),
            },
        }
    }

    /// Whether a placeholder begins with the name.
    fn is_root(&self, name: &str) -> bool {
        self.roots.contains(name)
    }

    /// Whether a format string can capture the name.
    fn is_variable(&self, name: &str) -> bool {
        self.argument(name).is_some() || self.named.iter().any(|(other, _)| other.unraw() == name)
    }

    /// The argument as it was bound, pointing at the literal.
    fn argument(&self, name: &str) -> Option<Ident> {
        let mut argument = self.binding(name)?.ident.clone();
        argument.set_span(argument.span().located_at(self.literal.span()));
        Some(argument)
    }

    fn binding(&self, name: &str) -> Option<&Binding> {
        self.bindings.iter().rev().find(|binding| binding.name == name)
    }

    /// What to say of a name that means nothing here.
    fn unknown(&self, name: &str) -> String {
        let function = self.function;
        let names = || {
            let named = self.named.iter().map(|(name, _)| name.unraw().to_string());
            named.chain(self.bindings.iter().map(|binding| binding.name.clone())).collect::<Vec<_>>()
        };
        let all = names();
        if name == "self" {
            return format!("`{function}` is not a method and has no `self`: write the name of an argument");
        }
        let list = errors::list(all.iter().map(String::as_str));
        let message = format!("`{name}` is not an argument of `{function}`, which has");
        // `{self}` alone is refused, so a field of it is proposed.
        let others: Vec<&str> = all.iter().map(String::as_str).filter(|other| *other != "self").collect();
        let is_method = others.len() < all.len();
        if is_method && errors::is_slip(name, "self") {
            return format!("{message} {list}: did you mean `self`?");
        }
        let field = if is_method { format!(", or `{{self.{name}}}` for a field of `self`") } else { String::new() };
        match (errors::nearest(name, others.iter().copied()), others.as_slice()) {
            (Some(meant), _) => format!("{message} {list}: did you mean `{{{meant}}}`?"),
            (None, []) if is_method => format!("{message} {list}: write `{{self.{name}}}` for a field of it"),
            (None, []) => format!("{message} none: write a key without placeholders, or add the argument"),
            (None, [only]) => format!("{message} {list}: write `{{{only}}}`{field}"),
            (None, _) => format!("{message} {list}: write one of them{field}"),
        }
    }
}

/// Whether a name is written in capitals, as constants are.
fn is_constant(name: &str) -> bool {
    name.starts_with(char::is_uppercase) && !name.contains(char::is_lowercase)
}

/// A span at the literal whose names belong to generated code. The bare span of the literal would make the compiler
/// offer to edit the user's text where it means ours.
fn generated(literal: &LitStr) -> Span {
    Span::mixed_site().located_at(literal.span())
}

fn too_large(number: &str) -> String {
    format!("`{number}` is too large a number for a key")
}

/// A name for generated code, such as `__part0`.
fn numbered(name: &str, index: usize, literal: &LitStr) -> Ident {
    Ident::new(&format!("{name}{index}"), generated(literal))
}

/// A template names a raw identifier without its `r#`.
fn identifier(name: &str, span: Span) -> Ident {
    if is_keyword(name) { Ident::new_raw(name, span) } else { Ident::new(name, span) }
}
