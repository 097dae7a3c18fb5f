//! Reduces every placeholder of a template to a name at its old position, so that editors can read it as a format
//! string.

/// Returns a literal of the same length, in which `{order.id}` is `{order:dd}`: a name with an unknown format, so that
/// the name keeps its meaning. A placeholder becomes text if its root is a path, or a name that is not `wanted`.
///
/// It works on the literal as written, because positions in it are those of the source. A placeholder with escaped
/// characters becomes unreadable.
pub(crate) fn with_names_only(literal: &str, wanted: impl Fn(&str) -> bool) -> String {
    let (mut out, mut rest) = (String::with_capacity(literal.len()), literal);
    while let Some(at) = rest.find(['{', '}']) {
        let (text, brace) = rest.split_at(at);
        let (taken, after) = placeholder(brace, &wanted);
        out.push_str(text);
        out.push_str(&taken);
        rest = after;
    }
    out + rest
}

/// Returns the replacement of the brace at the start and everything that belongs to it, and the rest.
fn placeholder<'a>(brace: &'a str, wanted: &impl Fn(&str) -> bool) -> (String, &'a str) {
    let escaped = ["{{", "}}"].into_iter().find(|escaped| brace.starts_with(escaped));
    if let Some(escaped) = escaped {
        return (escaped.to_owned(), brace.get(2..).unwrap_or_default());
    }
    let inside = brace.strip_prefix('{').and_then(|inside| inside.split_once('}'));
    match inside {
        Some((inside, after)) if !inside.contains('{') => (only_name(inside, wanted), after),
        // Half typed, or wrong: the next reader of the text reports it.
        _ => (brace.get(..1).unwrap_or_default().to_owned(), brace.get(1..).unwrap_or_default()),
    }
}

/// Returns the placeholder with the text `inside`, reduced to the name of its root.
fn only_name(inside: &str, wanted: &impl Fn(&str) -> bool) -> String {
    let end = inside.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(inside.len());
    let (name, suffix) = inside.split_at(end);
    if (name.is_empty() && !suffix.is_empty()) || suffix.starts_with("::") || !wanted(name) {
        return "d".repeat(inside.len() + 2);
    }
    match suffix.len().checked_sub(1) {
        None => format!("{{{name}}}"),
        Some(_) if suffix.starts_with(':') => format!("{{{inside}}}"),
        Some(rest) => format!("{{{name}:{}}}", "d".repeat(rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::with_names_only;

    #[test]
    fn names_keep_their_position() {
        let table = [
            (r#""nightly""#, r#""nightly""#),
            (r#""order:{order_id}""#, r#""order:{order_id}""#),
            (r#""order:{order.id}:x""#, r#""order:{order:dd}:x""#),
            (r#""{a.0}/{b.c.d}""#, r#""{a:d}/{b:ddd}""#),
            (r#""{id:08}-{order.id:x}""#, r#""{id:08}-{order:dddd}""#),
            (r#""{order.number()}{lines[0]}""#, r#""{order:dddddddd}{lines:dd}""#),
            (r#""{Self::NAME}:{id}""#, r#""dddddddddddd:{id}""#),
            (r##"r#"{{"{order.id}"}}"#"##, r##"r#"{{"{order:dd}"}}"#"##),
            (r#""\u{1F512}:{order.id}""#, r#""\u{1F512}:{order:dd}""#),
            (r#""{é.ü}""#, r#""{é:dd}""#),
            (r#""{}:{order.""#, r#""{}:{order.""#),
            (r#""{order.{id}}}""#, r#""{order.{id}}}""#),
            (r#""}{a.}""#, r#""}{a:}""#),
            ("", ""),
        ];
        for (written, expected) in table {
            assert_eq!(with_names_only(written, |_| true), expected, "{written}");
            assert_eq!(with_names_only(written, |_| true).len(), written.len(), "{written}");
        }
    }

    #[test]
    fn other_names_become_text() {
        let written = r#""{a}:{b.c}:{{{a.c}}}:{}""#;
        assert_eq!(with_names_only(written, |name| name != "a"), r#""ddd:{b:d}:{{ddddd}}:{}""#);
    }
}
