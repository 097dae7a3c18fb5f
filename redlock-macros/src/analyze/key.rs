//! The keys of one function: matches each placeholder of its templates with a value.
//!
//! 1. Each template is parsed. A placeholder that occurs several times becomes one hole. Mistakes in the text are
//!    reported, and the readable holes are still checked.
//! 2. Every named part, such as `id = order.id`, must be the root of a hole in one of the templates, or an argument of
//!    a call or an index in one. Otherwise it is reported as unused.
//! 3. The root of a hole is resolved. A path with `::` is a constant. A single name is a named part, or else the last
//!    argument of this name, or else, if it is in capitals, a constant. Any other name is a mistake, and the message
//!    contains the most similar name.
//! 4. The steps from the root to the value are copied. A name inside a call or an index is resolved as in step 3.
//! 5. If every hole is one known name, and no two holes have the same name, the user's own literal becomes the format
//!    string and captures these names. The compiler then points inside the literal. Otherwise, and for a path with
//!    encoded characters, a format string is generated, whose values are called `__part0`, `__part1` and so on.
//! 6. A single argument of a primitive integer type needs no escaping, unless a digit or `-` follows it.

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

/// Keys or paths of a function, ready to be formatted.
pub(crate) struct Key {
    /// Template as written, or all of them in the form of the runtime for several keys: `"a" + "b"`.
    pub(crate) template: String,
    /// All keys or paths. There is at least one.
    pub(crate) all: Vec<Formatted>,
    /// `id = order.id`
    pub(crate) named: Vec<Named>,
}

/// One key or path with its format string.
pub(crate) struct Formatted {
    /// Format string. It captures the `parts` by name, or receives them as arguments.
    pub(crate) format: Literal,
    pub(crate) parts: Vec<Part>,
    /// `true` if the format string is the user's own token, so that the compiler points inside it.
    pub(crate) is_verbatim: bool,
    pub(crate) is_path: bool,
    /// Mode of this key, if it differs from that of the request.
    pub(crate) mode: Option<Mode>,
}

/// Named expression of the attribute, which a template can use.
pub(crate) struct Named {
    pub(crate) variable: Ident,
    pub(crate) value: Expr,
    /// `true` if no placeholder begins with it. It is then an argument of a method or an index, passed by value.
    pub(crate) is_input: bool,
}

/// Value in a key.
pub(crate) struct Part {
    /// Name in the format string.
    pub(crate) name: Ident,
    pub(crate) root: Root,
    pub(crate) accesses: Vec<Access>,
    /// Number of `&` at the beginning of the argument's type. They are removed: a user's own `LockKeyPart` may have no
    /// implementation for references.
    pub(crate) references: usize,
    /// Characters that may follow the value in the key. They are escaped inside the value, so that they end it.
    pub(crate) escaped: Vec<char>,
    /// Position of the value.
    pub(crate) place: Place,
    /// `true` if the placeholder has a format, so its value must be an integer.
    pub(crate) is_integer: bool,
    /// Type of an argument that needs no escaping: a primitive integer that cannot contain the character after it.
    pub(crate) plain: Option<&'static str>,
    /// Span of the code for this value. Errors are reported at the literal.
    pub(crate) span: Span,
}

/// Position of a value in its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    InKey,
    /// A whole segment of a path.
    Segment,
    /// A part of a segment.
    InSegment,
    /// Several segments: `{dir:/}`.
    Subpath,
}

/// Source of a value: the first name of a placeholder.
pub(crate) enum Root {
    Argument(Ident),
    /// The variable of a named part.
    Named(Ident),
    Constant(Vec<Ident>),
}

/// Step from one value to the next.
pub(crate) enum Access {
    Field(Member),
    Call(Ident, Vec<Operand>),
    Index(Operand),
}

/// Argument of a call or an index.
pub(crate) enum Operand {
    Number(Literal),
    Value(Ident),
    /// Value behind the reference of a named part.
    Referred(Ident),
}

impl Key {
    /// Returns `true` if a value in the key can differ from call to call.
    pub(crate) fn depends_on_the_call(&self) -> bool {
        self.parts().any(|part| !matches!(part.root, Root::Constant(_)))
    }

    /// Returns the span of the first template.
    pub(crate) fn span(&self) -> Span {
        self.all.first().map_or_else(Span::call_site, |formatted| formatted.format.span())
    }

    /// Returns all values.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &Part> {
        self.all.iter().flat_map(|formatted| &formatted.parts)
    }

    /// Returns the key if there is exactly one and it is not a path.
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

    /// Returns the variables in the template, without those in expressions of the attribute.
    fn variables(&self) -> impl Iterator<Item = &Ident> {
        self.parts().flat_map(|part| {
            let root = match &part.root {
                Root::Argument(variable) => Some(variable),
                Root::Named(_) | Root::Constant(_) => None,
            };
            let operands = part.accesses.iter().flat_map(|access| match access {
                Access::Field(_) => &[],
                Access::Call(_, inputs) => inputs.as_slice(),
                Access::Index(input) => std::slice::from_ref(input),
            });
            let taken = operands.filter_map(|operand| match operand {
                Operand::Value(variable) => Some(variable),
                Operand::Number(_) | Operand::Referred(_) => None,
            });
            root.into_iter().chain(taken)
        })
    }

    /// Returns the names in the template that may be arguments.
    pub(crate) fn arguments(&self) -> BTreeSet<String> {
        self.variables().map(|variable| variable.unraw().to_string()).collect()
    }
}

/// Names that a template can use.
struct Scope<'a> {
    literal: &'a LitStr,
    function: &'a Ident,
    bindings: &'a [Binding],
    named: &'a [(Ident, Expr)],
    /// First names of the placeholders of all templates.
    roots: &'a BTreeSet<String>,
}

/// Parsed template.
struct Parsed<'a> {
    written: &'a KeyTemplate,
    template: Template,
    is_right: bool,
}

/// Parses the templates and resolves their values.
pub(crate) fn read(key: &KeyTemplates, function: &Ident, bindings: &[Binding], errors: &mut Errors) -> Option<Key> {
    let parsed: Vec<_> = key.all().map(|written| parse(written, errors)).collect();
    let holes: Vec<_> = parsed.iter().flat_map(|parsed| parsed.template.distinct_holes()).collect();
    let roots = holes.iter().filter_map(|(hole, _)| hole.root.first().cloned()).collect::<BTreeSet<_>>();
    let is_right = parsed.iter().all(|parsed| parsed.is_right);
    for (name, _) in &key.named {
        let text = name.unraw().to_string();
        let is_used = roots.contains(&text) || holes.iter().any(|(hole, _)| hole.takes(&text));
        if is_right && !is_used {
            errors.at(
                name.span(),
                format!("`{name}` is not used in the key: write `{{{name}}}` in the key, or remove `{name}`"),
            );
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

/// Returns the template, or all of them in the form of the runtime for several keys.
fn written(key: &KeyTemplates) -> String {
    match key.others.as_slice() {
        [] => key.first.literal.value(),
        _ => key.all().map(|template| format!("{:?}", template.literal.value())).collect::<Vec<_>>().join(" + "),
    }
}

/// Parses one template, and reports the mistakes in its text.
fn parse<'a>(written: &'a KeyTemplate, errors: &mut Errors) -> Parsed<'a> {
    let text = written.literal.value();
    let (template, mistakes) = if written.is_path { template::parse_path(&text) } else { template::parse(&text) };
    for mistake in &mistakes {
        errors.at(written.literal.span(), mistake.under(&text));
    }
    Parsed { written, template, is_right: mistakes.is_empty() }
}

impl Scope<'_> {
    /// Resolves one template with its values. Returns `None` if a value cannot be resolved.
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

    /// Resolves the value of one hole.
    fn part(&self, hole: &Hole, name: Ident, escaped: Vec<char>, place: Place) -> Result<Part, String> {
        let accesses = hole.steps.iter().map(|step| self.access(step)).collect::<Result<_, _>>()?;
        let root = self.root(&hole.root)?;
        let is_argument = matches!(root, Root::Argument(_));
        let plain = is_argument.then(|| self.plain(hole, &escaped)).flatten();
        let argument = hole.name().filter(|_| is_argument).and_then(|name| self.binding(name));
        let references = argument.map_or(0, |argument| argument.references);
        let (is_integer, span) = (hole.format.is_some(), generated(self.literal));
        Ok(Part { name, root, accesses, references, escaped, place, is_integer, plain, span })
    }

    /// Returns the integer type of a hole that needs no escaping.
    fn plain(&self, hole: &Hole, escaped: &[char]) -> Option<&'static str> {
        let may_contain = |c: &char| c.is_ascii_digit() || *c == '-';
        let name = hole.name().filter(|_| !escaped.iter().any(may_contain))?;
        self.binding(name)?.integer
    }

    /// Resolves the first name of a hole, or returns the message of the mistake.
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

    /// Resolves one step of the template.
    fn access(&self, step: &Step) -> Result<Access, String> {
        let span = generated(self.literal);
        Ok(match step {
            Step::Field(field) if field.starts_with(|c: char| c.is_ascii_digit()) => {
                let index = field.parse().map_err(|_| too_large(field))?;
                Access::Field(Member::Unnamed(Index { index, span }))
            }
            Step::Field(field) => Access::Field(Member::Named(identifier(field, span))),
            Step::Call(method, inputs) => {
                let inputs = inputs.iter().map(|input| self.operand(input)).collect::<Result<_, _>>()?;
                Access::Call(identifier(method, span), inputs)
            }
            Step::Index(input) => Access::Index(self.operand(input)?),
        })
    }

    /// Resolves the argument of a call or an index.
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

    /// Returns `true` if a placeholder begins with the name.
    fn is_root(&self, name: &str) -> bool {
        self.roots.contains(name)
    }

    /// Returns `true` if a format string can capture the name.
    fn is_variable(&self, name: &str) -> bool {
        self.argument(name).is_some() || self.named.iter().any(|(other, _)| other.unraw() == name)
    }

    /// Returns the argument with the hygiene of its binding and the location of the literal.
    fn argument(&self, name: &str) -> Option<Ident> {
        let mut argument = self.binding(name)?.ident.clone();
        argument.set_span(argument.span().located_at(self.literal.span()));
        Some(argument)
    }

    fn binding(&self, name: &str) -> Option<&Binding> {
        self.bindings.iter().rev().find(|binding| binding.name == name)
    }

    /// Returns the message for an unknown name.
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
        // `{self}` alone is rejected, so the message proposes a field of it.
        let others: Vec<&str> = all.iter().map(String::as_str).filter(|other| *other != "self").collect();
        let is_method = others.len() < all.len();
        if is_method && errors::is_slip(name, "self") {
            return format!("{message} {list}: did you mean `self`?");
        }
        let field = if is_method { format!(", or `{{self.{name}}}` for a field of `self`") } else { String::new() };
        match (errors::nearest(name, others.iter().copied()), others.as_slice()) {
            (Some(meant), _) => format!("{message} {list}: did you mean `{{{meant}}}`?"),
            (None, []) if is_method => format!("{message} {list}: write `{{self.{name}}}` for a field of `self`"),
            (None, []) => format!("{message} none: write a key without placeholders, or add the argument"),
            (None, [only]) => format!("{message} {list}: write `{{{only}}}`{field}"),
            (None, _) => format!("{message} {list}: write one of them{field}"),
        }
    }
}

/// Returns `true` if a name is in capitals, as constants are.
fn is_constant(name: &str) -> bool {
    name.starts_with(char::is_uppercase) && !name.contains(char::is_lowercase)
}

/// Returns a span at the literal for generated code. With the bare span of the literal, the compiler would offer to
/// edit the user's text instead of the generated code.
fn generated(literal: &LitStr) -> Span {
    Span::mixed_site().located_at(literal.span())
}

fn too_large(number: &str) -> String {
    format!("`{number}` is too large for a field, an index or an argument in a key")
}

/// Creates a name for generated code, such as `__part0`.
fn numbered(name: &str, index: usize, literal: &LitStr) -> Ident {
    Ident::new(&format!("{name}{index}"), generated(literal))
}

/// Creates an identifier. A template contains raw identifiers without `r#`.
fn identifier(name: &str, span: Span) -> Ident {
    if is_keyword(name) { Ident::new_raw(name, span) } else { Ident::new(name, span) }
}
