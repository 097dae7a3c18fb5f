//! Reads the key: its template, and the parts that have names beside it.

use super::common::{expression, refuse, ungrouped};
use super::proposal;
use super::types::{KeyTemplate, Options};
use crate::errors;
use proc_macro2::TokenStream;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Expr, ExprField, ExprLit, Ident, Lit, LitStr, Member, Token, parenthesized, token};

pub(super) fn read_key(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    if input.peek(token::Paren) {
        return read_named_key(options, input);
    }
    let literal = template("key", expression(input, "key = \"order:{order_id}\"")?)?;
    options.key = Some(KeyTemplate { literal, named: Vec::new(), constant: None });
    Ok(())
}

/// `key("order:{id}", id = order.id)`
fn read_named_key(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    let content;
    let parentheses = parenthesized!(content in input);
    if content.is_empty() {
        let message = "`key` needs a value: write `key = \"order:{order_id}\"`";
        return Err(syn::Error::new(parentheses.span.join(), message));
    }
    let key = key_with_parts(&content);
    // What is left after a mistake must be read as well, or the parser reports it as a second mistake.
    content.parse::<TokenStream>()?;
    options.key = Some(key?);
    Ok(())
}

/// What stands between the parentheses of a key: the template, then the named parts, and `constant` among them.
fn key_with_parts(content: ParseStream<'_>) -> syn::Result<KeyTemplate> {
    let literal = template("key", expression(content, "key(\"order:{id}\", id = order.id)")?)?;
    let mut key = KeyTemplate { literal, named: Vec::new(), constant: None };
    while content.parse::<Option<Token![,]>>()?.is_some() && !content.is_empty() {
        let Some(name) = part_name(content)? else { continue };
        if content.parse::<Option<Token![=]>>()?.is_some() {
            if key.named.iter().any(|(earlier, _)| earlier.unraw() == name.unraw()) {
                return refuse(&name, format!("`{name}` is given twice: keep one"));
            }
            let value = expression(content, &format!("{name} = order.{name}"))?;
            key.named.push((name, value));
        } else if name == "constant" {
            key.constant = Some(name);
        } else {
            return refuse(&name, part_without_value(&name));
        }
    }
    if content.is_empty() {
        return Ok(key);
    }
    Err(content.error("expected `,` between two parts of the key"))
}

/// The name of a part of the key. Something else is a value without a name.
fn part_name(content: ParseStream<'_>) -> syn::Result<Option<Ident>> {
    let ahead = content.fork();
    let is_name = ahead.call(Ident::parse_any).is_ok()
        && (ahead.is_empty() || ahead.peek(Token![,]) || (ahead.peek(Token![=]) && !ahead.peek(Token![==])));
    if is_name {
        return content.call(Ident::parse_any).map(Some);
    }
    let value = expression(content, "key(\"order:{id}\", id = order.id)")?;
    let message = match &value {
        Expr::Lit(ExprLit { lit: Lit::Str(_), .. }) => {
            "this is a second key, and several keys are not available yet: write one, and what stands in it with a name, \
             as in `key(\"order:{id}\", id = order.id)`"
                .to_owned()
        }
        Expr::Field(ExprField { member: Member::Named(name), .. }) => {
            format!("this value has no name: write `{name} = {}`", proposal::squeezed(&value))
        }
        value => format!("this value has no name: write `part = {}`", proposal::squeezed(value)),
    };
    refuse(value, message)
}

/// What to say of a name that stands alone beside the template.
fn part_without_value(name: &Ident) -> String {
    /// What others could call a key that is the same for all calls.
    const CONSTANT: &[&str] = &["constant", "const", "static", "once", "global", "same", "single", "fixed"];
    match errors::nearest(&name.to_string(), CONSTANT.iter().copied()) {
        Some(_) => format!("unknown word `{name}`: did you mean `key(\"..\", constant)`?"),
        None => format!("`{name}` needs a value: write `{name} = order.{name}`"),
    }
}

/// The string literal that is the value of `key` or `path`.
fn template(option: &str, value: Expr) -> syn::Result<LitStr> {
    let example = if option == "key" { "key = \"order:{order_id}\"" } else { "path = \"/tenants/{tenant}\"" };
    match ungrouped(value) {
        Expr::Lit(ExprLit { lit: Lit::Str(value), .. }) => Ok(value),
        Expr::Lit(value) => refuse(&value, format!("`{option}` is text: write `{example}`")),
        Expr::Array(value) => refuse(&value, "several keys are not available yet: write one"),
        value => {
            let proposed = proposal::of_key(&value).filter(|_| option == "key");
            let example = proposed.as_deref().unwrap_or(example);
            refuse(&value, format!("`{option}` is a string literal: write `{example}`"))
        }
    }
}

pub(super) fn read_path(_: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    template("path", expression(input, "path = \"/tenants/{tenant}\"")?).map(drop)
}
