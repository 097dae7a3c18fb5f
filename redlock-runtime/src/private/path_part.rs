//! Values in the template of a path, encoded as [`LockPath`](crate::LockPath) encodes them.

use super::part::{AnyValue, LockKeyPart, NotAFloat, NotAnOption, Refused, Value};
use crate::lock::path::code;
use std::fmt::{self, Write};

/// Value in the template of a path.
#[derive(Debug)]
pub struct PathPart<'a, T: ?Sized> {
    value: &'a T,
    place: Place,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    /// The value is a segment.
    Segment,
    /// The value is a part of a segment. These characters follow it in the segment.
    Within(&'static [char]),
    /// The value is a path, and replaces all of its segments.
    Path,
}

impl<'a, T: ?Sized> AnyValue<'a, T> {
    /// Returns the value as one segment of a path.
    #[must_use]
    pub const fn segment(&self) -> PathPart<'a, T> {
        PathPart { value: self.get(), place: Place::Segment }
    }

    /// Returns the value as a part of a segment. The characters of `escaped` are percent-encoded, too: they are the first
    /// characters of the literal texts after its placeholder.
    #[must_use]
    pub const fn in_segment(&self, escaped: &'static [char]) -> PathPart<'a, T> {
        PathPart { value: self.get(), place: Place::Within(escaped) }
    }

    /// Returns the value as several segments, separated by `/`. A leading `/` is ignored.
    #[must_use]
    pub const fn subpath(&self) -> PathPart<'a, T> {
        PathPart { value: self.get(), place: Place::Path }
    }
}

impl<T: Refused> Value<'_, T> {
    /// Never compiles; see [`escaped`](Self::escaped).
    #[must_use]
    pub const fn segment(&self) -> &'static str
    where
        T: NotAFloat + NotAnOption,
    {
        ""
    }

    /// Never compiles; see [`escaped`](Self::escaped).
    #[must_use]
    pub const fn in_segment(&self, _: &'static [char]) -> &'static str
    where
        T: NotAFloat + NotAnOption,
    {
        ""
    }

    /// Never compiles; see [`escaped`](Self::escaped).
    #[must_use]
    pub const fn subpath(&self) -> &'static str
    where
        T: NotAFloat + NotAnOption,
    {
        ""
    }
}

impl<T: LockKeyPart + ?Sized> fmt::Display for PathPart<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut encoding = Encoding { out: f, place: self.place, is_begun: false, dots: 0 };
        self.value.write_part(&mut encoding)?;
        encoding.finish()
    }
}

struct Encoding<'a, W> {
    out: &'a mut W,
    place: Place,
    /// `true` if a character was written that is not a leading dot.
    is_begun: bool,
    /// Number of leading dots that are not written yet.
    dots: usize,
}

impl<W: Write> Write for Encoding<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|c| self.write_char(c))
    }

    fn write_char(&mut self, c: char) -> fmt::Result {
        match self.place {
            // The segments `.` and `..` are escaped. The following characters decide if the segment is one of them.
            Place::Segment if !self.is_begun && c == '.' && self.dots < 2 => {
                self.dots += 1;
                return Ok(());
            }
            Place::Path if !self.is_begun && c == '/' => {
                self.is_begun = true;
                return Ok(());
            }
            _ => {}
        }
        self.begin(".")?;
        let escaped = match self.place {
            Place::Path if c == '/' => return self.out.write_char(c),
            Place::Within(escaped) => escaped,
            Place::Segment | Place::Path => &[],
        };
        match code(c) {
            Some(code) => self.out.write_str(code),
            None if escaped.contains(&c) => {
                let mut buffer = [0; 4];
                c.encode_utf8(&mut buffer).bytes().try_for_each(|byte| write!(self.out, "%{byte:02X}"))
            }
            None => self.out.write_char(c),
        }
    }
}

impl<W: Write> Encoding<'_, W> {
    /// Writes the leading dots before the next character, or at the end of the value.
    fn begin(&mut self, dot: &str) -> fmt::Result {
        self.is_begun = true;
        let dots = std::mem::take(&mut self.dots);
        (0..dots).try_for_each(|_| self.out.write_str(dot))
    }

    fn finish(&mut self) -> fmt::Result {
        self.begin("%2E")
    }
}

#[cfg(test)]
mod tests {
    use crate::LockPath;
    use crate::private::part;

    const HOSTILE: [&str; 18] =
        ["", "a", "a/b", "/a", "a/", "%", "%2F", "{", "}", "{a}", "..", ".", "...", ".a", "a.", "..a", "é\0", "%2E"];

    struct Pieces(Vec<String>);

    impl std::fmt::Display for Pieces {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            self.0.iter().try_for_each(|piece| f.write_str(piece))
        }
    }

    #[test]
    fn value_is_escaped_like_a_path_segment() {
        for value in HOSTILE {
            assert_eq!(format!("/{}", part(value).segment()), LockPath::of([value]).as_str());
            // A value that is written in pieces.
            let in_pieces = LockPath::of([value.replace('a', "")]);
            let pieces: Vec<_> = value.chars().filter(|c| *c != 'a').map(String::from).collect();
            assert_eq!(format!("/{}", part(&Pieces(pieces)).segment()), in_pieces.as_str());
        }
    }

    #[test]
    fn values_in_one_segment_are_unambiguous() {
        let mut seen = std::collections::HashMap::new();
        let values = HOSTILE.into_iter().chain(["-", "a-", "-a", "%2D"]);
        for (left, right) in values.clone().flat_map(|left| values.clone().map(move |right| (left, right))) {
            let path = format!("/{}-{}", part(left).in_segment(&['-']), part(right).in_segment(&[]));
            assert_eq!(path.matches(['/', '{', '}']).count(), 1, "{path}");
            assert_eq!(seen.insert(path, (left, right)), None, "{left} {right}");
        }
    }

    #[test]
    fn subpath_keeps_its_segments() {
        let table = [
            ("a/b", "/T/a/b"),
            ("/a/b", "/T/a/b"),
            ("a", "/T/a"),
            ("a{b}/5%", "/T/a%7Bb%7D/5%25"),
            ("//a", "/T//a"),
            ("a/", "/T/a/"),
            ("", "/T/"),
            ("/", "/T/"),
            ("a/../b", "/T/a/../b"),
        ];
        for (value, expected) in table {
            let path = format!("/T/{}", part(value).subpath());
            assert_eq!(path, expected);
            let is_path = LockPath::encoded(path).check().is_ok();
            assert_eq!(is_path, !matches!(value, "//a" | "a/" | "" | "/" | "a/../b"), "{value}");
        }
    }
}
