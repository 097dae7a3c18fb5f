//! The key of one function: each placeholder of the template, matched with the value it names.
//!
//! 1. The template is read, and each placeholder that stands in it several times becomes one hole. What is wrong with
//!    the text is reported, and all the same the holes that could be read are looked at.
//! 2. Every named part, such as `id = order.id`, must be the root of a hole or what one takes, or it is reported as unused.
//! 3. The root of a hole is looked up: a path with `::` is a constant; one name is first a named part, then an
//!    argument, the last one of that name, and then, if it is written in capitals, a constant. Any other name is a
//!    mistake, and the message names the one that was probably meant.
//! 4. The steps from the root to the value are taken over. A name that a call or an index takes is looked up as in step
//!    3.
//! 5. If every hole is one name that is known, and no two holes have the same name, the user's own literal becomes the
//!    format string, which captures these names: then the compiler points inside the literal. Otherwise a format string
//!    is made, in which the values are called `__part0`, `__part1` and so on.
//! 6. A single argument whose type is an integer of the language needs no escaping, unless a digit or `-` follows it.

use super::bindings::Binding;
use super::mentions::Mentions;
use crate::errors::{self, Errors, InText};
use crate::keywords::is_keyword;
use crate::options::KeyTemplate;
use crate::template::{self, Hole, Input, Mistake, Step};
use proc_macro2::{Ident, Literal, Span};
use quote::ToTokens;
use std::collections::BTreeSet;
use syn::ext::IdentExt;
use syn::{Expr, Index, LitStr, Member};

/// A key, ready to be formatted.
pub(crate) struct Key {
    /// The template as it was written.
    pub(crate) template: String,
    /// The format string, which captures the `parts` by their names or is given them.
    pub(crate) format: Literal,
    pub(crate) parts: Vec<Part>,
    /// `id = order.id`
    pub(crate) named: Vec<Named>,
    /// The format string is the user's own token, so that the compiler points inside it.
    pub(crate) is_verbatim: bool,
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
    /// The placeholder has a format, so its value must be an integer.
    pub(crate) is_integer: bool,
    /// The name of the type of an argument that stands in the key without escaping: an integer of the language, which
    /// cannot contain what follows it.
    pub(crate) plain: Option<&'static str>,
    /// The span of the code for this value, which is reported at the literal.
    pub(crate) span: Span,
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
        self.parts.iter().any(|part| !matches!(part.root, Root::Constant(_)))
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
        self.parts.iter().flat_map(|part| {
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
    holes: &'a [(&'a Hole, Vec<char>)],
}

/// Reads the template and finds its values.
pub(crate) fn read(key: &KeyTemplate, function: &Ident, bindings: &[Binding], errors: &mut Errors) -> Option<Key> {
    let literal = &key.literal;
    let text = literal.value();
    let (template, mistakes) = template::parse(&text);
    for mistake in &mistakes {
        errors.at(literal.span(), mistake.under(&text));
    }
    let holes = template.distinct_holes();
    let scope = Scope { literal, function, bindings, named: &key.named, holes: &holes };
    for (name, _) in &key.named {
        let text = name.unraw().to_string();
        let is_used = scope.is_root(&text) || holes.iter().any(|(hole, _)| hole.takes(&text));
        if mistakes.is_empty() && !is_used {
            errors.at(name.span(), format!("`{name}` is not in the key: write `{{{name}}}` there, or leave it out"));
        }
    }
    let is_verbatim = holes.iter().enumerate().all(|(index, (hole, _))| {
        let is_again = |name: &str| holes.iter().take(index).any(|(other, _)| other.name() == Some(name));
        hole.name().is_some_and(|name| scope.is_variable(name) && !is_again(name))
    });
    let mut parts = Vec::new();
    for (index, (hole, escaped)) in holes.iter().enumerate() {
        let name = match hole.name() {
            Some(name) if is_verbatim => identifier(name, generated(literal)),
            _ => numbered("__part", index, literal),
        };
        match scope.part(hole, name, escaped.clone()) {
            Ok(part) => parts.push(part),
            Err(message) => match scope.in_text(hole, &holes).filter(|_| mistakes.is_empty()) {
                Some((wrong, names)) => errors.in_text(InText { literal: literal.clone(), names, wrong, message }),
                None => errors.at(literal.span(), Mistake::new(template.place(hole), message).under(&text)),
            },
        }
    }
    let format = if is_verbatim {
        literal.token()
    } else {
        let index = |hole: &Hole| holes.iter().position(|(other, _)| *other == hole).unwrap_or_default();
        let text = template.format_string(|hole| format!("__part{}", index(hole)));
        LitStr::new(&text, generated(literal)).token()
    };
    let is_whole = mistakes.is_empty() && parts.len() == holes.len();
    let named = key.named.iter().enumerate().map(|(index, (name, value))| Named {
        variable: numbered("__named", index, literal),
        value: value.clone(),
        is_input: !scope.is_root(&name.unraw().to_string()),
    });
    let named = named.collect();
    is_whole.then(|| Key { template: text, format, parts, named, is_verbatim })
}

impl Scope<'_> {
    /// The value of one hole.
    fn part(&self, hole: &Hole, name: Ident, escaped: Vec<char>) -> Result<Part, String> {
        let way = hole.steps.iter().map(|step| self.way(step)).collect::<Result<_, _>>()?;
        let root = self.root(&hole.root)?;
        let is_argument = matches!(root, Root::Argument(_));
        let plain = is_argument.then(|| self.plain(hole, &escaped)).flatten();
        let argument = hole.name().filter(|_| is_argument).and_then(|name| self.binding(name));
        let references = argument.map_or(0, |argument| argument.references);
        let (is_integer, span) = (hole.format.is_some(), generated(self.literal));
        Ok(Part { name, root, way, references, escaped, is_integer, plain, span })
    }

    /// The name of a hole in a literal that `format_args!` can read, so that the compiler points inside of it; and all
    /// names there.
    fn in_text(&self, hole: &Hole, holes: &[(&Hole, Vec<char>)]) -> Option<(Ident, Vec<Ident>)> {
        let name = |hole: &Hole| Some(identifier(hole.name()?, self.literal.span()));
        let names = holes.iter().map(|(hole, _)| name(hole)).collect::<Option<_>>()?;
        Some((name(hole).filter(|_| hole.format.is_none())?, names))
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
            Step::Field(field) => Way::Field(match field.parse() {
                Ok(index) => Member::Unnamed(Index { index, span }),
                Err(_) => Member::Named(identifier(field, span)),
            }),
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
                let number = number.parse().map_err(|_| format!("`{number}` is too large a number for a key"))?;
                let mut number = Literal::u64_unsuffixed(number);
                number.set_span(generated(self.literal));
                Ok(Operand::Number(number))
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
        self.holes.iter().any(|(hole, _)| hole.root.first().is_some_and(|root| root == name))
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
        let message = format!("`{name}` is not an argument of `{function}`, which");
        let list = errors::list(all.iter().map(String::as_str));
        match (errors::nearest(name, all.iter().map(String::as_str)), all.as_slice()) {
            (_, []) => format!("{message} has none: write a key without placeholders, or add the argument"),
            (Some(meant), _) => format!("{message} has {list}: did you mean `{{{meant}}}`?"),
            (None, [only]) => format!("{message} has {list}: write `{{{only}}}`"),
            (None, _) => format!("{message} has {list}: write one of them"),
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

/// A name for generated code, such as `__part0`.
fn numbered(name: &str, index: usize, literal: &LitStr) -> Ident {
    Ident::new(&format!("{name}{index}"), generated(literal))
}

/// A template names a raw identifier without its `r#`.
fn identifier(name: &str, span: Span) -> Ident {
    if is_keyword(name) { Ident::new_raw(name, span) } else { Ident::new(name, span) }
}
