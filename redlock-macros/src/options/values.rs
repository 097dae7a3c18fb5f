//! Reads the value of each option.

use super::duration::{self, Time};
use super::types::{Contended, Failed, KeyTemplate, Lost, Options, Release, Waiting};
use crate::errors;
use proc_macro2::TokenStream;
use quote::ToTokens;
use std::time::Duration;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Expr, ExprLit, Ident, Lit, LitBool, LitStr, Path, Token, parenthesized, token};

/// 13 ms. With the default settings a node has 10 ms for its answer, and clock drift takes 2 ms and a hundredth of the
/// `ttl`. A smaller limit would let attributes compile whose every call fails; a larger one would refuse a `ttl` that
/// works. The runtime checks the same limit again, for a manager with other settings.
const SHORTEST_TTL: Duration = Duration::from_millis(13);

/// 30 days, the longest that the runtime accepts. A larger limit would let attributes compile whose every call fails.
const LONGEST_TTL: Duration = Duration::from_secs(30 * 24 * 3600);

/// The shortest window that the runtime accepts. A smaller limit would let attributes compile whose every call fails; a larger
/// one would refuse windows that work.
const SHORTEST_PERIOD: Duration = Duration::from_millis(100);

/// A mistake at all tokens of `value`.
fn refuse<T>(value: impl ToTokens, message: impl std::fmt::Display) -> syn::Result<T> {
    Err(syn::Error::new_spanned(value, message))
}

/// An expression that came through a `macro_rules!` variable stands in an invisible group.
fn ungrouped(value: Expr) -> Expr {
    match value {
        Expr::Group(group) => ungrouped(*group.expr),
        other => other,
    }
}

/// Reads the value of an option that is one of a few words, and gives what the word stands for.
fn word<T: Copy>(input: ParseStream<'_>, option: &str, words: &[(&str, T)]) -> syn::Result<T> {
    let names = || words.iter().map(|(word, _)| *word);
    let Ok(found) = input.call(Ident::parse_any) else {
        return Err(input.error(format!("`{option}` is one of {}", errors::list(names()))));
    };
    let text = found.unraw().to_string();
    if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
        return Ok(*value);
    }
    match errors::nearest(&text, names()) {
        Some(meant) => refuse(found, format!("unknown word `{text}`: did you mean `{option} = {meant}`?")),
        None => refuse(found, format!("unknown word `{text}`: `{option}` is one of {}", errors::list(names()))),
    }
}

pub(super) fn read_key(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    if input.peek(token::Paren) {
        return read_named_key(options, input);
    }
    options.key = Some(KeyTemplate { literal: template("key", input.parse()?)?, named: Vec::new() });
    Ok(())
}

/// `key("order:{id}", id = order.id)`
fn read_named_key(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    let content;
    parenthesized!(content in input);
    let key = key_with_parts(&content);
    // What is left after a mistake must be read as well, or the parser reports it as a second mistake.
    content.parse::<TokenStream>()?;
    options.key = Some(key?);
    Ok(())
}

/// What stands between the parentheses of a key: the template, then the named parts.
fn key_with_parts(content: ParseStream<'_>) -> syn::Result<KeyTemplate> {
    let literal = template("key", content.parse()?)?;
    let mut named: Vec<(Ident, Expr)> = Vec::new();
    while content.parse::<Option<Token![,]>>()?.is_some() && !content.is_empty() {
        let name = content.call(Ident::parse_any)?;
        if content.parse::<Option<Token![=]>>()?.is_none() {
            return refuse(&name, format!("`{name}` needs a value: write `{name} = order.{name}`"));
        }
        if named.iter().any(|(earlier, _)| earlier.unraw() == name.unraw()) {
            return refuse(&name, format!("`{name}` is given twice: keep one"));
        }
        named.push((name, content.parse()?));
    }
    if content.is_empty() {
        return Ok(KeyTemplate { literal, named });
    }
    Err(content.error("expected `,` between two parts of the key"))
}

/// The string literal that is the value of `key` or `path`.
fn template(option: &str, value: Expr) -> syn::Result<LitStr> {
    let example = if option == "key" { "key = \"order:{order_id}\"" } else { "path = \"/tenants/{tenant}\"" };
    match ungrouped(value) {
        Expr::Lit(ExprLit { lit: Lit::Str(value), .. }) => Ok(value),
        Expr::Lit(value) => refuse(&value, format!("`{option}` is text: write `{example}`")),
        Expr::Array(value) => refuse(&value, "several keys are not available yet: write one"),
        value => refuse(&value, format!("`{option}` is a string literal: write `{example}`")),
    }
}

pub(super) fn read_ttl(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    let value: Expr = input.parse()?;
    let time = duration::read("ttl", value.clone())?;
    if let Time::Literal(ttl) = time {
        usable_ttl(&value, ttl)?;
    }
    options.ttl = Some(time);
    Ok(())
}

/// Refuses a `ttl` under which no lock could be held, or which no node would accept.
fn usable_ttl(value: &Expr, ttl: Duration) -> syn::Result<()> {
    if ttl.is_zero() {
        return refuse(value, "a lock with a `ttl` of zero is never held: write `ttl = 30`");
    }
    if ttl < SHORTEST_TTL {
        return refuse(
            value,
            format!(
                "a `ttl` of {ttl:?} is over before the answer of a node can prove anything: it takes 10 ms for the \
                 answer and more than 2 ms for clock drift, so write at least `ttl = {}ms`",
                SHORTEST_TTL.as_millis()
            ),
        );
    }
    if ttl > LONGEST_TTL {
        return refuse(value, "this `ttl` is longer than any lock lives: at most 30 days are allowed");
    }
    Ok(())
}

pub(super) fn read_wait(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    let value = match ungrouped(input.parse()?) {
        Expr::Path(path) if path.path.is_ident("none") => Waiting::None,
        Expr::Path(path) if path.path.is_ident("forever") => Waiting::Forever,
        Expr::Path(path) if path.path.is_ident("None") => {
            return refuse(path, "`None` is not a time: write `wait = none`");
        }
        other => Waiting::For(duration::read("wait", other)?),
    };
    options.wait = Some(value);
    Ok(())
}

pub(super) fn read_renew(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    let Ok(value) = input.parse::<LitBool>() else {
        return Err(input.error("`renew` is `true` or `false`"));
    };
    options.renew = Some(value.value);
    Ok(())
}

pub(super) fn read_max_hold(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    options.max_hold = Some(some_time("max_hold", input)?);
    Ok(())
}

pub(super) fn read_min_hold(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    options.min_hold = Some(some_time("min_hold", input)?);
    Ok(())
}

pub(super) fn read_once_per(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    let value: Expr = input.parse()?;
    let time = duration::read("once_per", value.clone())?;
    if let Time::Literal(period) = time {
        usable_period(&value, period)?;
    }
    options.once_per = Some(time);
    Ok(())
}

/// Refuses a window that the runtime would refuse.
fn usable_period(value: &Expr, period: Duration) -> syn::Result<()> {
    if period < SHORTEST_PERIOD {
        return refuse(
            value,
            format!(
                "a window of {period:?} is too short for the clocks of servers: write at least `once_per = {}ms`",
                SHORTEST_PERIOD.as_millis()
            ),
        );
    }
    if period > LONGEST_TTL {
        return refuse(value, "this `once_per` is longer than any key is kept: at most 30 days are allowed");
    }
    Ok(())
}

pub(super) fn read_window_start(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    options.window_start = Some(duration::read("window_start", input.parse()?)?);
    Ok(())
}

/// A duration that would have no effect if it were zero.
fn some_time(option: &str, input: ParseStream<'_>) -> syn::Result<Time> {
    let value: Expr = input.parse()?;
    match duration::read(option, value.clone())? {
        Time::Literal(time) if time.is_zero() => {
            refuse(value, format!("a `{option}` of zero has no effect: leave it out"))
        }
        time => Ok(time),
    }
}

pub(super) fn read_mode(_: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    word(input, "mode", &[("exclusive", ()), ("shared", ())])
}

pub(super) fn read_path(_: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    template("path", input.parse()?).map(drop)
}

pub(super) fn read_permits(_: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    let value = ungrouped(input.parse()?);
    match &value {
        Expr::Lit(ExprLit { lit: Lit::Int(count), .. }) => match count.base10_parse::<u32>() {
            Ok(0) => refuse(value, "with no permits nobody could ever enter: write `permits = 1` or more"),
            Ok(_) => Ok(()),
            Err(_) => refuse(value, "`permits` is a number of holders: write `permits = 4`"),
        },
        Expr::Lit(_) | Expr::Unary(_) => refuse(value, "`permits` is a number of holders: write `permits = 4`"),
        _ => Ok(()),
    }
}

pub(super) fn read_guard(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    let Ok(name) = input.parse::<Ident>() else {
        return Err(input.error("`guard` is the name by which the body sees its lock: write `guard = lock`"));
    };
    options.guard = Some(name);
    Ok(())
}

pub(super) fn read_on_contended(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    let ahead = input.fork();
    if let Ok(word) = ahead.parse::<Ident>()
        && (ahead.is_empty() || ahead.peek(Token![,]))
        && (word == "skip" || word == "error")
    {
        input.parse::<Ident>()?;
        options.on_contended = (word == "skip").then_some(Contended::Skip);
        return Ok(());
    }
    options.on_contended = Some(Contended::Handler(handler("on_contended", input)?));
    Ok(())
}

pub(super) fn read_on_failure(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    options.on_failure = word(input, "on_failure", &[("keep", Failed::Keep), ("give_back", Failed::GiveBack)])?;
    Ok(())
}

pub(super) fn read_on_error(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    options.on_error = Some(handler("on_error", input)?);
    Ok(())
}

/// A handler is a function or a closure. Of those the compiler judges; only a literal is refused here, because it never
/// is one.
fn handler(option: &str, input: ParseStream<'_>) -> syn::Result<Expr> {
    match input.parse()? {
        Expr::Lit(value) => {
            refuse(&value, format!("`{option}` is called with the error: write `{option} = |error| ..`"))
        }
        handler => Ok(handler),
    }
}

pub(super) fn read_on_lost(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    options.on_lost = word(input, "on_lost", &[("cancel", Lost::Cancel), ("continue", Lost::Continue)])?;
    Ok(())
}

pub(super) fn read_release(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    let words = [("background", Release::Background), ("confirmed", Release::Confirmed)];
    options.release = word(input, "release", &words)?;
    Ok(())
}

pub(super) fn read_manager(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    options.manager = Some(input.parse()?);
    Ok(())
}

pub(super) fn read_crate(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    options.krate = Some(input.call(Path::parse_mod_style)?);
    Ok(())
}

pub(super) fn read_attribute(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    let Ok(name) = input.parse::<Ident>() else {
        return Err(
            input.error("`attribute` is the last name in the path of the attribute: write `attribute = locked`")
        );
    };
    options.attribute = Some(name);
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "one type for all rows of the table")]
pub(super) fn read_fencing(options: &mut Options, _: ParseStream<'_>) -> syn::Result<()> {
    options.is_fenced = true;
    Ok(())
}

/// Reads a flag that nothing acts on yet.
#[expect(clippy::unnecessary_wraps, reason = "one type for all rows of the table")]
pub(super) fn flag(_: &mut Options, _: ParseStream<'_>) -> syn::Result<()> {
    Ok(())
}
