//! Key templates: literal text with `{argument}` placeholders.
//!
//! This module knows only the text of a template: its pieces, and texts that could make the same key of different
//! values. The meaning of a placeholder in a function is resolved in `analyze::key`. Nothing here knows a function, a
//! span or a token.

mod foreign;
mod hole;
mod mistake;
mod names_only;
mod path;

pub(crate) use self::foreign::{Foreign, foreign};
pub(crate) use self::hole::{Hole, Input, Step};
pub(crate) use self::mistake::Mistake;
pub(crate) use self::names_only::with_names_only;
pub(crate) use self::path::parse_path;

use std::ops::Range;

/// Parsed template.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) pieces: Vec<Piece>,
    /// Position of each piece in the text.
    places: Vec<Range<usize>>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Literal text, with braces unescaped.
    Text(String),
    /// A value.
    Hole(Hole),
}

impl Piece {
    fn first_char(&self) -> Option<char> {
        match self {
            Self::Text(text) => text.chars().next(),
            Self::Hole(_) => None,
        }
    }
}

impl Template {
    /// Returns each hole once, with the characters that may follow its value: the first character after each
    /// occurrence.
    pub(crate) fn distinct_holes(&self) -> Vec<(&Hole, Vec<char>)> {
        let mut distinct: Vec<(&Hole, Vec<char>)> = Vec::new();
        let after = self.pieces.iter().skip(1).map(Some).chain(std::iter::once(None));
        for (piece, after) in self.pieces.iter().zip(after) {
            let Piece::Hole(hole) = piece else { continue };
            let separator = after.and_then(Piece::first_char);
            match distinct.iter_mut().find(|(earlier, _)| *earlier == hole) {
                Some((_, separators)) => separators.extend(separator.filter(|c| !separators.contains(c))),
                None => distinct.push((hole, separator.into_iter().collect())),
            }
        }
        distinct
    }

    /// Returns the position of the first occurrence of a hole.
    pub(crate) fn place(&self, hole: &Hole) -> Range<usize> {
        let is_it = |piece: &Piece| matches!(piece, Piece::Hole(other) if other == hole);
        let found = self.pieces.iter().position(is_it).and_then(|at| self.places.get(at));
        found.cloned().unwrap_or_default()
    }

    /// Returns the format string, with each placeholder called as `name` returns.
    pub(crate) fn format_string(&self, name: impl Fn(&Hole) -> String) -> String {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.replace('{', "{{").replace('}', "}}"),
            Piece::Hole(hole) => format!("{{{}{}}}", name(hole), hole.suffix()),
        });
        pieces.collect()
    }
}

/// Parses a template. Returns it with its mistakes.
pub(crate) fn parse(text: &str) -> (Template, Vec<Mistake>) {
    let (template, mut mistakes) = Reader::new(text).template();
    if text.is_empty() {
        let message = "the key is empty: write what is locked, as in `key = \"order:{order_id}\"`";
        mistakes.push(Mistake::new(0..0, message));
    }
    mistakes.extend(template.pieces.iter().zip(&template.places).filter_map(|(piece, place)| match piece {
        Piece::Hole(hole) if hole.is_subpath => Some(Mistake::new(place.clone(), subpath_in_key(hole))),
        _ => None,
    }));
    (template, mistakes)
}

fn subpath_in_key(hole: &Hole) -> String {
    let name = &hole.text;
    format!(
        "`{{{name}:/}}` (several segments) is allowed only in a `path`: write `{{{name}}}`, or write `path = \
         \"/{{{name}:/}}\"` instead of `key`"
    )
}

struct Reader<'a> {
    whole: &'a str,
    rest: &'a str,
    text: String,
    pieces: Vec<Piece>,
    places: Vec<Range<usize>>,
    mistakes: Vec<Mistake>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        let (pieces, places, mistakes) = (Vec::new(), Vec::new(), Vec::new());
        Self { whole: text, rest: text, text: String::new(), pieces, places, mistakes }
    }

    /// Parses the template of a key or a path.
    fn template(mut self) -> (Template, Vec<Mistake>) {
        self.read();
        self.flush(self.whole.len());
        self.check_separators();
        (Template { pieces: self.pieces, places: self.places }, self.mistakes)
    }

    fn read(&mut self) {
        while let Some(at) = self.rest.find(['{', '}']) {
            let (text, brace) = self.rest.split_at(at);
            self.text.push_str(text);
            if let Some(rest) = brace.strip_prefix("{{") {
                self.text.push('{');
                self.rest = rest;
            } else if let Some(rest) = brace.strip_prefix("}}") {
                self.text.push('}');
                self.rest = rest;
            } else if let Some(rest) = brace.strip_prefix('{') {
                self.placeholder(rest);
            } else {
                let at = self.at(brace);
                let message = "`}` has no opening brace: write `}}` for a brace in the key";
                self.mistakes.push(Mistake::new(at..at + 1, message));
                self.rest = brace.get(1..).unwrap_or_default();
            }
        }
        self.text.push_str(self.rest);
    }

    /// Returns the position of the rest of the text.
    fn at(&self, rest: &str) -> usize {
        self.whole.len() - rest.len()
    }

    /// Parses the text after `{`.
    fn placeholder(&mut self, rest: &'a str) {
        let start = self.at(rest) - 1;
        let at = rest.find(['{', '}']).unwrap_or(rest.len());
        let (inside, after) = rest.split_at(at);
        let Some(after) = after.strip_prefix('}') else {
            let message = format!(
                "`{{{inside}` has no closing brace: write `{{{}}}` for an argument, or `{{{{` for a brace in the key",
                word(inside)
            );
            self.mistakes.push(Mistake::new(start..self.at(after), message));
            self.rest = after;
            return;
        };
        match Hole::read(inside) {
            Ok(hole) => {
                self.flush(start);
                self.pieces.push(Piece::Hole(hole));
                self.places.push(start..self.at(after));
            }
            Err(message) => self.mistakes.push(Mistake::new(start..self.at(after), message)),
        }
        self.rest = after;
    }

    /// Adds the text read so far, up to `end`, as a piece.
    fn flush(&mut self, end: usize) {
        if !self.text.is_empty() {
            let start = self.places.last().map_or(0, |place| place.end);
            self.pieces.push(Piece::Text(std::mem::take(&mut self.text)));
            self.places.push(start..end);
        }
    }

    /// Checks that each value ends where the next piece begins. Otherwise different arguments could make the same key.
    fn check_separators(&mut self) {
        for (pair, places) in self.pieces.windows(2).zip(self.places.windows(2)) {
            let [before, after] = places else { continue };
            let found = match pair {
                [Piece::Hole(left), Piece::Hole(right)] => Some((before.start..after.end, not_separated(left, right))),
                [Piece::Hole(left), Piece::Text(text)] if text.starts_with('%') => {
                    Some((before.start..after.start + 1, not_escaped(left)))
                }
                [Piece::Hole(left), Piece::Text(text)] => {
                    continued_number(left, text).map(|message| (before.start..after.start + 1, message))
                }
                _ => None,
            };
            self.mistakes.extend(found.map(|(place, message)| Mistake::new(place, message)));
        }
    }
}

fn not_separated(left: &Hole, right: &Hole) -> String {
    format!(
        "nothing separates `{{{left}}}` from `{{{right}}}`, so different values could make the same key: write \
         `{{{left}}}:{{{right}}}`",
        left = left.text,
        right = right.text
    )
}

fn not_escaped(hole: &Hole) -> String {
    format!(
        "`%` cannot directly follow `{{{left}}}`, because `%` marks escaped characters in a value: put another \
         character between them, as in `{{{left}}}:%`",
        left = hole.text
    )
}

/// Reports text that continues a formatted number, which is not escaped.
fn continued_number(hole: &Hole, text: &str) -> Option<String> {
    let (format, c) = (hole.format.as_ref()?, text.chars().next()?);
    format.may_contain(c).then(|| {
        format!(
            "`{c}` after `{{{path}{format}}}` could be read as one more digit of the number: put another character \
             between them, as in `{{{path}{format}}}:{c}`",
            path = hole.text,
            format = hole.suffix()
        )
    })
}

/// Returns the identifier at the start of `text`, or an example.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| c != '_' && c != '.' && !c.is_alphanumeric()).unwrap_or(text.len());
    text.get(..end).filter(|word| !word.is_empty()).unwrap_or("order_id")
}

#[cfg(test)]
mod tests {
    use super::{Hole, Piece, Template, parse};

    fn text(text: &str) -> Piece {
        Piece::Text(text.into())
    }

    fn hole(inside: &str) -> Piece {
        Piece::Hole(Hole::read(inside).unwrap())
    }

    #[test]
    fn pieces() {
        let table: &[(&str, &[Piece])] = &[
            ("nightly", &[text("nightly")]),
            ("{id}", &[hole("id")]),
            ("order:{id}", &[text("order:"), hole("id")]),
            ("{a}:{b}", &[hole("a"), text(":"), hole("b")]),
            ("{{{a}}}", &[text("{"), hole("a"), text("}")]),
            ("a{{b}}c", &[text("a{b}c")]),
            ("{order.lines.0.sku}", &[hole("order.lines.0.sku")]),
            ("{self.tenant}/{ id }", &[hole("self.tenant"), text("/"), hole("id")]),
            ("{type}", &[hole("type")]),
            ("{größe}→{_x}", &[hole("größe"), text("→"), hole("_x")]),
            ("100%:{a}", &[text("100%:"), hole("a")]),
            (
                "{Self::NS}:{a:04}-{b.len():x}",
                &[hole("Self::NS"), text(":"), hole("a:04"), text("-"), hole("b.len():x")],
            ),
        ];
        for (template, pieces) in table {
            let (found, mistakes) = parse(template);
            assert!(mistakes.is_empty(), "{template}: {mistakes:?}");
            assert_eq!(found.pieces, *pieces, "{template}");
        }
    }

    #[test]
    fn errors_propose_a_correction() {
        let table: &[(&str, &[&str])] = &[
            ("", &["the key is empty"]),
            ("{}", &["`{}` does not name an argument"]),
            ("{0}", &["`{0}` does not name an argument"]),
            ("{ }", &["`{ }` does not name an argument"]),
            ("{id:?}", &["`Debug` text"]),
            ("{id:#?}", &["write `{id}`"]),
            ("{id:8}", &["`{id:8}` is not a valid format in a key"]),
            (
                "{id:08}0",
                &["could be read as one more digit of the number: put another character between them, as in \
                   `{id:08}:0`"],
            ),
            ("{id:x}f", &["as in `{id:x}:f`"]),
            ("order:{id", &["`{id` has no closing brace: write `{id}`"]),
            ("order:{", &["write `{order_id}`"]),
            ("order:}", &["`}` has no opening brace"]),
            ("{a{b}", &["`{a` has no closing brace"]),
            ("{a}{b}", &["write `{a}:{b}`"]),
            ("{a.x}{b.y}", &["write `{a.x}:{b.y}`"]),
            ("{a}%{b}", &["`%` cannot directly follow `{a}`"]),
            ("{self}", &["write one of its fields"]),
            ("{a + 1}", &["is an expression: give it a name, as in `key(\"..{value}\", value = a + 1)`"]),
            ("{a.}", &["is not an argument"]),
            ("{a..b}", &["is not an argument"]),
            ("{a-b}", &["is an expression"]),
            ("{*dir}", &["write `{dir:/}` in a `path`, or `{dir}` in a `key`"]),
            ("{_}", &["is not an argument"]),
            ("{a\"}", &["is an expression"]),
            ("{r#type}", &["write `{type}`"]),
            ("{}:{0}:{id:?}:}", &["`{}`", "`{0}`", "`Debug`", "`}` has no"]),
        ];
        for (template, expected) in table {
            let (_, mistakes) = parse(template);
            assert_eq!(mistakes.len(), expected.len(), "{template}: {mistakes:?}");
            for (mistake, expected) in mistakes.iter().zip(*expected) {
                assert!(mistake.message.contains(expected), "{template}: {mistake:?}");
            }
        }
    }

    #[test]
    fn template_errors_mark_the_position() {
        let table = [
            ("order:{id:?}", "      ^^^^^^"),
            ("order:{{{id", "        ^^^"),
            ("é:}", "  ^"),
            ("{a}{b}:x", "^^^^^^"),
            ("{{}}{a}%", "    ^^^^"),
            ("x:{id:x}f", "  ^^^^^^^"),
        ];
        for (template, carets) in table {
            let (_, mistakes) = parse(template);
            let shown = mistakes[0].under(template);
            assert!(shown.ends_with(&format!("\n    {template}\n    {carets}")), "{shown}");
        }
        assert!(!parse("").1[0].under("").contains('\n'));
    }

    #[test]
    fn separators_after_each_placeholder_are_collected() {
        let (template, _) = parse("a{x}:b{y}{{{x}/{y}{{é{z}");
        let found: Vec<_> =
            template.distinct_holes().into_iter().map(|(hole, separators)| (hole.text.clone(), separators)).collect();
        let expected = [("x", vec![':', '/']), ("y", vec!['{']), ("z", vec![])];
        assert_eq!(found, expected.map(|(name, separators)| (name.to_owned(), separators)));
    }

    #[test]
    fn format_strings_preserve_the_template_text() {
        let (template, _) = parse("{{{a.0}}}:{b:08}");
        assert_eq!(template.format_string(|hole| format!("_{}", hole.root[0])), "{{{_a}}}:{_b:08}");
        let plain = Template { pieces: vec![text("{}")], places: Vec::new() };
        assert_eq!(plain.format_string(|hole| hole.text.clone()), "{{}}");
    }
}
