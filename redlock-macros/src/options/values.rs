//! Reads the value of each option except the key.

use super::aliases;
use super::common::{expression, is_value_path, refuse, refuse_quotes, refuse_text, ungrouped, unquoted, word};
use super::duration::{self, Time};
use super::proposal;
use super::types::{Contended, Failed, Lost, Mode, Nested, Options, Order, Release, Waiting};
use std::time::Duration;
use syn::parse::ParseStream;
use syn::{Expr, ExprLit, Ident, Lit, LitStr, Path, Token};

/// Minimum `ttl`. With the default settings, a node has 10 ms to answer, and clock drift takes 2 ms and a hundredth of
/// the `ttl`. Too small: attributes compile whose every call fails. Too large: a `ttl` that works is rejected. The
/// runtime checks the limit again, for managers with other settings.
const SHORTEST_TTL: Duration = Duration::from_millis(13);

/// Maximum `ttl` of the runtime: 30 days. Too large: attributes compile whose every call fails.
const MAX_TTL: Duration = Duration::from_secs(30 * 24 * 3600);

/// Minimum window of the runtime. Too small: attributes compile whose every call fails. Too large: windows that work
/// are rejected.
const SHORTEST_PERIOD: Duration = Duration::from_millis(100);

pub(super) fn read_ttl(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    let value = expression(input, "ttl = 30")?;
    let time = duration::read("ttl", value.clone())?;
    if let Time::Literal(ttl) = time {
        validate_ttl(&value, ttl)?;
    }
    options.ttl = Some(time);
    Ok(())
}

/// Rejects a `ttl` that is too short to hold a lock, or too long for the runtime.
fn validate_ttl(value: &Expr, ttl: Duration) -> syn::Result<()> {
    if ttl.is_zero() {
        return refuse(value, "a lock with a `ttl` of zero is never held: write `ttl = 30`");
    }
    if ttl < SHORTEST_TTL {
        return refuse(
            value,
            format!(
                "a `ttl` of {ttl:?} is too short to acquire a lock: a node has 10 ms to answer and clock drift takes \
                 more than 2 ms, so write at least `ttl = {}ms`",
                SHORTEST_TTL.as_millis()
            ),
        );
    }
    if ttl > MAX_TTL {
        return refuse(value, "this `ttl` is too long: write 30 days at most");
    }
    Ok(())
}

pub(super) fn read_wait(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    if let Some((text, word)) = unquoted(input, ["none", "forever"]) {
        return refuse_quotes("wait", &text, word);
    }
    let value = match ungrouped(expression(input, "wait = \"5s\"")?) {
        Expr::Path(path) if path.path.is_ident("none") => Waiting::None,
        Expr::Path(path) if path.path.is_ident("forever") => Waiting::Forever,
        Expr::Path(path) if path.path.is_ident("None") => {
            return refuse(path, "`None` is not a duration: write `wait = none`");
        }
        Expr::Lit(ExprLit { lit: Lit::Bool(value), .. }) => {
            let word = if value.value { "forever" } else { "none" };
            return refuse(&value, format!("`{}` is not a duration: write `wait = {word}`", value.value));
        }
        // The generated code converts the value again, so the type of this conversion would be unknown.
        Expr::MethodCall(call) if call.method == "into" && !duration::is_literal(&call.receiver) => {
            let value = proposal::squeezed(&call.receiver);
            return refuse(call, format!("`wait` converts its value itself: write `wait = {value}`"));
        }
        other => Waiting::For(duration::read("wait", other)?),
    };
    options.wait = Some(value);
    Ok(())
}

pub(super) fn read_renew(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    if let Some((text, word)) = unquoted(input, ["true", "false"]) {
        return refuse_quotes("renew", &text, word);
    }
    let start = input.span();
    match ungrouped(expression(input, "renew = false")?) {
        Expr::Lit(ExprLit { lit: Lit::Bool(value), .. }) => {
            options.renew = Some(value.value);
            Ok(())
        }
        value if matches!(duration::read("renew", value.clone()), Ok(Time::Literal(_))) => {
            let message = "`renew` must be `true` or `false`, because the time of each renewal follows from the \
                           `ttl`: remove it";
            refuse(value, message)
        }
        _ => Err(syn::Error::new(start, "`renew` must be `true` or `false`")),
    }
}

pub(super) fn read_max_hold(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    options.max_hold = Some(nonzero_time("max_hold", input)?);
    Ok(())
}

pub(super) fn read_min_hold(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    options.min_hold = Some(nonzero_time("min_hold", input)?);
    Ok(())
}

/// Reads `linger`. Zero is allowed: it overrides the manager, or the defaults of a block.
pub(super) fn read_linger(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    options.linger = Some(duration::read("linger", expression(input, "linger = \"2s\"")?)?);
    Ok(())
}

pub(super) fn read_once_per(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    let value = expression(input, "once_per = \"15m\"")?;
    let time = duration::read("once_per", value.clone())?;
    if let Time::Literal(period) = time {
        validate_period(&value, period)?;
    }
    options.once_per = Some(time);
    Ok(())
}

/// Rejects a window that the runtime would reject.
fn validate_period(value: &Expr, period: Duration) -> syn::Result<()> {
    if period < SHORTEST_PERIOD {
        return refuse(
            value,
            format!(
                "a window of {period:?} is too short, because the clocks of the nodes differ: write at least \
                 `once_per = {}ms`",
                SHORTEST_PERIOD.as_millis()
            ),
        );
    }
    if period > MAX_TTL {
        return refuse(value, "this `once_per` is too long: write 30 days at most");
    }
    Ok(())
}

pub(super) fn read_window_start(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    options.window_start = Some(duration::read("window_start", expression(input, "window_start = \"6h\"")?)?);
    Ok(())
}

/// Reads a duration that has no effect if it is zero.
fn nonzero_time(option: &str, input: ParseStream<'_>) -> syn::Result<Time> {
    let value = expression(input, &format!("{option} = \"5s\""))?;
    match duration::read(option, value.clone())? {
        Time::Literal(time) if time.is_zero() => {
            refuse(value, format!("a `{option}` of zero has no effect: remove it"))
        }
        time => Ok(time),
    }
}

pub(super) fn read_mode(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    if let Ok(text) = input.fork().parse::<LitStr>()
        && let Some(mode) = aliases::mode(&text.value())
    {
        return refuse_quotes("mode", &text, mode);
    }
    if let Some((word, mode)) = mode_of_another_library(input) {
        let message = format!("unknown word `{word}`: did you mean `mode = {mode}`?");
        return refuse(word, message);
    }
    options.mode = word(input, "mode", &[("exclusive", Mode::Exclusive), ("shared", Mode::Shared)])?;
    Ok(())
}

/// Returns the word of another library for a mode, and the mode.
fn mode_of_another_library(input: ParseStream<'_>) -> Option<(Ident, &'static str)> {
    let word: Ident = input.fork().parse().ok()?;
    let mode = aliases::mode(&word.to_string())?;
    Some((word, mode))
}

/// Maximum number of permits of the runtime. Too large: attributes compile whose every call fails. Too small: numbers
/// that work are rejected.
const MOST_PERMITS: u32 = 1000;

pub(super) fn read_permits(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    let value = ungrouped(expression(input, "permits = 4")?);
    match &value {
        Expr::Lit(ExprLit { lit: Lit::Int(count), .. }) => match count.base10_parse::<u32>() {
            Ok(0) => return refuse(value, "with `permits = 0` no call could ever run: write `permits = 1` or more"),
            Ok(1..=MOST_PERMITS) => {}
            Ok(_) => {
                return refuse(
                    value,
                    "`permits` can be 1000 at most, because every acquisition reads the list of all holders: write a \
                     smaller number, or use several keys",
                );
            }
            Err(_) => {
                return refuse(value, "`permits` must be a number of holders from 1 to 1000: write `permits = 4`");
            }
        },
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) if is_count(&text.value()) || is_value_path(&text.value()) => {
            return refuse_quotes("permits", text, &text.value());
        }
        Expr::Lit(_) | Expr::Unary(_) => {
            return refuse(value, "`permits` must be a number of holders from 1 to 1000: write `permits = 4`");
        }
        _ => {}
    }
    options.permits = Some(value);
    Ok(())
}

/// Returns `true` if text is a number.
fn is_count(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) fn read_guard(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    let Ok(name) = input.parse::<Ident>() else {
        return Err(input.error("`guard` must be a name for the lock in the body: write `guard = lock`"));
    };
    options.guard = Some(name);
    Ok(())
}

pub(super) fn read_on_contended(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    if let Some((text, word)) = unquoted(input, ["skip", "error"]) {
        return refuse_quotes("on_contended", &text, word);
    }
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
    options.on_failure = word(input, "on_failure", &[("keep", Failed::Keep), ("reopen", Failed::Reopen)])?;
    Ok(())
}

pub(super) fn read_on_error(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    options.on_error = Some(handler("on_error", input)?);
    Ok(())
}

/// Reads a handler: a function or a closure, which the compiler checks. Only a literal is rejected here, because it is
/// never a handler.
fn handler(option: &str, input: ParseStream<'_>) -> syn::Result<Expr> {
    match expression(input, &format!("{option} = |error| .."))? {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) if is_value_path(&text.value()) => {
            refuse_quotes(option, &text, &text.value())
        }
        Expr::Lit(value) => refuse(
            &value,
            format!("`{option}` must be a function or a closure that takes the error: write `{option} = |error| ..`"),
        ),
        handler => Ok(handler),
    }
}

pub(super) fn read_on_lost(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    options.on_lost = word(input, "on_lost", &[("cancel", Lost::Cancel), ("continue", Lost::Continue)])?;
    Ok(())
}

pub(super) fn read_order_check(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    options.order = word(input, "order_check", &[("on", Order::Checked), ("off", Order::Unchecked)])?;
    Ok(())
}

pub(super) fn read_release(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    let words = [("background", Release::Background), ("confirmed", Release::Confirmed)];
    options.release = word(input, "release", &words)?;
    Ok(())
}

pub(super) fn read_manager(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    let example = "manager = self.locks";
    match ungrouped(expression(input, example)?) {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => return refuse_text("manager", &text, example),
        Expr::Lit(value) => return refuse(value, format!("`manager` must be a `LockManager`: write `{example}`")),
        value => options.manager = Some(value),
    }
    Ok(())
}

pub(super) fn read_crate(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    let start = input.span();
    let read = |path: &LitStr| path.parse_with(Path::parse_mod_style).ok();
    if let Some(path) = input.fork().parse().ok().as_ref().and_then(read) {
        let message = format!("`crate` must be a path without quotes: write `crate = {}`", proposal::squeezed(path));
        return Err(syn::Error::new(start, message));
    }
    let path = input.call(Path::parse_mod_style);
    options.krate =
        Some(path.map_err(|_| syn::Error::new(start, "`crate` must be a path: write `crate = ::redlock_runtime`"))?);
    Ok(())
}

pub(super) fn read_attribute(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    let Ok(name) = input.parse::<Ident>() else {
        return Err(
            input.error("`attribute` must be the last name in the path of the attribute: write `attribute = locked`")
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

#[expect(clippy::unnecessary_wraps, reason = "one type for all rows of the table")]
pub(super) fn read_reentrant(options: &mut Options, _: ParseStream<'_>) -> syn::Result<()> {
    options.nested = Nested::Enters;
    Ok(())
}
