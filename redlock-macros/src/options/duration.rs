//! Durations: `30`, `"30s"`, `30s`, `"1m30s"`, `500ms`, a constant, any expression.

use super::common;
use crate::errors;
use proc_macro2::TokenStream;
use quote::ToTokens;
use std::time::Duration;
use syn::{Expr, ExprLit, ExprPath, Lit, UnOp};

/// Duration as written by the user.
pub(crate) enum Time {
    /// Literal, known at expansion.
    Literal(Duration),
    /// Path: a constant, or an argument.
    Path(ExprPath),
    /// Expression, known at run time.
    Expression(Expr),
}

impl ToTokens for Time {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Self::Literal(_) => {}
            Self::Path(path) => path.to_tokens(tokens),
            Self::Expression(expression) => expression.to_tokens(tokens),
        }
    }
}

/// Units and their lengths in milliseconds.
const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Largest number without a unit, in seconds. A larger one was probably meant in milliseconds. Too small: plausible
/// numbers of seconds are rejected. Too large: `5000`, meant as five seconds, lasts more than an hour.
const MOST_SECONDS: u64 = 3600;

/// Reads the value of `option`.
pub(crate) fn read(option: &str, value: Expr) -> syn::Result<Time> {
    match value {
        Expr::Group(group) => read(option, *group.expr),
        Expr::Path(path) => Ok(Time::Path(path)),
        Expr::Unary(unary) if matches!((&unary.op, &*unary.expr), (UnOp::Neg(_), Expr::Lit(_))) => {
            Err(syn::Error::new_spanned(unary, format!("`{option}` cannot be negative: write `{option} = 30`")))
        }
        Expr::Lit(literal) => {
            if let Lit::Str(text) = &literal.lit
                && is_value(&text.value())
            {
                return common::refuse_quotes(option, text, &text.value());
            }
            let read = match &literal.lit {
                Lit::Int(int) => int_text(option, &int.token().to_string(), int.base10_digits()),
                Lit::Float(float) => Err(fraction(option, &float.token().to_string())),
                Lit::Str(text) => quoted_text(option, &text.value()),
                _ => Err(format!("`{option}` must be a duration: write `{option} = 30` or `{option} = \"1m30s\"`")),
            };
            read.map(Time::Literal).map_err(|mistake| syn::Error::new_spanned(literal, mistake))
        }
        other => match converted(&other) {
            // An error in the literal itself takes precedence.
            Some(literal) => {
                read(option, Expr::Lit(literal.clone()))?;
                let written = literal.to_token_stream();
                common::refuse(other, format!("a literal needs no conversion: write `{option} = {written}`"))
            }
            None => Ok(Time::Expression(other)),
        },
    }
}

/// Returns `true` if the text is a duration.
pub(super) fn is_text_of_one(text: &str) -> bool {
    quoted_text("ttl", text).is_ok()
}

/// Returns `true` if the text is a constant or a path to one, and not a misspelt duration.
fn is_value(text: &str) -> bool {
    common::is_value_path(text) && (text.contains(['.', ':']) || !text.contains(char::is_lowercase))
}

/// Returns `true` if the value is a literal, converted or not.
pub(super) fn is_literal(value: &Expr) -> bool {
    matches!(value, Expr::Lit(_)) || converted(value).is_some()
}

/// Returns the literal in `"5s".into()`.
fn converted(value: &Expr) -> Option<&ExprLit> {
    const CONVERSIONS: &[&str] =
        &["as_str", "expect", "into", "parse", "to_owned", "to_string", "try_into", "unwrap", "unwrap_or_default"];
    match value {
        Expr::MethodCall(call) if CONVERSIONS.iter().any(|conversion| call.method == conversion) => {
            match &*call.receiver {
                Expr::Lit(literal) => Some(literal),
                receiver => converted(receiver),
            }
        }
        _ => None,
    }
}

/// Reads `30`, which counts seconds, or `30s`. `decimal` is the number in decimal.
fn int_text(option: &str, text: &str, decimal: &str) -> Result<Duration, String> {
    let text = text.replace('_', "");
    if ["0x", "0o", "0b"].iter().any(|base| text.starts_with(base)) {
        return Err(format!("`{text}` is not decimal, and a duration must be: write `{option} = {decimal}`"));
    }
    match text.parse::<u64>() {
        Ok(seconds) if seconds > MOST_SECONDS => Err(format!(
            "`{seconds}` without a unit means seconds, which is {}: write the unit, as in `{option} = {seconds}ms` or \
             `{option} = {seconds}s`",
            in_words(seconds)
        )),
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => text_with_units(option, &text),
    }
}

/// Reads `"1m30s"`. Text always contains a unit.
fn quoted_text(option: &str, text: &str) -> Result<Duration, String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("`\"{text}\"` has no unit: write `{option} = \"{text}s\"` or `{option} = \"{text}ms\"`"));
    }
    let joined = without_inner_spaces(text);
    let time = text_with_units(option, &joined)?;
    if joined == text {
        return Ok(time);
    }
    Err(format!("`\"{text}\"` has a space before its unit: write `{option} = \"{joined}\"`"))
}

/// Removes the spaces between a number and its unit.
fn without_inner_spaces(text: &str) -> String {
    let mut joined = String::new();
    for word in text.split(' ') {
        let is_after_number = joined.ends_with(|c: char| c.is_ascii_digit()) && word.starts_with(char::is_alphabetic);
        if !joined.is_empty() && !is_after_number {
            joined.push(' ');
        }
        joined.push_str(word);
    }
    joined
}

/// Reads `1m30s`: whole numbers, each with a unit, the larger unit first.
fn text_with_units(option: &str, text: &str) -> Result<Duration, String> {
    let example = || format!("`{text}` is not a duration: write `{option} = 30` or `{option} = \"1m30s\"`");
    let mut rest = text.trim();
    let mut total: u64 = 0;
    let mut smaller_than = u64::MAX;
    if rest.is_empty() {
        return Err(example());
    }
    while !rest.is_empty() {
        let (digits, after) = split_where(rest, |c| !c.is_ascii_digit());
        let (unit, after) = split_where(after, |c| !c.is_alphabetic() && c != 'µ');
        if after.starts_with('.') {
            return Err(fraction(option, text));
        }
        let count: u64 = digits.parse().map_err(|_| example())?;
        let Some(&(_, millis)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(unknown_unit(option, text, digits, unit));
        };
        if millis >= smaller_than {
            return Err(example());
        }
        smaller_than = millis;
        total = count.checked_mul(millis).and_then(|part| total.checked_add(part)).ok_or_else(|| too_long(text))?;
        rest = after.trim_start();
    }
    Ok(Duration::from_millis(total))
}

fn split_where(text: &str, ends: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(ends).unwrap_or(text.len()))
}

/// Formats a number of seconds for the message, as in "8 h 20 min".
fn in_words(seconds: u64) -> String {
    match (seconds / 3600, seconds % 3600 / 60) {
        (hours, _) if hours >= 48 => format!("{} days", hours / 24),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

fn too_long(text: &str) -> String {
    format!("`{text}` is too long: write 30 days at most")
}

/// Returns the message for a number with a fraction or an exponent. It proposes the same time in a smaller unit.
fn fraction(option: &str, text: &str) -> String {
    let example = in_whole_units(text).unwrap_or_else(|| "1500ms".to_owned());
    format!("`{text}` is not a whole number: write it in a smaller unit, as in `{option} = {example}`")
}

/// Returns `1500ms` for `1.5s`. Without a unit, the number counts seconds.
fn in_whole_units(text: &str) -> Option<String> {
    let end = text.find(|c: char| c.is_alphabetic() && c != 'e').unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    let unit = if unit.is_empty() { "s" } else { unit };
    let (_, millis) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let time = number.replace('_', "").parse::<f64>().ok()? * f64::from(u32::try_from(*millis).ok()?);
    let is_exact = time.fract() == 0.0 && (1.0..1e12).contains(&time);
    let shown = format!("{time:.0}");
    is_exact.then(|| match shown.strip_suffix("000") {
        Some(seconds) => format!("{seconds}s"),
        None => format!("{shown}ms"),
    })
}

fn unknown_unit(option: &str, text: &str, digits: &str, unit: &str) -> String {
    if unit.is_empty() {
        return format!("`{text}` has a number without a unit: write `{option} = \"1m30s\"`");
    }
    match meant(unit) {
        Some(meant) => format!("unknown unit `{unit}`: write `{option} = \"{digits}{meant}\"`"),
        None => format!("unknown unit `{unit}`: the units are {}", errors::list(UNITS.map(|(name, _)| name))),
    }
}

/// Returns `true` if the word is a unit, or is probably meant as one.
pub(super) fn is_unit(word: &str) -> bool {
    UNITS.iter().any(|(name, _)| *name == word) || meant(word).is_some()
}

/// Returns the unit that is probably meant.
fn meant(unit: &str) -> Option<&'static str> {
    match unit {
        "sec" | "secs" | "second" | "seconds" | "S" => Some("s"),
        "min" | "mins" | "minute" | "minutes" | "M" => Some("m"),
        "hour" | "hours" | "hr" | "hrs" | "H" => Some("h"),
        "day" | "days" | "D" => Some("d"),
        "msec" | "millis" | "milliseconds" | "MS" => Some("ms"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Time, read};
    use std::time::Duration;

    fn parse(value: &str) -> Result<Time, String> {
        read("ttl", syn::parse_str(value).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn literals() {
        let table = [
            ("30", 30_000),
            ("1_000", 1_000_000),
            ("3600", 3_600_000),
            ("30_000s", 30_000_000),
            ("\"30s\"", 30_000),
            ("30s", 30_000),
            ("\"1m30s\"", 90_000),
            ("1m30s", 90_000),
            ("\"1m 30s\"", 90_000),
            ("\"500ms\"", 500),
            ("1_500ms", 1_500),
            ("\"1d2h3m4s5ms\"", 93_784_005),
            ("0", 0),
            ("0ms", 0),
            ("\"0s\"", 0),
        ];
        for (value, millis) in table {
            match parse(value) {
                Ok(Time::Literal(found)) => assert_eq!(found, Duration::from_millis(millis), "{value}"),
                Ok(_) => panic!("{value} is not a literal"),
                Err(mistake) => panic!("{value}: {mistake}"),
            }
        }
    }

    #[test]
    fn paths_and_expressions_are_accepted_as_durations() {
        for value in ["LEASE", "config::LEASE", "Self::LEASE", "lease"] {
            assert!(matches!(parse(value), Ok(Time::Path(_))), "{value}");
        }
        for value in ["Duration::from_secs(3)", "self.lease", "LEASE * 2", "-lease"] {
            assert!(matches!(parse(value), Ok(Time::Expression(_))), "{value}");
        }
    }

    #[test]
    fn errors_propose_a_correction() {
        let table = [
            (
                "30_000",
                "`30000` without a unit means seconds, which is 8 h 20 min: write the unit, as in `ttl = 30000ms` or \
                 `ttl = 30000s`",
            ),
            (
                "7200",
                "`7200` without a unit means seconds, which is 2 h: write the unit, as in `ttl = 7200ms` or `ttl = \
                 7200s`",
            ),
            (
                "604800",
                "`604800` without a unit means seconds, which is 7 days: write the unit, as in `ttl = 604800ms` or \
                 `ttl = 604800s`",
            ),
            ("-30", "`ttl` cannot be negative: write `ttl = 30`"),
            ("1.5", "`1.5` is not a whole number: write it in a smaller unit, as in `ttl = 1500ms`"),
            ("1.5s", "`1.5s` is not a whole number: write it in a smaller unit, as in `ttl = 1500ms`"),
            ("\"0.5h\"", "`0.5h` is not a whole number: write it in a smaller unit, as in `ttl = 1800s`"),
            ("1e3", "`1e3` is not a whole number: write it in a smaller unit, as in `ttl = 1000s`"),
            ("0.3ms", "`0.3ms` is not a whole number: write it in a smaller unit, as in `ttl = 1500ms`"),
            ("0x1E", "`0x1E` is not decimal, and a duration must be: write `ttl = 30`"),
            ("\"30 s\"", "`\"30 s\"` has a space before its unit: write `ttl = \"30s\"`"),
            ("\"1 m 30 s\"", "`\"1 m 30 s\"` has a space before its unit: write `ttl = \"1m 30s\"`"),
            ("\"4 parsecs\"", "unknown unit `parsecs`: the units are `ms`, `s`, `m`, `h` and `d`"),
            ("\"30\"", "`\"30\"` has no unit: write `ttl = \"30s\"` or `ttl = \"30ms\"`"),
            ("\"\"", "`` is not a duration: write `ttl = 30` or `ttl = \"1m30s\"`"),
            ("\"soon\"", "`soon` is not a duration: write `ttl = 30` or `ttl = \"1m30s\"`"),
            ("\"-5s\"", "`-5s` is not a duration: write `ttl = 30` or `ttl = \"1m30s\"`"),
            ("\"5s1m\"", "`5s1m` is not a duration: write `ttl = 30` or `ttl = \"1m30s\"`"),
            ("\"5s5s\"", "`5s5s` is not a duration: write `ttl = 30` or `ttl = \"1m30s\"`"),
            ("\"1m30\"", "`1m30` has a number without a unit: write `ttl = \"1m30s\"`"),
            ("5min", "unknown unit `min`: write `ttl = \"5m\"`"),
            ("30sec", "unknown unit `sec`: write `ttl = \"30s\"`"),
            ("5w", "unknown unit `w`: the units are `ms`, `s`, `m`, `h` and `d`"),
            ("30u64", "unknown unit `u`: the units are `ms`, `s`, `m`, `h` and `d`"),
            (
                "99999999999999999999s",
                "`99999999999999999999s` is not a duration: write `ttl = 30` or `ttl = \"1m30s\"`",
            ),
            ("\"LEASE\"", "`\"LEASE\"` is text in quotes: write `ttl = LEASE`"),
            ("\"self.lease\"", "`\"self.lease\"` is text in quotes: write `ttl = self.lease`"),
            ("\"30s\".into()", "a literal needs no conversion: write `ttl = \"30s\"`"),
            ("\"30s\".parse().unwrap()", "a literal needs no conversion: write `ttl = \"30s\"`"),
            ("\"30\".into()", "`\"30\"` has no unit: write `ttl = \"30s\"` or `ttl = \"30ms\"`"),
            ("true", "`ttl` must be a duration: write `ttl = 30` or `ttl = \"1m30s\"`"),
            ("'s'", "`ttl` must be a duration: write `ttl = 30` or `ttl = \"1m30s\"`"),
        ];
        for (value, expected) in table {
            assert_eq!(parse(value).err().as_deref(), Some(expected), "{value}");
        }
    }
}
