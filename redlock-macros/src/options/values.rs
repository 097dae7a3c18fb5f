//! Reads the value of each option but the key.

use super::aliases;
use super::common::{expression, has_quotes, is_way, refuse, refuse_text, ungrouped, unquoted, word};
use super::duration::{self, Time};
use super::proposal;
use super::types::{Contended, Failed, Lost, Mode, Nested, Options, Order, Release, Waiting};
use std::time::Duration;
use syn::parse::ParseStream;
use syn::{Expr, ExprLit, Ident, Lit, LitStr, Path, Token};

/// 13 ms. With the default settings a node has 10 ms for its answer, and clock drift takes 2 ms and a hundredth of the
/// `ttl`. A smaller limit would let attributes compile whose every call fails; a larger one would refuse a `ttl` that
/// works. The runtime checks the same limit again, for a manager with other settings.
const SHORTEST_TTL: Duration = Duration::from_millis(13);

/// 30 days, the longest that the runtime accepts. A larger limit would let attributes compile whose every call fails.
const LONGEST_TTL: Duration = Duration::from_secs(30 * 24 * 3600);

/// The shortest window that the runtime accepts. A smaller limit would let attributes compile whose every call fails; a larger
/// one would refuse windows that work.
const SHORTEST_PERIOD: Duration = Duration::from_millis(100);

pub(super) fn read_ttl(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    let value = expression(input, "ttl = 30")?;
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
    if let Some((text, word)) = unquoted(input, ["none", "forever"]) {
        return has_quotes("wait", &text, word);
    }
    let value = match ungrouped(expression(input, "wait = \"5s\"")?) {
        Expr::Path(path) if path.path.is_ident("none") => Waiting::None,
        Expr::Path(path) if path.path.is_ident("forever") => Waiting::Forever,
        Expr::Path(path) if path.path.is_ident("None") => {
            return refuse(path, "`None` is not a time: write `wait = none`");
        }
        Expr::Lit(ExprLit { lit: Lit::Bool(value), .. }) => {
            let word = if value.value { "forever" } else { "none" };
            return refuse(&value, format!("`{}` is not a time: write `wait = {word}`", value.value));
        }
        // The generated code converts the value, and could not tell into what this is converted before.
        Expr::MethodCall(call) if call.method == "into" && !duration::is_literal(&call.receiver) => {
            let value = proposal::squeezed(&call.receiver);
            return refuse(call, format!("`wait` converts its value by itself: write `wait = {value}`"));
        }
        other => Waiting::For(duration::read("wait", other)?),
    };
    options.wait = Some(value);
    Ok(())
}

pub(super) fn read_renew(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    if let Some((text, word)) = unquoted(input, ["true", "false"]) {
        return has_quotes("renew", &text, word);
    }
    let start = input.span();
    match ungrouped(expression(input, "renew = false")?) {
        Expr::Lit(ExprLit { lit: Lit::Bool(value), .. }) => {
            options.renew = Some(value.value);
            Ok(())
        }
        value if matches!(duration::read("renew", value.clone()), Ok(Time::Literal(_))) => {
            let message = "`renew` is `true` or `false`, and when to renew is known from the `ttl`: leave it out";
            refuse(value, message)
        }
        _ => Err(syn::Error::new(start, "`renew` is `true` or `false`")),
    }
}

pub(super) fn read_max_hold(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    options.max_hold = Some(some_time("max_hold", input)?);
    Ok(())
}

pub(super) fn read_min_hold(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    options.min_hold = Some(some_time("min_hold", input)?);
    Ok(())
}

/// Zero has an effect: it is what a function says against its manager, or against the defaults of its block.
pub(super) fn read_linger(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    options.linger = Some(duration::read("linger", expression(input, "linger = \"2s\"")?)?);
    Ok(())
}

pub(super) fn read_once_per(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    let value = expression(input, "once_per = \"15m\"")?;
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
    options.window_start = Some(duration::read("window_start", expression(input, "window_start = \"6h\"")?)?);
    Ok(())
}

/// A duration that would have no effect if it were zero.
fn some_time(option: &str, input: ParseStream<'_>) -> syn::Result<Time> {
    let value = expression(input, &format!("{option} = \"5s\""))?;
    match duration::read(option, value.clone())? {
        Time::Literal(time) if time.is_zero() => {
            refuse(value, format!("a `{option}` of zero has no effect: leave it out"))
        }
        time => Ok(time),
    }
}

pub(super) fn read_mode(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    if let Ok(text) = input.fork().parse::<LitStr>()
        && let Some(mode) = aliases::mode(&text.value())
    {
        return has_quotes("mode", &text, mode);
    }
    if let Some((word, mode)) = mode_of_another_library(input) {
        let message = format!("unknown word `{word}`: did you mean `mode = {mode}`?");
        return refuse(word, message);
    }
    options.mode = word(input, "mode", &[("exclusive", Mode::Exclusive), ("shared", Mode::Shared)])?;
    Ok(())
}

/// A word by which others call a mode, and the mode.
fn mode_of_another_library(input: ParseStream<'_>) -> Option<(Ident, &'static str)> {
    let word: Ident = input.fork().parse().ok()?;
    let mode = aliases::mode(&word.to_string())?;
    Some((word, mode))
}

/// The most that the runtime accepts. A larger limit would let attributes compile whose every call fails; a smaller one would refuse
/// numbers that work.
const MOST_PERMITS: u32 = 1000;

pub(super) fn read_permits(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    let value = ungrouped(expression(input, "permits = 4")?);
    match &value {
        Expr::Lit(ExprLit { lit: Lit::Int(count), .. }) => match count.base10_parse::<u32>() {
            Ok(0) => return refuse(value, "with no permits nobody could ever enter: write `permits = 1` or more"),
            Ok(1..=MOST_PERMITS) => {}
            Ok(_) => {
                return refuse(value, "no more than 1000 permits are allowed, because each call is told who has one");
            }
            Err(_) => return refuse(value, "`permits` is a number of holders: write `permits = 4`"),
        },
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) if is_count(&text.value()) || is_way(&text.value()) => {
            return has_quotes("permits", text, &text.value());
        }
        Expr::Lit(_) | Expr::Unary(_) => {
            return refuse(value, "`permits` is a number of holders: write `permits = 4`");
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
        return Err(input.error("`guard` is the name by which the body sees its lock: write `guard = lock`"));
    };
    options.guard = Some(name);
    Ok(())
}

pub(super) fn read_on_contended(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    if let Some((text, word)) = unquoted(input, ["skip", "error"]) {
        return has_quotes("on_contended", &text, word);
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
    match expression(input, &format!("{option} = |error| .."))? {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) if is_way(&text.value()) => {
            has_quotes(option, &text, &text.value())
        }
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
        Expr::Lit(value) => return refuse(value, format!("`manager` is a `LockManager`: write `{example}`")),
        value => options.manager = Some(value),
    }
    Ok(())
}

pub(super) fn read_crate(options: &mut Options, input: ParseStream<'_>) -> syn::Result<()> {
    let start = input.span();
    let read = |path: &LitStr| path.parse_with(Path::parse_mod_style).ok();
    if let Some(path) = input.fork().parse().ok().as_ref().and_then(read) {
        let message = format!("`crate` is a path, without quotes: write `crate = {}`", proposal::squeezed(path));
        return Err(syn::Error::new(start, message));
    }
    let path = input.call(Path::parse_mod_style);
    options.krate =
        Some(path.map_err(|_| syn::Error::new(start, "`crate` is a path: write `crate = ::redlock_runtime`"))?);
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

#[expect(clippy::unnecessary_wraps, reason = "one type for all rows of the table")]
pub(super) fn read_reentrant(options: &mut Options, _: ParseStream<'_>) -> syn::Result<()> {
    options.nested = Nested::Enters;
    Ok(())
}
