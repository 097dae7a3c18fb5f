//! Placeholders of other languages, which are plain text in a key: `${id}`, `#{id}`, `{{id}}`, `$id`, `#id`.

use std::ops::Range;

/// Placeholder of another language.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Foreign<'a> {
    /// The placeholder as written, such as `${id}`.
    pub(crate) written: &'a str,
    /// Template with `{id}` instead of it.
    pub(crate) meant: String,
}

/// Finds the first placeholder of another language. Text without braces is a placeholder only if it names an argument.
/// A sign is part of one only if it does not separate the text before it, as in `USER#{id}`. All other text may be
/// intended.
pub(crate) fn foreign(template: &str, is_argument: impl Fn(&str) -> bool) -> Option<Foreign<'_>> {
    let found = |at: usize| {
        let (place, name) = placeholder(template.get(at..)?, &is_argument)?;
        let place = at + place.start..at + place.end;
        let (before, written, after) =
            (template.get(..place.start)?, template.get(place.clone())?, template.get(place.end..)?);
        // `{{{id}}}` is a value in braces, which Redis Cluster uses as the hashed part of the key.
        let is_meant = if written.starts_with("{{") {
            before.ends_with('{') || after.starts_with('}')
        } else {
            before.ends_with(|c: char| c == '}' || c.is_alphanumeric())
        };
        (!is_meant).then(|| Foreign { written, meant: format!("{before}{{{name}}}{after}") })
    };
    template.char_indices().find_map(|(at, _)| found(at))
}

/// Returns the placeholder at the start of the text, and the name in it.
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
