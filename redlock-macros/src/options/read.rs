//! Reads the tokens of the attribute into options, with the table.
//!
//! 1. A name is read. If there is none, or the table has no row for it, the mistake is recorded and its value is
//!    skipped.
//! 2. The tokens after the name are compared with the form in the row: `= value`, `(..)`, or nothing for a flag.
//! 3. The row's own function reads the value into the options.
//! 4. A failure is recorded, and reading continues after the next comma that a name follows. All mistakes of an
//!    attribute are thus reported in one build.
//! 5. The defaults of a surrounding block are in the attribute as `__defaults(..)`, written by `expand`. They are read
//!    first, the outer ones before the inner ones, so that inner options replace them. Their mistakes are reported at
//!    the block, and not for each function.

use super::aliases::{self, FAIR};
use super::dependency::{self, Dependency};
use super::duration;
use super::key;
use super::table::{ATTRIBUTE, Form, OPTIONS, Row};
use super::types::Options;
use crate::errors::{self, Errors};
use proc_macro2::{Span, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, Ident, Lit, LitStr, Token, token};

/// Name of the defaults of a block in the attributes of its functions.
pub(crate) const DEFAULTS: &str = "__defaults";

/// Reads all readable options of a function.
pub(crate) fn read(tokens: TokenStream, errors: &mut Errors) -> Options {
    let mut options = Options::default();
    let (own, defaults) = split_defaults(tokens);
    for tokens in defaults {
        read_all(&mut options, tokens, &mut Errors::default());
        options.turn_into_defaults();
    }
    read_all(&mut options, own, errors);
    if options.krate.is_none() && options.name("crate").is_none() {
        find_crate(&mut options, errors);
    }
    options
}

/// Reads the defaults of a block.
pub(crate) fn read_defaults(tokens: TokenStream, errors: &mut Errors) -> Options {
    let mut options = Options { is_for_many: true, ..Options::default() };
    read_all(&mut options, tokens, errors);
    options
}

fn read_all(options: &mut Options, tokens: TokenStream, errors: &mut Errors) {
    let parser = |input: ParseStream<'_>| {
        while !input.is_empty() {
            if let Err(error) = read_option(options, input, errors) {
                errors.add(error);
                skip_to_next_option(input)?;
            }
        }
        Ok(())
    };
    let end = parser.parse2(tokens);
    errors.ok(end);
}

/// Splits the tokens of the attribute from the defaults of each surrounding block, the outer ones first.
fn split_defaults(tokens: TokenStream) -> (TokenStream, Vec<TokenStream>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is_mark = |token: &TokenTree| matches!(token, TokenTree::Ident(word) if word == DEFAULTS);
    let Some(first) = tokens.iter().position(is_mark) else { return (tokens.into_iter().collect(), Vec::new()) };
    let defaults = tokens.iter().skip(first).filter_map(|token| match token {
        TokenTree::Group(group) => Some(group.stream()),
        _ => None,
    });
    let defaults = defaults.collect();
    (tokens.into_iter().take(first).collect(), defaults)
}

/// Finds the value of `crate` if it is not given.
fn find_crate(options: &mut Options, errors: &mut Errors) {
    match dependency::find() {
        Dependency::Usual => {}
        Dependency::Renamed(name) => options.krate = Some(dependency::path(name)),
        Dependency::Several => errors.at(
            Span::call_site(),
            "this crate depends on two versions of `redlock-runtime`, neither under its usual name: write which one \
             to use, as in `crate = locks`",
        ),
        Dependency::Missing => errors.at(
            Span::call_site(),
            "this crate does not depend on `redlock-runtime` under any name: add the dependency, or write the path of \
             its re-export, as in `crate = shop_base::redlock_runtime`",
        ),
    }
}

fn read_option(options: &mut Options, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<()> {
    options.has_key |= input.peek(LitStr);
    let name = read_name(options, input)?;
    let text = name.unraw().to_string();
    options.written.push(name.clone());
    if options.is_for_many && text == ATTRIBUTE.name {
        before_value(input, &name, &ATTRIBUTE)?;
        (ATTRIBUTE.read)(options, input)?;
        return end_of_option(input);
    }
    let Some(row) = OPTIONS.iter().find(|row| row.name == text) else {
        errors.at(name.span(), unknown(options, &name, &text));
        return skip_value(input);
    };
    if let Some(first) = options.own_name(&text) {
        let both = match text.as_str() {
            "key" => ", or put both into a list, as in `key = [\"a:{one}\", \"a:{other}\"]`",
            "path" => ", or put both into a list, as in `path = [\"/{tenant}/a\", \"/{tenant}/b\"]`",
            _ => "",
        };
        errors.at(first.span(), format!("`{text}` is given twice: remove one of the two{both}"));
        errors.at(name.span(), format!("`{text}` is given a second time here"));
    }
    options.has_key |= text == "key" || text == "path";
    options.names.push(name.clone());
    before_value(input, &name, row)?;
    (row.read)(options, input)?;
    end_of_option(input)
}

/// Returns the message for an unknown option. If it means the key, the key is not reported as missing.
fn unknown(options: &mut Options, name: &Ident, text: &str) -> String {
    if FAIR.contains(&text) {
        options.fair = Some(name.clone());
        return format!(
            "unknown option `{text}`: the order in which waiting calls are served cannot be chosen, so remove it"
        );
    }
    let names: Vec<&str> = OPTIONS.iter().map(|row| row.name).collect();
    let near = || errors::nearest(text, names.iter().copied()).map(|option| (option, String::new()));
    if let Some((meant, hint)) = aliases::meant(text, &names).or_else(near) {
        options.has_key |= matches!(meant, "key" | "path");
        return format!("unknown option `{text}`: did you mean `{meant}`{hint}?");
    }
    format!("unknown option `{text}`: the options are {}", errors::list(names.iter().copied()))
}

/// Reads the name of an option. Any other token is a value without a name.
fn read_name(options: &Options, input: ParseStream<'_>) -> syn::Result<Ident> {
    if input.peek(Ident::peek_any) {
        return input.call(Ident::parse_any);
    }
    let message = match input.fork().parse::<Lit>() {
        Ok(Lit::Str(text)) if duration::is_text_of_one(&text.value()) => {
            format!("this value has no name: write `ttl = {0}` or `wait = {0}`", text.token())
        }
        Ok(Lit::Str(_)) if options.own_name("path").is_some() => key::second_path(),
        Ok(Lit::Str(_)) if options.own_name("key").is_some() => key::second_key(),
        Ok(Lit::Str(text)) => format!("this value has no name: write `key = {}`", text.token()),
        Ok(_) => "this value has no name: write `ttl = ..` or `wait = ..`".to_owned(),
        Err(_) => "expected an option, as in `key = \"order:{order_id}\"`".to_owned(),
    };
    Err(input.error(message))
}

/// Reads the `=`, and checks that a value follows.
fn before_value(input: ParseStream<'_>, name: &Ident, row: &Row) -> syn::Result<()> {
    let ends = |input: ParseStream<'_>| input.is_empty() || input.peek(Token![,]);
    match row.form {
        Form::Flag if ends(input) => return Ok(()),
        Form::Flag => return Err(input.error(format!("`{name}` is a flag and takes no value: write `{name}`"))),
        Form::ValueOrList if input.peek(token::Paren) => return Ok(()),
        Form::Value | Form::ValueOrList => {}
    }
    let equals = input.parse::<Option<Token![=]>>()?;
    if equals.is_none() && !ends(input) {
        return Err(input.error(format!("expected `=`: write `{}`", row.example)));
    }
    if equals.is_none() || ends(input) {
        return Err(syn::Error::new(name.span(), format!("`{name}` needs a value: write `{}`", row.example)));
    }
    Ok(())
}

fn end_of_option(input: ParseStream<'_>) -> syn::Result<()> {
    if input.is_empty() || input.parse::<Option<Token![,]>>()?.is_some() {
        return Ok(());
    }
    let next = input.fork().parse::<Ident>();
    if let Ok(unit) = next.as_ref().map(Ident::to_string)
        && duration::is_unit(&unit)
    {
        return Err(input.error("a duration has no space before its unit: write it as in `ttl = 30s`"));
    }
    Err(input.error("expected `,` between two options"))
}

/// Skips the value of an unknown option.
fn skip_value(input: ParseStream<'_>) -> syn::Result<()> {
    if input.peek(token::Paren) {
        input.parse::<TokenTree>()?;
    } else if input.parse::<Option<Token![=]>>()?.is_some() {
        input.parse::<Expr>()?;
    }
    end_of_option(input)
}

/// Skips unreadable tokens up to the next option after a comma. A comma may also be inside the value.
fn skip_to_next_option(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.is_empty() {
        if input.parse::<Option<Token![,]>>()?.is_some() {
            let ahead = input.fork();
            let is_name = ahead.peek(Lit) || ahead.call(Ident::parse_any).is_ok();
            if ahead.is_empty() || (is_name && !ahead.peek(Token![|])) {
                return Ok(());
            }
        } else {
            input.parse::<TokenTree>()?;
        }
    }
    Ok(())
}
