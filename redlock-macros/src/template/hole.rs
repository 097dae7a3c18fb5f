//! Parser of one placeholder: a root, the steps to the value, and a format.
//!
//! 1. The text between the braces is split at its first single colon, into the path to a value and a format.
//! 2. The path begins with a root: one name, or a path with `::`. Steps follow: `.field`, `.0`, `.method(..)`, `[..]`.
//!    The argument of a method or an index is a number, `true`, `false` or a name. Expressions are not allowed, because
//!    they would have an order of evaluation.
//! 3. Other text is an expression, for which the message proposes a named part, or not a value.
//! 4. A format is allowed only if different integers have different texts.

/// Placeholder, such as `{order.lines[0].sku()}`, `{self.tenant}`, `{Self::NAMESPACE}` or `{order_id:08}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hole {
    /// First name, or a path with `::`.
    pub(crate) root: Vec<String>,
    pub(crate) steps: Vec<Step>,
    pub(crate) format: Option<Format>,
    /// `true` for `{dir:/}`: several segments of a path.
    pub(crate) is_subpath: bool,
    /// Text as written, without the braces and the format.
    pub(crate) text: String,
}

/// Step from one value to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// `.name` or `.0`
    Field(String),
    /// `.name(1, other)`
    Call(String, Vec<Input>),
    /// `[0]`
    Index(Input),
}

/// Argument of a call or an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    Number(String),
    Name(String),
}

impl Input {
    fn is_negative(&self) -> bool {
        matches!(self, Self::Number(number) if number.starts_with('-'))
    }
}

/// Format of integers that keeps different integers different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    /// Text after the colon.
    pub(crate) text: String,
    kind: Option<char>,
}

impl Format {
    /// Returns `true` if a formatted number may contain `c`.
    pub(crate) fn may_contain(&self, c: char) -> bool {
        match self.kind {
            Some('x') => matches!(c, '0'..='9' | 'a'..='f'),
            Some('X') => matches!(c, '0'..='9' | 'A'..='F'),
            _ => c.is_ascii_digit(),
        }
    }
}

impl Hole {
    /// Parses the text between braces.
    pub(super) fn read(inside: &str) -> Result<Self, String> {
        let (path, spec) = split_format(inside);
        let path = path.trim();
        if let Some(name) = path.strip_prefix("r#") {
            return Err(format!("`{{{inside}}}` needs no `r#` inside a key: write `{{{name}}}`"));
        }
        if path.is_empty() || path.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(format!("`{{{inside}}}` does not name an argument: write its name, as in `{{order_id}}`"));
        }
        let is_subpath = spec.is_some_and(|spec| spec.trim() == "/");
        let format = spec.filter(|_| !is_subpath).map(|spec| format(inside, path, spec.trim())).transpose()?.flatten();
        let mut reader = Reader { rest: path };
        let (root, steps) = reader.root().zip(reader.steps()).ok_or_else(|| not_a_value(inside, path))?;
        if path == "self" {
            return Err("`{self}` is the whole object: write one of its fields, as in `{self.id}`".into());
        }
        Ok(Self { root, steps, format, is_subpath, text: path.to_owned() })
    }

    /// Returns the name if the placeholder is only a name.
    pub(crate) fn name(&self) -> Option<&str> {
        match (self.root.as_slice(), self.steps.is_empty()) {
            ([name], true) => Some(name),
            _ => None,
        }
    }

    /// Returns `true` if the name is an argument of a method or an index.
    pub(crate) fn takes(&self, name: &str) -> bool {
        let is_it = |input: &Input| matches!(input, Input::Name(other) if other == name);
        self.steps.iter().any(|step| match step {
            Step::Field(_) => false,
            Step::Call(_, inputs) => inputs.iter().any(is_it),
            Step::Index(input) => is_it(input),
        })
    }

    /// Returns the suffix in a format string: nothing, or the format with its colon.
    pub(crate) fn suffix(&self) -> String {
        self.format.as_ref().map(|format| format!(":{}", format.text)).unwrap_or_default()
    }
}

/// Splits at the first single colon.
fn split_format(inside: &str) -> (&str, Option<&str>) {
    let bytes = inside.as_bytes();
    let is_colon = |at: usize| bytes.get(at) == Some(&b':');
    let single = |at: &usize| is_colon(*at) && !is_colon(at + 1) && !at.checked_sub(1).is_some_and(is_colon);
    match (0..bytes.len()).find(single).and_then(|at| Some((inside.get(..at)?, inside.get(at + 1..)?))) {
        Some((path, spec)) => (path, Some(spec)),
        None => (inside, None),
    }
}

/// Returns the message for text that is not a path to a value.
fn not_a_value(inside: &str, path: &str) -> String {
    // The syntax of some routers for the rest of a URL.
    if let Some(name) = path.strip_prefix('*').filter(|name| is_identifier(name)) {
        return format!(
            "`{{{inside}}}` is the syntax of a URL router for several segments: write `{{{name}:/}}` in a `path`, or \
             `{{{name}}}` in a `key`"
        );
    }
    let operators = ['+', '-', '*', '/', '%', '&', '|', '^', '!', '<', '>', '=', '?', '"', '\'', '{'];
    let is_call = path.ends_with(')') && path.split('(').next().is_some_and(is_identifier);
    if path.contains(operators) || path.contains(" as ") || is_call {
        return format!(
            "`{{{inside}}}` is an expression: give it a name, as in `key(\"..{{value}}\", value = {path})`"
        );
    }
    format!(
        "`{{{inside}}}` is not an argument or one of its fields: write `{{argument}}`, `{{argument.field}}` or \
         `{{argument.method()}}`"
    )
}

/// Parses a format. Only formats that keep different integers different are allowed.
fn format(inside: &str, path: &str, spec: &str) -> Result<Option<Format>, String> {
    if spec.is_empty() {
        return Ok(None);
    }
    if spec.ends_with('?') {
        return Err(format!(
            "`{{{inside}}}` would use the `Debug` text in the key, which may change with any release: write \
             `{{{path}}}`"
        ));
    }
    if spec.contains('$') {
        return Err(format!(
            "`{{{inside}}}` takes a number from another argument: write the number itself, as in `{{{path}:08}}`"
        ));
    }
    if spec.contains('.') {
        return Err(format!(
            "`{{{inside}}}` truncates the value, so different values could make the same key: write `{{{path}}}`"
        ));
    }
    let alternate = spec.strip_prefix('#');
    let rest = alternate.unwrap_or(spec);
    let kind = rest.chars().last().filter(|kind| matches!(kind, 'x' | 'X' | 'o' | 'b'));
    let width = kind.and_then(|kind| rest.strip_suffix(kind)).unwrap_or(rest);
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_padded = width.strip_prefix('0').is_some_and(is_digits);
    let is_alternate_of_nothing = alternate.is_some() && kind.is_none();
    if is_alternate_of_nothing || !(is_padded || (kind.is_some() && width.is_empty())) {
        return Err(format!(
            "`{{{inside}}}` is not a valid format in a key, because different values could make the same key: write \
             `{{{path}}}`, or `{{{path}:08}}` or `{{{path}:x}}` for an integer"
        ));
    }
    Ok(Some(Format { text: spec.to_owned(), kind }))
}

/// Parser of the path to a value.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    /// Parses `name`, or a path with `::`.
    fn root(&mut self) -> Option<Vec<String>> {
        let mut names = vec![self.word()?.to_owned()];
        while self.skip("::") {
            names.push(self.word().filter(|name| is_identifier(name))?.to_owned());
        }
        let first = names.first()?;
        let is_path = names.len() > 1 && matches!(first.as_str(), "Self" | "crate" | "super" | "self");
        (is_identifier(first) || is_path).then_some(names)
    }

    fn steps(&mut self) -> Option<Vec<Step>> {
        let mut steps = Vec::new();
        while !self.rest.is_empty() {
            steps.push(self.step()?);
        }
        Some(steps)
    }

    fn step(&mut self) -> Option<Step> {
        if self.skip("[") {
            let index = Some(self.input()?).filter(|index| !index.is_negative())?;
            return self.skip("]").then_some(Step::Index(index));
        }
        if !self.skip(".") {
            return None;
        }
        let name = self.word().filter(|name| is_index(name) || (is_identifier(name) && *name != "self"))?.to_owned();
        if !self.skip("(") {
            return Some(Step::Field(name));
        }
        let mut inputs = Vec::new();
        while !self.skip(")") {
            inputs.push(self.input()?);
            if !self.skip(",") && !self.rest.starts_with(')') {
                return None;
            }
        }
        is_identifier(&name).then_some(Step::Call(name, inputs))
    }

    fn input(&mut self) -> Option<Input> {
        let sign = if self.skip("-") { "-" } else { "" };
        let word = self.word()?.to_owned();
        if is_index(&word) {
            return Some(Input::Number(sign.to_owned() + &word));
        }
        let is_name = sign.is_empty() && is_identifier(&word) && word != "self";
        is_name.then_some(Input::Name(word))
    }

    /// Parses the longest run of characters of a name or a number.
    fn word(&mut self) -> Option<&'a str> {
        let end = self.rest.find(|c: char| !unicode_ident::is_xid_continue(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        (!word.is_empty()).then_some(word)
    }

    fn skip(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.map_or(self.rest, str::trim_start);
        rest.is_some()
    }
}

/// Returns `true` if the text is a number.
fn is_index(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns `true` if the text can name an argument or a field. Keywords can, as raw identifiers. The compiler's own
/// lexer is not used, because it reports errors itself.
fn is_identifier(text: &str) -> bool {
    let mut chars = text.chars();
    let starts = chars.next().is_some_and(|c| c == '_' || unicode_ident::is_xid_start(c));
    starts && chars.all(unicode_ident::is_xid_continue) && !matches!(text, "_" | "Self" | "super" | "crate")
}

#[cfg(test)]
mod tests {
    use super::{Hole, Input, Step};

    #[test]
    fn placeholder_value_paths_are_parsed() {
        type Row<'a> = (&'a str, &'a [&'a str], &'a [Step], Option<&'a str>);
        let table: &[Row<'_>] = &[
            ("id", &["id"], &[], None),
            (" id ", &["id"], &[], None),
            ("id:", &["id"], &[], None),
            ("id:08", &["id"], &[], Some("08")),
            ("id:#010x", &["id"], &[], Some("#010x")),
            ("id:X", &["id"], &[], Some("X")),
            ("CONST", &["CONST"], &[], None),
            ("Self::NS", &["Self", "NS"], &[], None),
            ("crate::a::NS:o", &["crate", "a", "NS"], &[], Some("o")),
            ("self.tenant", &["self"], &[Step::Field("tenant".into())], None),
            ("a.0.1", &["a"], &[Step::Field("0".into()), Step::Field("1".into())], None),
            ("a.len()", &["a"], &[Step::Call("len".into(), vec![])], None),
            (
                "a.get(1, other)[0].b",
                &["a"],
                &[
                    Step::Call("get".into(), vec![Input::Number("1".into()), Input::Name("other".into())]),
                    Step::Index(Input::Number("0".into())),
                    Step::Field("b".into()),
                ],
                None,
            ),
            (
                "a.get(b, -3)",
                &["a"],
                &[Step::Call("get".into(), vec![Input::Name("b".into()), Input::Number("-3".into())])],
                None,
            ),
            ("tags[index]", &["tags"], &[Step::Index(Input::Name("index".into()))], None),
        ];
        for (inside, root, steps, format) in table {
            let hole = Hole::read(inside).unwrap();
            assert_eq!(
                (hole.root.iter().map(String::as_str).collect(), hole.steps.as_slice()),
                (root.to_vec(), *steps)
            );
            assert_eq!(hole.format.as_ref().map(|format| format.text.as_str()), *format, "{inside}");
        }
    }

    #[test]
    fn invalid_placeholders_are_rejected() {
        for inside in [
            "a.", "a..b", ".a", "a[", "a[]", "a[0", "a.b(", "a.b(1", "a.b(1 2)", "a.0()", "_", "Self", "a b", "a::",
            "::a",
        ] {
            let mistake = Hole::read(inside).unwrap_err();
            assert!(mistake.contains("is not an argument"), "{inside}: {mistake}");
        }
        for inside in
            ["a + 1", "a % 16", "a-b", "a\"", "a.b(-c)", "a[-1]", "a?", "a == b", "a as u8", "a as u8 / 2", "b(a)"]
        {
            let mistake = Hole::read(inside).unwrap_err();
            assert!(mistake.contains("is an expression"), "{inside}: {mistake}");
        }
    }

    #[test]
    fn ambiguous_formats_are_rejected() {
        for (inside, expected) in [
            ("id:?", "`Debug` text"),
            ("id:#?", "`Debug` text"),
            ("id:x?", "`Debug` text"),
            ("id:w$", "from another argument"),
            ("id:1$", "from another argument"),
            ("id:.3", "truncates the value"),
            ("id:8", "is not a valid format in a key"),
            ("id:<8", "is not a valid format in a key"),
            ("id:*^8", "is not a valid format in a key"),
            ("id:#", "is not a valid format in a key"),
            ("id:0", "is not a valid format in a key"),
            ("id:e", "is not a valid format in a key"),
            ("id:xx", "is not a valid format in a key"),
            ("id:+", "is not a valid format in a key"),
        ] {
            let mistake = Hole::read(inside).unwrap_err();
            assert!(mistake.contains(expected), "{inside}: {mistake}");
        }
    }
}
