//! Proposes a template instead of an expression for the key.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, ExprLit, Ident, Lit, LitStr, Macro, Token};

/// Returns the option with an equivalent template: `key = "{order.id}"` for `order.id`, and `key("order:{part}", part =
/// f(id))` for `format!("order:{}", f(id))`.
pub(super) fn for_key(value: &Expr) -> Option<String> {
    match value {
        Expr::Macro(call) if call.mac.path.is_ident("format") => for_format(&call.mac),
        value => placeholder(value).map(|text| format!("key = \"{text}\"")),
    }
}

/// Returns the expression as a part of a template: `{order.id}`, or the text of a literal.
fn placeholder(value: &Expr) -> Option<String> {
    if let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = without_conversions(value) {
        let text = text.token().to_string();
        return Some(text.trim_matches('"').to_owned());
    }
    value_path(value).map(|path| format!("{{{path}}}"))
}

/// Returns the path to a value in the syntax of a placeholder.
fn value_path(value: &Expr) -> Option<String> {
    match without_conversions(value) {
        Expr::Path(path) if path.qself.is_none() && path.path.leading_colon.is_none() => {
            let is_plain = path.path.segments.iter().all(|segment| segment.arguments.is_none());
            is_plain.then(|| squeezed(path))
        }
        Expr::Field(field) => Some(format!("{}.{}", value_path(&field.base)?, squeezed(&field.member))),
        Expr::MethodCall(call) if call.args.is_empty() && call.turbofish.is_none() => {
            Some(format!("{}.{}()", value_path(&call.receiver)?, call.method))
        }
        _ => None,
    }
}

/// Returns `id` for `&id`, `id.clone()` and `id.to_string()`.
fn without_conversions(value: &Expr) -> &Expr {
    const CONVERSIONS: &[&str] = &["as_ref", "as_str", "clone", "into", "to_owned", "to_string"];
    match value {
        Expr::Reference(value) => without_conversions(&value.expr),
        Expr::Paren(value) => without_conversions(&value.expr),
        Expr::Group(value) => without_conversions(&value.expr),
        Expr::MethodCall(call) if CONVERSIONS.iter().any(|conversion| call.method == conversion) => {
            without_conversions(&call.receiver)
        }
        value => value,
    }
}

/// Returns the key for `format!("order:{}:{}", order.id, total())`.
fn for_format(call: &Macro) -> Option<String> {
    let (literal, given) = read_format.parse2(call.tokens.clone()).ok()?;
    let mut template = literal.value();
    let mut named = String::new();
    for (index, (name, value)) in given.iter().enumerate() {
        let part = match name {
            Some(name) => name.to_string(),
            None if given.len() == 1 => "part".to_owned(),
            None => format!("part{}", index + 1),
        };
        if name.is_none() {
            let hole = placeholder(value).unwrap_or_else(|| format!("{{{part}}}"));
            template = template.contains("{}").then(|| template.replacen("{}", &hole, 1))?;
        }
        if name.is_some() || placeholder(value).is_none() {
            named.extend([", ", &part, " = ", &squeezed(value)]);
        }
    }
    let is_whole = !template.contains("{}") && !template.contains(['"', '\\']);
    let written =
        if named.is_empty() { format!("key = \"{template}\"") } else { format!("key(\"{template}\"{named})") };
    is_whole.then_some(written)
}

type Given = Vec<(Option<Ident>, Expr)>;

/// Parses the arguments of `format!`.
fn read_format(input: ParseStream<'_>) -> syn::Result<(LitStr, Given)> {
    let literal = input.parse()?;
    let mut given = Vec::new();
    while input.parse::<Option<Token![,]>>()?.is_some() && !input.is_empty() {
        let is_named = input.peek(Ident) && input.peek2(Token![=]) && !input.peek2(Token![==]);
        let name = if is_named { Some(input.parse()?) } else { None };
        input.parse::<Option<Token![=]>>()?;
        given.push((name, input.parse()?));
    }
    // Other tokens are not valid in `format!`.
    let rest: TokenStream = input.parse()?;
    if rest.is_empty() { Ok((literal, given)) } else { Err(input.error("not a format")) }
}

/// Prints code without the spaces between its tokens.
pub(super) fn squeezed(tokens: impl ToTokens) -> String {
    let text = tokens.to_token_stream().to_string();
    text.replace(" . ", ".").replace(" :: ", "::").replace(" (", "(").replace("& ", "&").replace(" ,", ",")
}

#[cfg(test)]
mod tests {
    use super::for_key;

    #[test]
    fn expressions_become_templates() {
        let table = [
            ("id", Some("key = \"{id}\"")),
            ("&order.id", Some("key = \"{order.id}\"")),
            ("id.to_string()", Some("key = \"{id}\"")),
            ("order.number()", Some("key = \"{order.number()}\"")),
            ("Self::KEY", Some("key = \"{Self::KEY}\"")),
            ("\"nightly\".to_owned()", Some("key = \"nightly\"")),
            ("format!(\"order:{order_id}\")", Some("key = \"order:{order_id}\"")),
            ("format!(\"order:{}:{}\", tenant, order.id)", Some("key = \"order:{tenant}:{order.id}\"")),
            ("format!(\"order:{}\", f(id))", Some("key(\"order:{part}\", part = f(id))")),
            ("format!(\"order:{x}\", x = order.id)", Some("key(\"order:{x}\", x = order.id)")),
            ("format!(\"order:{}\")", None),
            ("make(id)", None),
            ("if a { b } else { c }", None),
        ];
        for (value, expected) in table {
            assert_eq!(for_key(&syn::parse_str(value).unwrap()).as_deref(), expected, "{value}");
        }
    }
}
