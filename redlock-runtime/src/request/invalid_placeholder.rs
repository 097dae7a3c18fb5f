//! Finds the placeholder of an attribute whose value makes a key invalid.
//!
//! The text of a key is built before it is checked, and does not show its origin. So the placeholder is searched in the template:
//! at the place of the invalid segment of a path, if that segment is a single placeholder. A valid call does none of this.

use crate::lock::invalid_key::{InvalidKey, Reason, Segment};

/// Adds the guilty placeholder of the `nth` of `count` templates to an error, if it is found. `written` is the text of all
/// templates.
pub(super) fn blamed(invalid: InvalidKey, written: &'static str, (nth, count): (usize, usize)) -> InvalidKey {
    let template = if count == 1 { Some(written) } else { quoted(written).nth(nth) };
    match template.and_then(|template| to_blame(template, invalid.kind(), invalid.segment())) {
        Some(Placeholder { name, is_subpath }) => invalid.of(name, is_subpath),
        None => invalid,
    }
}

/// Placeholder that is a whole segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Placeholder {
    name: &'static str,
    is_subpath: bool,
}

fn to_blame(template: &'static str, reason: Reason, segment: Option<Segment>) -> Option<Placeholder> {
    // A key is empty if its only placeholder is empty.
    if reason == Reason::Empty {
        return placeholder(template);
    }
    let segments = segments(template);
    let subpaths = || segments.iter().filter_map(|segment| placeholder(segment)).filter(|found| found.is_subpath);
    match segment {
        Some(segment) => placeholder(at(&segments, segment)?),
        None if reason == Reason::TooManySegments => only(subpaths()),
        None => {
            let with_values = only(segments.iter().filter(|segment| has_value(segment)))?;
            placeholder(with_values)
        }
    }
}

/// Returns the segment of the template that has become the given segment of the path. `None` if several placeholders may have
/// caused it.
fn at(segments: &[&'static str], Segment { index, count }: Segment) -> Option<&'static str> {
    let is_subpath = |segment: &&'static str| placeholder(segment).is_some_and(|found| found.is_subpath);
    let from_end = segments.len().checked_sub(count.checked_sub(index)?);
    let (first, last) = (segments.iter().position(is_subpath), segments.iter().rposition(is_subpath));
    let (Some(first), Some(last)) = (first, last) else { return segments.get(index).copied() };
    match from_end {
        _ if index < first => segments.get(index).copied(),
        Some(from_end) if from_end > last => segments.get(from_end).copied(),
        _ if first == last => segments.get(first).copied(),
        _ => None,
    }
}

/// Splits a path at its slashes, except for those in braces. Two braces are one brace of the text.
fn segments(path: &'static str) -> Vec<&'static str> {
    let mut is_inside = false;
    let is_end = |c: char| {
        is_inside = c == '{' && !is_inside || is_inside && c != '}' && c != '{';
        c == '/' && !is_inside
    };
    path.strip_prefix('/').unwrap_or(path).split(is_end).collect()
}

/// Returns `true` if the segment contains a placeholder.
fn has_value(segment: &str) -> bool {
    segment.replace("{{", "").contains('{')
}

/// Returns the placeholder if it is the whole text.
fn placeholder(text: &'static str) -> Option<Placeholder> {
    let inside = text.strip_prefix('{')?.strip_suffix('}')?;
    if inside.contains(['{', '}']) {
        return None;
    }
    let format = inside.replace("::", "  ").find(':');
    let name = format.and_then(|format| inside.get(..format)).unwrap_or(inside).trim();
    Some(Placeholder { name, is_subpath: inside.trim_end().ends_with('/') })
}

/// Returns the only element.
fn only<T>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next()?;
    all.next().is_none().then_some(first)
}

/// Returns the quoted texts of a list.
fn quoted(all: &'static str) -> impl Iterator<Item = &'static str> {
    let mut rest = all;
    std::iter::from_fn(move || {
        let (_, text) = rest.split_once('"')?;
        let mut is_escaped = false;
        let end = text.find(|c: char| {
            let is_end = c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            is_end
        })?;
        rest = text.get(end + 1..)?;
        text.get(..end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::{LockKey, LockPath};

    /// Returns the placeholder and the reason for a path of a single template.
    fn of_path(template: &'static str, text: &str) -> (Option<&'static str>, &'static str) {
        let found = blamed(LockPath::from(text).check().unwrap_err(), template, (0, 1));
        (found.placeholder(), found.reason())
    }

    #[test]
    fn invalid_placeholder_is_found_by_its_segment() {
        let (deep, long) = (["/a"; 17].concat(), format!("/{}", "a".repeat(1100)));
        let table = [
            ("/{tenant}", "/", Some("tenant"), "is empty"),
            ("/{tenant}/{folder}", "//b", Some("tenant"), "is empty"),
            ("/{tenant}/{folder}", "/a/", Some("folder"), "is empty"),
            ("/{self.tenant.id:08}/x", "//x", Some("self.tenant.id"), "is empty"),
            ("/{Self::TENANT}/x", "//x", Some("Self::TENANT"), "is empty"),
            ("/{tenant}/{dir:/}", "/a/b/../c", Some("dir"), "has the segment `.` or `..`"),
            ("/{tenant}/{dir:/}", "//b/c", Some("tenant"), "is empty"),
            ("/{tenant}/{dir:/}", "/a/", Some("dir"), "has an empty segment"),
            ("/{tenant}/{dir:/}/{file}", "/a/b/c/", Some("file"), "is empty"),
            ("/{tenant}/{dir:/}/{file}", "/a//c", Some("dir"), "has an empty segment"),
            ("/{tenant}/{dir:/}/x", "/a/b//x", Some("dir"), "has an empty segment"),
            ("/{from:/}/x/{to:/}", "/a/x/..", None, "has the segment `.` or `..`"),
            ("/{from:/}/x/{to}", "/a/./x/b", Some("from"), "has the segment `.` or `..`"),
            ("/{{a/{tenant}", "/{a/", Some("tenant"), "is empty"),
            ("/{{a}}/{tenant}/b", "/{a}//b", Some("tenant"), "is empty"),
            ("/a/{dir:/}", &deep, Some("dir"), "has too many segments"),
            ("/{from:/}/{to:/}", &deep, None, "has too many segments"),
            ("/{tenant}", &long, Some("tenant"), "is too long"),
            ("/a/{{}}/{tenant}", &long, Some("tenant"), "is too long"),
            ("/a-{tenant}", &long, None, "is too long"),
            ("/{tenant}/{folder}", &long, None, "is too long"),
        ];
        for (template, text, placeholder, reason) in table {
            assert_eq!(of_path(template, text), (placeholder, reason), "{template} {text}");
        }
    }

    #[test]
    fn empty_key_is_blamed_on_its_only_placeholder() {
        let empty = || LockKey::from("").check().unwrap_err();
        assert_eq!(blamed(empty(), "{order_id}", (0, 1)).placeholder(), Some("order_id"));
        assert_eq!(blamed(empty(), r#""\"{a}" + "{b}""#, (1, 2)).placeholder(), Some("b"));
        assert_eq!(blamed(empty(), r#""\"{a}" + "{b}""#, (2, 3)).placeholder(), None);
    }

    #[test]
    fn invalid_key_reason_does_not_contain_the_value() {
        let found = blamed(LockPath::from("/secret/..").check().unwrap_err(), "/{tenant}/{dir:/}", (0, 1));
        assert_eq!(
            found.to_string(),
            "the path \"/secret/..\" has the segment \"..\", which is not allowed: resolve the path first; the cause \
             is the value of `{dir}`"
        );
        assert!(!found.reason().contains("secret"));
    }
}
