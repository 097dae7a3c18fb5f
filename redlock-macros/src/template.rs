//! Key templates: literal text with `{argument}` placeholders.

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

/// `{order.customer.0}`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hole {
    /// The argument.
    pub(crate) name: String,
    /// The fields after it: names and tuple indices.
    pub(crate) fields: Vec<String>,
}

impl Hole {
    /// The hole as it is written, without the braces.
    pub(crate) fn path(&self) -> String {
        std::iter::once(&self.name).chain(&self.fields).map(String::as_str).collect::<Vec<_>>().join(".")
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
            Piece::Hole(hole) => format!("{{{}}}", name(hole)),
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
        match hole(inside) {
            Ok(hole) => {
                self.flush();
                self.pieces.push(Piece::Hole(hole));
            }
            Err(mistake) => self.mistakes.push(mistake),
        }
        self.rest = after;
    }

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
                    left = left.path(),
                    right = right.path()
                )),
                [Piece::Hole(left), Piece::Text(text)] if text.starts_with('%') => self.mistakes.push(format!(
                    "`%` cannot stand right after `{{{left}}}`, because it marks escaped characters in a value: put \
                     another character between them, as in `{{{left}}}:%`",
                    left = left.path()
                )),
                _ => {}
            }
        }
    }
}

/// Reads what stands between braces.
fn hole(inside: &str) -> Result<Hole, String> {
    let (path, spec) = inside.split_once(':').map_or((inside, None), |(path, spec)| (path, Some(spec)));
    let path = path.trim();
    if let Some(name) = path.strip_prefix("r#") {
        return Err(format!("`{{{inside}}}` needs no `r#` inside a key: write `{{{name}}}`"));
    }
    if path.is_empty() || path.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("`{{{inside}}}` names no argument: write its name, as in `{{order_id}}`"));
    }
    match spec.map(str::trim) {
        Some(spec) if spec.ends_with('?') => {
            return Err(format!(
                "`{{{inside}}}` would lock on `Debug` text, which may change with any release: write `{{{path}}}`"
            ));
        }
        Some(_) => {
            return Err(format!("the format in `{{{inside}}}` is not available yet: write `{{{path}}}`"));
        }
        None => {}
    }
    let mut parts = path.split('.');
    let name = parts.next().unwrap_or_default();
    let fields: Vec<String> = parts.map(str::to_owned).collect();
    let is_index = |field: &str| !field.is_empty() && field.bytes().all(|byte| byte.is_ascii_digit());
    let is_field = |field: &str| is_index(field) || (is_identifier(field) && field != "self");
    if !is_identifier(name) || !fields.iter().all(|field| is_field(field)) {
        return Err(format!(
            "`{{{inside}}}` is not an argument or one of its fields: write `{{argument}}` or `{{argument.field}}`"
        ));
    }
    if name == "self" && fields.is_empty() {
        return Err("`{self}` is the whole object: name a field of it, as in `{self.id}`".into());
    }
    Ok(Hole { name: name.into(), fields })
}

/// The identifier that `text` starts with, or an example of one.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| c != '_' && c != '.' && !c.is_alphanumeric()).unwrap_or(text.len());
    text.get(..end).filter(|word| !word.is_empty()).unwrap_or("order_id")
}

/// Whether it can name an argument or a field; keywords can, as raw identifiers. Nothing is given to the compiler's own
/// lexer here, because it reports what it does not like by itself.
fn is_identifier(text: &str) -> bool {
    let mut chars = text.chars();
    let starts = chars.next().is_some_and(|c| c == '_' || unicode_ident::is_xid_start(c));
    starts && chars.all(unicode_ident::is_xid_continue) && !matches!(text, "_" | "Self" | "super" | "crate")
}

#[cfg(test)]
mod tests {
    use super::{Hole, Piece, Template, parse};

    fn text(text: &str) -> Piece {
        Piece::Text(text.into())
    }

    fn hole(path: &str) -> Piece {
        let mut parts = path.split('.').map(str::to_owned);
        Piece::Hole(Hole { name: parts.next().unwrap(), fields: parts.collect() })
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
            ("{id:08}", &["the format in `{id:08}` is not available yet"]),
            ("order:{id", &["`{id` has no closing brace: write `{id}`"]),
            ("order:{", &["write `{order_id}`"]),
            ("order:}", &["`}` without `{`"]),
            ("{a{b}", &["`{a` has no closing brace"]),
            ("{a}{b}", &["write `{a}:{b}`"]),
            ("{a.x}{b.y}", &["write `{a.x}:{b.y}`"]),
            ("{a}%{b}", &["`%` cannot stand right after `{a}`"]),
            ("{self}", &["name a field of it"]),
            ("{a + 1}", &["is not an argument"]),
            ("{a.}", &["is not an argument"]),
            ("{a..b}", &["is not an argument"]),
            ("{a-b}", &["is not an argument"]),
            ("{_}", &["is not an argument"]),
            ("{a\"}", &["is not an argument"]),
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
            template.distinct_holes().into_iter().map(|(hole, separators)| (hole.path(), separators)).collect();
        let expected = [("x", vec![':', '/']), ("y", vec!['{']), ("z", vec![])];
        assert_eq!(found, expected.map(|(name, separators)| (name.to_owned(), separators)));
    }

    #[test]
    fn format_strings_keep_the_text() {
        let (template, _) = parse("{{{a.0}}}:{b}");
        assert_eq!(template.format_string(|hole| format!("_{}", hole.name)), "{{{_a}}}:{_b}");
        let plain = Template { pieces: vec![text("{}")] };
        assert_eq!(plain.format_string(Hole::path), "{{}}");
    }
}
