//! Placeholders as other languages write them, which are plain text in a key: `${id}`, `#{id}`, `{{id}}`, `$id`, `#id`.

use std::ops::Range;

/// A placeholder of another language.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Foreign<'a> {
    /// `${id}`
    pub(crate) written: &'a str,
    /// The template with `{id}` in its place.
    pub(crate) meant: String,
}

/// The first placeholder of another language. Text without braces is one only if it names an argument, and a sign only if it
/// does not itself separate what is before it, as in `USER#{id}`: all else may be meant as it is.
pub(crate) fn foreign(template: &str, is_argument: impl Fn(&str) -> bool) -> Option<Foreign<'_>> {
    let found = |at: usize| {
        let (place, name) = placeholder(template.get(at..)?, &is_argument)?;
        let place = at + place.start..at + place.end;
        let (before, written, after) =
            (template.get(..place.start)?, template.get(place.clone())?, template.get(place.end..)?);
        // `{{{id}}}` is a value between braces, which a cluster takes for the part of the key that it hashes.
        let is_meant = if written.starts_with("{{") {
            before.ends_with('{') || after.starts_with('}')
        } else {
            before.ends_with(|c: char| c == '}' || c.is_alphanumeric())
        };
        (!is_meant).then(|| Foreign { written, meant: format!("{before}{{{name}}}{after}") })
    };
    template.char_indices().find_map(|(at, _)| found(at))
}

/// The placeholder at the start of the text, and what it names.
fn placeholder<'a>(text: &'a str, is_argument: &impl Fn(&str) -> bool) -> Option<(Range<usize>, &'a str)> {
    if let Some(inside) = text.strip_prefix("{{") {
        let (name, _) = inside.split_once("}}")?;
        return is_argument(name.trim()).then(|| (0..name.len() + 4, name.trim()));
    }
    let rest = text.strip_prefix(['$', '#'])?;
    if let Some(inside) = rest.strip_prefix('{').filter(|inside| !inside.starts_with('{')) {
        let (name, _) = inside.split_once('}')?;
        return Some((0..name.len() + 3, name));
    }
    let end = rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len());
    let name = rest.get(..end)?;
    is_argument(name).then_some((0..end + 1, name))
}

#[cfg(test)]
mod tests {
    use super::foreign;

    #[test]
    fn placeholders_of_other_languages_are_found() {
        let table = [
            ("order:${id}", Some(("${id}", "order:{id}"))),
            ("order:#{order.id}:x", Some(("#{order.id}", "order:{order.id}:x"))),
            ("order:{{id}}", Some(("{{id}}", "order:{id}"))),
            ("order:{{ id }}", Some(("{{ id }}", "order:{id}"))),
            ("order:$id", Some(("$id", "order:{id}"))),
            ("order:#id:#id", Some(("#id", "order:{id}:#id"))),
            ("order:{id}", None),
            ("order:{{{id}}}", None),
            ("{{orders}}:{id}", None),
            ("order:#7:{id}", None),
            ("order:$idx", None),
            ("ORDER#{id}", None),
            ("{tenant}#{id}", None),
            ("#{id}", Some(("#{id}", "{id}"))),
            ("order:#", None),
            ("order:${id", None),
            ("order:#{{id}}", Some(("{{id}}", "order:#{id}"))),
        ];
        for (template, expected) in table {
            let found = foreign(template, |name| name == "id");
            assert_eq!(found.as_ref().map(|found| (found.written, found.meant.as_str())), expected, "{template}");
        }
    }
}
