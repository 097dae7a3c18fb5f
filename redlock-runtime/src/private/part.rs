//! The parts of a key: values that stand in a template.

use std::fmt::{self, Write};

/// A value that may stand in a key template.
///
/// Everything that is [`Display`](fmt::Display) is one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a lock key",
    label = "this part has no `Display`",
    note = "implement `std::fmt::Display` for it, or name a field or a method that has it, as in `{{order.id}}`"
)]
pub trait LockKeyPart {
    /// Writes the text that stands in the key.
    ///
    /// # Errors
    /// Only what the writer returns.
    fn write_part(&self, out: &mut dyn fmt::Write) -> fmt::Result;
}

#[diagnostic::do_not_recommend]
impl<T: fmt::Display + ?Sized> LockKeyPart for T {
    fn write_part(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        write!(out, "{self}")
    }
}

/// A value in a template, escaped so that different arguments never make the same key.
#[derive(Debug)]
pub struct Part<'a, T: ?Sized> {
    value: &'a T,
    escaped: &'static [char],
}

/// Puts `value` into a key. Inside its text `%` and every character of `escaped`, which are the first ones of the
/// literal texts after its placeholders, are percent-encoded: so the literal text always ends the value.
///
/// What `T` must be is asked where the part is formatted, which is inside the user's string.
pub const fn part<'a, T: ?Sized>(value: &'a T, escaped: &'static [char]) -> Part<'a, T> {
    Part { value, escaped }
}

impl<T: LockKeyPart + ?Sized> fmt::Display for Part<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.write_part(&mut Escaping { out: f, escaped: self.escaped })
    }
}

struct Escaping<'a, W> {
    out: &'a mut W,
    escaped: &'static [char],
}

impl<W: Write> Write for Escaping<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let special = |c: char| c == '%' || self.escaped.contains(&c);
        let mut rest = text;
        while let Some((plain, c, after)) = split_at_char(rest, special) {
            self.out.write_str(plain)?;
            let mut buffer = [0; 4];
            for byte in c.encode_utf8(&mut buffer).bytes() {
                write!(self.out, "%{byte:02X}")?;
            }
            rest = after;
        }
        self.out.write_str(rest)
    }
}

fn split_at_char(text: &str, special: impl Fn(char) -> bool) -> Option<(&str, char, &str)> {
    let at = text.find(special)?;
    let (plain, rest) = text.split_at_checked(at)?;
    let mut chars = rest.chars();
    let c = chars.next()?;
    Some((plain, c, chars.as_str()))
}

#[cfg(test)]
mod tests {
    use super::part;
    use std::collections::HashMap;

    #[test]
    fn only_the_separator_and_the_percent_sign_are_escaped() {
        let table = [
            ("7", "7"),
            ("a:b", "a%3Ab"),
            ("a/b", "a/b"),
            ("50%", "50%25"),
            ("::", "%3A%3A"),
            ("", ""),
            ("ü:é\0\n", "ü%3Aé\0\n"),
        ];
        for (value, expected) in table {
            assert_eq!(part(value, &[':']).to_string(), expected);
        }
        assert_eq!(part("a→b", &['→']).to_string(), "a%E2%86%92b");
        assert_eq!(part("a/b:c", &[]).to_string(), "a/b:c");
    }

    #[test]
    fn different_tuples_give_different_keys() {
        // Peers join arguments without escaping: ("a:b", "c") and ("a", "b:c") lock each other out.
        let values = ["", ":", "%", "%3A", "a", "a:", ":a", "a:b", "%25", "3A", "/", "{", "}", "\0", "\n", "é"];
        let mut seen = HashMap::new();
        for left in values {
            for right in values {
                let key = format!("{}:{}", part(left, &[':']), part(right, &[]));
                if let Some(other) = seen.insert(key.clone(), (left, right)) {
                    panic!("{other:?} and {:?} both give {key:?}", (left, right));
                }
            }
        }
    }
}
