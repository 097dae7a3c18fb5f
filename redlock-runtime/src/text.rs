//! Text from outside (keys, server texts, names of clients) in a form that is safe in a log, an error or a terminal.
//!
//! A client of a web service chooses keys, and a server chooses its error texts. Written raw, a line break in one of them starts a
//! made-up log line, an escape sequence controls the terminal of the operator, and a bidirectional mark reorders what is read. So
//! these characters are escaped wherever such a text is written.
//!
//! The author of a text also chooses its length. An error is logged, cloned and kept, so that it takes an [`excerpt`] only.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// Returns `text` on a single line, without characters that control a terminal or hide text.
///
/// Escaped as `\u000a`, the way JSON does it: control characters, line separators, bidirectional marks, and characters that are not
/// visible. All other text is returned unchanged.
///
/// [`LockKey`](crate::LockKey) and the fields of reports hold the original text. Use this function before you write one of them to a
/// log, a terminal or a page. Errors, events and the `Display` of reports are escaped already. HTML needs its own escaping as well.
///
/// # Examples
/// ```
/// use redlock_runtime::admin::single_line;
///
/// assert_eq!(single_line("order:7 für Zoë"), "order:7 für Zoë");
/// assert_eq!(single_line("7\nERROR made up"), r"7\u000aERROR made up");
/// assert_eq!(single_line("\u{1b}[2J\u{202e}"), r"\u001b[2J\u202e");
/// ```
#[must_use]
pub fn single_line(text: &str) -> Cow<'_, str> {
    if text.contains(is_unsafe) { SingleLine(text).to_string().into() } else { text.into() }
}

/// `Display` adapter that writes a value the way [`single_line`] does. An escaped text is not changed when it is escaped again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SingleLine<T>(pub(crate) T);

impl<T: fmt::Display> fmt::Display for SingleLine<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

/// Writer that escapes unsafe characters on their way to the wrapped writer.
struct Escaping<W>(W);

impl<W: Write> Write for Escaping<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        // Safe text is written in one piece.
        while let Some((before, character)) = rest.find(is_unsafe).and_then(|at| rest.split_at_checked(at)) {
            self.0.write_str(before)?;
            let mut following = character.chars();
            following.next().map_or(Ok(()), |character| self.escape(character))?;
            rest = following.as_str();
        }
        self.0.write_str(rest)
    }
}

impl<W: Write> Escaping<W> {
    /// Writes a character as JSON does. A character with more than four digits is written as two surrogates.
    fn escape(&mut self, character: char) -> fmt::Result {
        character.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(self.0, "\\u{unit:04x}"))
    }
}

/// Length of an excerpt of a foreign text in errors and reports: 300 characters. Too small: the text ends before the cause. Too
/// large: a server or a client fills the log.
const EXCERPT: usize = 300;

/// Returns the start of `text` on a single line. A longer text ends with the number of missing characters:
/// `ERR .... (199700 more characters)`.
///
/// Call it once, where a text enters an error: an excerpt of an excerpt would be cut again.
pub(crate) fn excerpt(text: impl fmt::Display) -> String {
    let Cut { start, missing, .. } = Cut::of(text);
    format!("{}{}", SingleLine(start), Missing(missing))
}

/// Returns the start of `text` in quotation marks, as `{:?}` writes it: `"/acme/..".. (1048276 more characters)`.
pub(crate) fn quoted_excerpt(text: &str) -> String {
    let Cut { start, missing, .. } = Cut::of(text);
    format!("{start:?}{}", Missing(missing))
}

/// Writer that keeps the start of what is written, and counts the rest.
struct Cut {
    start: String,
    /// Number of characters that are still kept.
    room: usize,
    missing: usize,
}

impl Cut {
    fn of(text: impl fmt::Display) -> Self {
        let mut cut = Self { start: String::new(), room: EXCERPT, missing: 0 };
        // Writing to memory does not fail. A `Display` that fails has written a part.
        let _ = write!(cut, "{text}");
        cut
    }
}

impl Write for Cut {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            match self.room.checked_sub(1) {
                Some(room) => {
                    self.room = room;
                    self.start.push(character);
                }
                None => self.missing += 1,
            }
        }
        Ok(())
    }
}

/// Number of missing characters, which follows the start of a text.
struct Missing(usize);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            1 => f.write_str(".. (1 more character)"),
            missing => write!(f, ".. ({missing} more characters)"),
        }
    }
}

/// Returns `true` for a character that controls the output or is not visible. Invisible characters would make two keys look alike.
fn is_unsafe(character: char) -> bool {
    let is_invisible = matches!(
        character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}'
    );
    character.is_control() || is_invisible
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_characters_are_escaped_and_others_are_kept() {
        let table = [
            ("order:7 für Zoë", "order:7 für Zoë"),
            ("ключ-鍵-🔒", "ключ-鍵-🔒"),
            ("a\nb", "a\\u000ab"),
            ("\u{1b}[2J\r\t", "\\u001b[2J\\u000d\\u0009"),
            ("\u{9b}2J\u{7f}", "\\u009b2J\\u007f"),
            ("a\u{202e}b\u{2028}", "a\\u202eb\\u2028"),
            ("a\u{200b}\u{feff}\u{e0041}", "a\\u200b\\ufeff\\udb40\\udc41"),
        ];
        for (text, expected) in table {
            assert_eq!(single_line(text), expected, "{text:?}");
            assert_eq!(SingleLine(text).to_string(), expected, "{text:?}");
            assert_eq!(single_line(expected), expected, "escaped once");
        }
        assert!(matches!(single_line("order:7"), Cow::Borrowed(_)));
    }

    #[test]
    fn excerpt_is_limited_and_counts_omitted_characters() {
        let long = |count: usize| "ü".repeat(count);
        let table = [
            (String::new(), String::new()),
            ("ERR a\nb".to_owned(), "ERR a\\u000ab".to_owned()),
            (long(300), long(300)),
            (long(301), long(300) + ".. (1 more character)"),
            (long(200_000), long(300) + ".. (199700 more characters)"),
        ];
        for (text, expected) in table {
            assert_eq!(excerpt(&text), expected);
        }
        let in_pieces = format_args!("{}{}", "a".repeat(299), "bcd").to_string();
        assert_eq!(excerpt(format_args!("{}{}{}", "a".repeat(299), "b", "cd")), excerpt(in_pieces));
        assert_eq!(quoted_excerpt("a\n\"b\""), r#""a\n\"b\"""#);
        assert_eq!(quoted_excerpt(&long(1000)), format!("\"{}\".. (700 more characters)", long(300)));
    }

    /// Errors quote keys by `{:?}`, which must be at least as strict.
    #[test]
    fn debug_format_of_text_has_no_unsafe_character() {
        for character in ('\0'..=char::MAX).filter(|character| is_unsafe(*character)) {
            let quoted = format!("{:?}", format!("a{character}b"));
            assert!(!quoted.contains(is_unsafe), "{quoted}");
        }
    }
}
