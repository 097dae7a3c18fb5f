//! Key templates: literal text with `{argument}` placeholders.
//!
//! Here belongs what a template says by its text alone: its pieces, and which texts could make different values the
//! same key. What a placeholder means in a certain function is found out in `analyze::key`; nothing here knows a
//! function, a span or a token.

mod hole;
mod names_only;

pub(crate) use self::hole::{Hole, Input, Step};
pub(crate) use self::names_only::with_names_only;

/// A template that can be formatted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) pieces: Vec<Piece>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Text that stands in every key, braces already single.
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
    /// Each hole once, with the characters that may follow its value: the first one of the text after each place where
    /// it stands.
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

    /// The format string with each placeholder written as `name` says.
    pub(crate) fn format_string(&self, name: impl Fn(&Hole) -> String) -> String {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.replace('{', "{{").replace('}', "}}"),
            Piece::Hole(hole) => format!("{{{}{}}}", name(hole), hole.suffix()),
        });
        pieces.collect()
    }
}

/// Reads a template, and what is wrong with it: sentences that say what to write.
pub(crate) fn parse(text: &str) -> (Template, Vec<String>) {
    let mut reader = Reader { rest: text, text: String::new(), pieces: Vec::new(), mistakes: Vec::new() };
    reader.read();
    reader.flush();
    reader.check_separators();
    if text.is_empty() {
        reader.mistakes.push("the key is empty: name what is locked, as in `key = \"order:{order_id}\"`".into());
    }
    (Template { pieces: reader.pieces }, reader.mistakes)
}

struct Reader<'a> {
    rest: &'a str,
    text: String,
    pieces: Vec<Piece>,
    mistakes: Vec<String>,
}

impl<'a> Reader<'a> {
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
                self.mistakes.push("`}` without `{` before it: write `}}` for a brace in the key".into());
                self.rest = brace.get(1..).unwrap_or_default();
            }
        }
        self.text.push_str(self.rest);
    }

    /// Reads what follows `{`.
    fn placeholder(&mut self, rest: &'a str) {
        let at = rest.find(['{', '}']).unwrap_or(rest.len());
        let (inside, after) = rest.split_at(at);
        let Some(after) = after.strip_prefix('}') else {
            self.mistakes.push(format!(
                "`{{{inside}` has no closing brace: write `{{{}}}` for an argument, or `{{{{` for a brace in the key",
                word(inside)
            ));
            self.rest = after;
            return;
        };
        match Hole::read(inside) {
            Ok(hole) => {
                self.flush();
                self.pieces.push(Piece::Hole(hole));
            }
            Err(mistake) => self.mistakes.push(mistake),
        }
        self.rest = after;
    }

    /// Makes a piece of the text that was read so far.
    fn flush(&mut self) {
        if !self.text.is_empty() {
            self.pieces.push(Piece::Text(std::mem::take(&mut self.text)));
        }
    }

    /// A value must end where its neighbour begins, or different arguments make the same key.
    fn check_separators(&mut self) {
        for pair in self.pieces.windows(2) {
            match pair {
                [Piece::Hole(left), Piece::Hole(right)] => self.mistakes.push(format!(
                    "nothing separates `{{{left}}}` from `{{{right}}}`, so that different values could make the same \
                     key: write `{{{left}}}:{{{right}}}`",
                    left = left.text,
                    right = right.text
                )),
                [Piece::Hole(left), Piece::Text(text)] if text.starts_with('%') => self.mistakes.push(format!(
                    "`%` cannot stand right after `{{{left}}}`, because it marks escaped characters in a value: put \
                     another character between them, as in `{{{left}}}:%`",
                    left = left.text
                )),
                [Piece::Hole(left), Piece::Text(text)] => self.mistakes.extend(goes_on(left, text)),
                _ => {}
            }
        }
    }
}

/// A formatted number is not escaped, so its digits must not go on in the text.
fn goes_on(hole: &Hole, text: &str) -> Option<String> {
    let (format, c) = (hole.format.as_ref()?, text.chars().next()?);
    format.may_contain(c).then(|| {
        format!(
            "`{c}` after `{{{path}{format}}}` could be one more digit of it: put another character between them, as in \
             `{{{path}{format}}}:{c}`",
            path = hole.text,
            format = hole.suffix()
        )
    })
}

/// The identifier that `text` starts with, or an example of one.
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
    fn mistakes_say_what_to_write() {
        let table: &[(&str, &[&str])] = &[
            ("", &["the key is empty"]),
            ("{}", &["`{}` names no argument"]),
            ("{0}", &["`{0}` names no argument"]),
            ("{ }", &["`{ }` names no argument"]),
            ("{id:?}", &["`Debug` text"]),
            ("{id:#?}", &["write `{id}`"]),
            ("{id:8}", &["`{id:8}` is no format for a key"]),
            ("{id:08}0", &["could be one more digit of it: put another character between them, as in `{id:08}:0`"]),
            ("{id:x}f", &["as in `{id:x}:f`"]),
            ("order:{id", &["`{id` has no closing brace: write `{id}`"]),
            ("order:{", &["write `{order_id}`"]),
            ("order:}", &["`}` without `{`"]),
            ("{a{b}", &["`{a` has no closing brace"]),
            ("{a}{b}", &["write `{a}:{b}`"]),
            ("{a.x}{b.y}", &["write `{a.x}:{b.y}`"]),
            ("{a}%{b}", &["`%` cannot stand right after `{a}`"]),
            ("{self}", &["name a field of it"]),
            ("{a + 1}", &["is an expression: give it a name, as in `key(\"..{value}\", value = a + 1)`"]),
            ("{a.}", &["is not an argument"]),
            ("{a..b}", &["is not an argument"]),
            ("{a-b}", &["is an expression"]),
            ("{_}", &["is not an argument"]),
            ("{a\"}", &["is an expression"]),
            ("{r#type}", &["write `{type}`"]),
            ("{}:{0}:{id:?}:}", &["`{}`", "`{0}`", "`Debug`", "`}` without"]),
        ];
        for (template, expected) in table {
            let (_, mistakes) = parse(template);
            assert_eq!(mistakes.len(), expected.len(), "{template}: {mistakes:?}");
            for (mistake, expected) in mistakes.iter().zip(*expected) {
                assert!(mistake.contains(expected), "{template}: {mistake}");
            }
        }
    }

    #[test]
    fn separators_end_the_values() {
        let (template, _) = parse("a{x}:b{y}{{{x}/{y}{{é{z}");
        let found: Vec<_> =
            template.distinct_holes().into_iter().map(|(hole, separators)| (hole.text.clone(), separators)).collect();
        let expected = [("x", vec![':', '/']), ("y", vec!['{']), ("z", vec![])];
        assert_eq!(found, expected.map(|(name, separators)| (name.to_owned(), separators)));
    }

    #[test]
    fn format_strings_keep_the_text() {
        let (template, _) = parse("{{{a.0}}}:{b:08}");
        assert_eq!(template.format_string(|hole| format!("_{}", hole.root[0])), "{{{_a}}}:{_b:08}");
        let plain = Template { pieces: vec![text("{}")] };
        assert_eq!(plain.format_string(|hole| hole.text.clone()), "{{}}");
    }
}
