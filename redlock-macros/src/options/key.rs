//! Reads `key` and `path`: the templates and their named parts.

use super::aliases;
use super::common::{expression, refuse, ungrouped};
use super::proposal;
use super::types::{KeyTemplate, KeyTemplates, Mode, Options};
use crate::errors;
use proc_macro2::TokenStream;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Expr, ExprField, ExprLit, Ident, Lit, LitStr, Member, Token, parenthesized, token};

/// Maximum number of keys in one request. The runtime checks it again. Too large: attributes compile whose every call
/// fails.
const MOST: usize = 16;

pub(super) fn read_key(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    options.key = Some(read(KEY, input)?);
    Ok(())
}

pub(super) fn read_path(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    options.key = Some(read(PATH, input)?);
    Ok(())
}

/// Option that contains the key or path templates: `key` or `path`.
#[derive(Clone, Copy)]
struct Kind {
    option: &'static str,
    is_path: bool,
    example: &'static str,
    named_example: &'static str,
    list_example: &'static str,
}

const KEY: Kind = Kind {
    option: "key",
    is_path: false,
    example: "key = \"order:{order_id}\"",
    named_example: "key(\"order:{id}\", id = order.id)",
    list_example: "key = [\"account:{from}\", \"account:{to}\"]",
};

const PATH: Kind = Kind {
    option: "path",
    is_path: true,
    example: "path = \"/{tenant}/{folder}\"",
    named_example: "path(\"/{tenant}/{folder}\", folder = file.folder)",
    list_example: "path = [\"/{tenant}/{from}\", \"/{tenant}/{to}\"]",
};

fn read(kind: Kind, input: ParseStream<'_>) -> syn::Result<KeyTemplates> {
    if input.peek(token::Paren) {
        return read_named(kind, input);
    }
    let (first, others) = templates(kind, expression(input, kind.example)?)?;
    Ok(KeyTemplates { first, others, named: Vec::new(), constant: None })
}

/// Reads `key("order:{id}", id = order.id)`.
fn read_named(kind: Kind, input: ParseStream<'_>) -> syn::Result<KeyTemplates> {
    let content;
    let parentheses = parenthesized!(content in input);
    if content.is_empty() {
        let message = format!("`{}` needs a value: write `{}`", kind.option, kind.example);
        return Err(syn::Error::new(parentheses.span.join(), message));
    }
    let key = key_with_parts(kind, &content);
    // The rest after a mistake is consumed, so that the parser does not report it again.
    content.parse::<TokenStream>()?;
    key
}

/// Reads the parentheses of a key: the template, then the named parts and `constant`.
fn key_with_parts(kind: Kind, content: ParseStream<'_>) -> syn::Result<KeyTemplates> {
    let (first, others) = templates(kind, expression(content, kind.named_example)?)?;
    let mut key = KeyTemplates { first, others, named: Vec::new(), constant: None };
    while content.parse::<Option<Token![,]>>()?.is_some() && !content.is_empty() {
        let Some(name) = part_name(kind, content)? else { continue };
        if content.parse::<Option<Token![=]>>()?.is_some() {
            if key.named.iter().any(|(earlier, _)| earlier.unraw() == name.unraw()) {
                return refuse(&name, format!("`{name}` is given twice: remove one of the two"));
            }
            let value = expression(content, &format!("{name} = order.{name}"))?;
            key.named.push((name, value));
        } else if name == "constant" {
            key.constant = Some(name);
        } else {
            return refuse(&name, part_without_value(kind, &name));
        }
    }
    if content.is_empty() {
        return Ok(key);
    }
    Err(content.error("expected `,` between two parts of the key"))
}

/// Reads the name of a part of the key. Any other token is a value without a name.
fn part_name(kind: Kind, content: ParseStream<'_>) -> syn::Result<Option<Ident>> {
    let ahead = content.fork();
    let is_name = ahead.call(Ident::parse_any).is_ok()
        && (ahead.is_empty() || ahead.peek(Token![,]) || (ahead.peek(Token![=]) && !ahead.peek(Token![==])));
    if is_name {
        return content.call(Ident::parse_any).map(Some);
    }
    let value = expression(content, kind.named_example)?;
    let message = match &value {
        Expr::Lit(ExprLit { lit: Lit::Str(_), .. }) => second(kind),
        Expr::Field(ExprField { member: Member::Named(name), .. }) => {
            format!("this value has no name: write `{name} = {}`", proposal::squeezed(&value))
        }
        value => format!("this value has no name: write `part = {}`", proposal::squeezed(value)),
    };
    refuse(value, message)
}

/// Returns the message for a text without a name after a key.
pub(super) fn second_key() -> String {
    second(KEY)
}

/// Returns the message for a text without a name after a path.
pub(super) fn second_path() -> String {
    second(PATH)
}

fn second(kind: Kind) -> String {
    format!("this is a second {}: put both into a list, as in `{}`", kind.option, kind.list_example)
}

/// Returns the message for a name without a value after the template.
fn part_without_value(kind: Kind, name: &Ident) -> String {
    /// Words for a key that is the same for all calls.
    const CONSTANT: &[&str] = &["constant", "const", "static", "once", "global", "same", "single", "fixed"];
    match errors::nearest(&name.to_string(), CONSTANT.iter().copied()) {
        Some(_) => format!("unknown word `{name}`: did you mean `{}(\"..\", constant)`?", kind.option),
        None => format!("`{name}` needs a value: write `{name} = order.{name}`"),
    }
}

/// Reads the value of `key` or `path`: one template, or a list of templates.
fn templates(kind: Kind, value: Expr) -> syn::Result<(KeyTemplate, Vec<KeyTemplate>)> {
    let array = match ungrouped(value) {
        Expr::Array(array) => array,
        value => {
            return Ok((
                KeyTemplate { literal: literal(kind, value, false)?, is_path: kind.is_path, mode: None },
                Vec::new(),
            ));
        }
    };
    let count = array.elems.len();
    if count > MOST {
        let what = if kind.is_path { "paths" } else { "keys" };
        return refuse(
            &array,
            format!(
                "this list has {count} {what}, but at most {MOST} are allowed: write a single one for the whole group"
            ),
        );
    }
    let mut all: Vec<KeyTemplate> = Vec::new();
    for element in array.elems.clone() {
        let template = listed(kind, element)?;
        if all.iter().any(|earlier| earlier.literal.value() == template.literal.value()) {
            let text = template.literal.token();
            return refuse(&template.literal, format!("`{text}` is in this list twice: remove one of the two"));
        }
        all.push(template);
    }
    let mut all = all.into_iter();
    match all.next() {
        Some(first) => Ok((first, all.collect())),
        None => {
            refuse(&array, format!("this list is empty, so nothing would be locked: write `{}`", kind.list_example))
        }
    }
}

/// Reads an element of a list: `"job:{id}"`, or `shared("config")`.
fn listed(kind: Kind, element: Expr) -> syn::Result<KeyTemplate> {
    let template = |value, mode| Ok(KeyTemplate { literal: literal(kind, value, true)?, is_path: kind.is_path, mode });
    let mut call = match ungrouped(element) {
        Expr::Call(call) => call,
        value => return template(value, None),
    };
    let function = proposal::squeezed(&call.func);
    let mode = match function.as_str() {
        "shared" => Mode::Shared,
        "exclusive" => Mode::Exclusive,
        _ => {
            let Expr::Path(_) = &*call.func else { return template(Expr::Call(call), None) };
            let meant = aliases::mode(&function).or_else(|| errors::nearest(&function, ["shared", "exclusive"]));
            return match meant {
                Some(meant) => {
                    refuse(&call.func, format!("unknown word `{function}`: did you mean `{meant}(\"..\")`?"))
                }
                None => template(Expr::Call(call), None),
            };
        }
    };
    match (call.args.pop(), call.args.is_empty()) {
        (Some(value), true) => template(value, Some(mode)),
        _ => refuse(
            &call,
            format!("`{function}(..)` takes exactly one string: write `{function}(\"config:{{tenant}}\")`"),
        ),
    }
}

/// Reads the string literal of a template.
fn literal(kind: Kind, value: Expr, is_listed: bool) -> syn::Result<LitStr> {
    let Kind { option, example, .. } = kind;
    match ungrouped(value) {
        Expr::Lit(ExprLit { lit: Lit::Str(value), .. }) => Ok(value),
        Expr::Lit(value) => refuse(&value, format!("`{option}` must be a string literal: write `{example}`")),
        Expr::Array(value) => refuse(&value, format!("a list cannot contain a list: write `{}`", kind.list_example)),
        value => {
            let proposed = proposal::for_key(&value).filter(|_| !kind.is_path);
            let example = proposed.as_deref().unwrap_or(example);
            let example = if is_listed { example.strip_prefix("key = ").unwrap_or(example) } else { example };
            refuse(&value, format!("`{option}` must be a string literal: write `{example}`"))
        }
    }
}
