//! Parts of a key: the values in a template.

use std::fmt::{self, Write};
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

/// Value that can be used in a key template.
///
/// Implemented for every type with [`Display`](fmt::Display).
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a lock key",
    label = "this value does not implement `Display`",
    note = "write a field or a method whose value implements `Display`, as in `{{order.id}}`, or `{{file.display()}}` \
            for the path of a file; or, if `{Self}` is a type of this crate, write `impl std::fmt::Display for {Self} \
            {{ .. }}`"
)]
pub trait LockKeyPart {
    /// Writes the text of the value.
    ///
    /// # Errors
    /// The error of the writer.
    fn write_part(&self, out: &mut dyn fmt::Write) -> fmt::Result;
}

#[diagnostic::do_not_recommend]
impl<T: fmt::Display + ?Sized> LockKeyPart for T {
    fn write_part(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        write!(out, "{self}")
    }
}

/// Value in a template, escaped so that different arguments never make the same key.
#[derive(Debug)]
pub struct Part<'a, T: ?Sized> {
    value: &'a T,
    escaped: Escaped,
}

/// `One` avoids a constant slice for each function, which would cost the compiler more than the rest of the key.
#[derive(Clone, Copy, Debug)]
enum Escaped {
    One(char),
    Several(&'static [char]),
}

impl Escaped {
    fn contains(self, c: char) -> bool {
        match self {
            Self::One(escaped) => c == escaped,
            Self::Several(escaped) => escaped.contains(&c),
        }
    }
}

/// Wraps a value of a key template.
///
/// The bound of `T` is checked where the part is formatted, which is inside the user's string. The next call rejects only types
/// with a special message.
pub const fn part<T: ?Sized>(value: &T) -> Value<'_, T> {
    Value(AnyValue(value))
}

/// Value that is not checked yet.
#[derive(Debug)]
pub struct Value<'a, T: ?Sized>(AnyValue<'a, T>);

/// Value for which [`Value`] has no inherent method.
#[derive(Debug)]
pub struct AnyValue<'a, T: ?Sized>(&'a T);

// The compiler finds a method of `Value` before the methods of its `Deref` target. So some types are rejected, and all others use the
// methods of `AnyValue`.
impl<'a, T: ?Sized> Deref for Value<'a, T> {
    type Target = AnyValue<'a, T>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<'a, T: ?Sized> AnyValue<'a, T> {
    pub(super) const fn get(&self) -> &'a T {
        self.0
    }

    /// Percent-encodes `%` and `escaped` in the text of the value. `escaped` is the first character of the literal text after the
    /// placeholder, so the literal text always ends the value.
    #[must_use]
    pub const fn escaped(&self, escaped: char) -> Part<'a, T> {
        Part { value: self.0, escaped: Escaped::One(escaped) }
    }

    /// Percent-encodes `%` and several characters; see [`escaped`](Self::escaped). For a value that is followed by several
    /// different texts.
    #[must_use]
    pub const fn escaped_all(&self, escaped: &'static [char]) -> Part<'a, T> {
        Part { value: self.0, escaped: Escaped::Several(escaped) }
    }
}

impl<T: Refused> Value<'_, T> {
    /// Never compiles, and the message names the reason. The result can be formatted, so no other message follows.
    #[must_use]
    pub const fn escaped(&self, _: char) -> &'static str
    where
        T: NotAFloat + NotAnOption,
    {
        ""
    }

    /// Never compiles; see [`escaped`](Self::escaped).
    #[must_use]
    pub const fn escaped_all(&self, _: &'static [char]) -> &'static str
    where
        T: NotAFloat + NotAnOption,
    {
        ""
    }
}

/// Type that cannot be part of a key, even if it has a text.
pub trait Refused {}

/// Not implemented for floats.
#[diagnostic::on_unimplemented(
    message = "a float cannot be part of a lock key",
    label = "a float",
    note = "equal amounts can have different texts, and `NaN` is not equal to itself: write an integer, such as \
            cents, or an id"
)]
pub trait NotAFloat {}

/// Not implemented for `Option`.
#[diagnostic::on_unimplemented(
    message = "an `Option` cannot be part of a lock key",
    label = "a value that may be missing",
    note = "all calls without a value would exclude each other: write what these calls lock, as in \
            `key(\"order:{{id}}\", id = id.unwrap_or_default())`"
)]
pub trait NotAnOption {}

macro_rules! refuse {
    ($($type:ty $(, $parameter:ident)?: $other:ident;)*) => {$(
        impl $(<$parameter>)? Refused for $type {}
        #[diagnostic::do_not_recommend]
        impl $(<$parameter>)? $other for $type {}
    )*};
}

refuse! {
    f32: NotAnOption;
    f64: NotAnOption;
    Option<T>, T: NotAFloat;
}

/// Rejects pointers to rejected types, because they have the text of the value.
macro_rules! refuse_behind {
    ($($pointer:ty)*) => {$(
        impl<T: Refused + ?Sized> Refused for $pointer {}
        #[diagnostic::do_not_recommend]
        impl<T: NotAFloat + ?Sized> NotAFloat for $pointer {}
        #[diagnostic::do_not_recommend]
        impl<T: NotAnOption + ?Sized> NotAnOption for $pointer {}
    )*};
}

refuse_behind!(&T &mut T Box<T> Rc<T> Arc<T>);

impl<T: LockKeyPart + ?Sized> fmt::Display for Part<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.write_part(&mut Escaping { out: f, escaped: self.escaped })
    }
}

struct Escaping<'a, W> {
    out: &'a mut W,
    escaped: Escaped,
}

impl<W: Write> Write for Escaping<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let special = |c: char| c == '%' || self.escaped.contains(c);
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
            assert_eq!(part(value).escaped(':').to_string(), expected);
        }
        assert_eq!(part(&"a:b").escaped(':').to_string(), "a%3Ab");
        assert_eq!(part("a→b").escaped('→').to_string(), "a%E2%86%92b");
        assert_eq!(part("a/b:c%").escaped_all(&['/', ':']).to_string(), "a%2Fb%3Ac%25");
        assert_eq!(part("a/b:c").escaped('%').to_string(), "a/b:c");
    }

    #[test]
    fn different_tuples_give_different_keys() {
        // Peers join arguments without escaping: ("a:b", "c") and ("a", "b:c") lock each other out.
        let values = ["", ":", "%", "%3A", "a", "a:", ":a", "a:b", "%25", "3A", "/", "{", "}", "\0", "\n", "é"];
        let mut seen = HashMap::new();
        for left in values {
            for right in values {
                let key = format!("{}:{}", part(left).escaped(':'), part(right).escaped('%'));
                if let Some(other) = seen.insert(key.clone(), (left, right)) {
                    panic!("{other:?} and {:?} both give {key:?}", (left, right));
                }
            }
        }
    }
}
