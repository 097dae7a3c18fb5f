//! Names that no lock may have, because they belong to keys beside a lock: queues, gates and fencing registers.
//!
//! `node::redis::side_key` creates these names. A test there checks that this module knows all of them.

use crate::lock::OwnerToken;
use std::borrow::Cow;

/// Beginning of the names of fencing registers, below the namespace. All locks of a slot in one namespace share a register, which does
/// not expire.
pub(crate) const REGISTER: &str = "redlock:f:";

/// Returns the name under which a process lists a token that is in no local queue, because it shares a lock with others. No lock
/// has a name with this beginning.
pub(crate) fn line_of(token: &OwnerToken) -> String {
    [REGISTER, token.as_str()].concat()
}

/// Endings behind the first closing brace: queues, counters of older versions, and gates.
pub(crate) const SIDE_KINDS: [&str; 3] = [":q", ":f", ":t"];

/// Returns `true` if something beside a lock may have this `name` in Redis: `{order:7}:q`, `redlock:f:{9}`, or `shop:redlock:f:{9}`.
pub(crate) fn is_reserved(name: &str) -> bool {
    let is_of = |rest: &str, kind| rest.strip_prefix(kind).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'));
    let behind_tag = name.strip_prefix('{').and_then(|rest| rest.split_once('}'));
    name.starts_with(REGISTER)
        || below_namespace(name).starts_with(REGISTER)
        || behind_tag.is_some_and(|(_, rest)| SIDE_KINDS.iter().any(|kind| is_of(rest, kind)))
}

/// Returns the part of `name` below its namespace. Empty without a namespace.
fn below_namespace(name: &str) -> &str {
    name.split_once(':').map_or("", |(_, rest)| rest)
}

/// Escapes the first character of `rest`, which is the end of `text`, if `rest` begins like a register or like an escaped register.
fn unlike_register<'t>(text: &'t str, rest: &str) -> Cow<'t, str> {
    let mut unescaped = rest.strip_prefix('%').unwrap_or_default();
    while let Some(shorter) = unescaped.strip_prefix("25") {
        unescaped = shorter;
    }
    let code = match unescaped
        .strip_prefix("72")
        .and_then(|rest| REGISTER.get(1..).map(|register| rest.starts_with(register)))
    {
        Some(true) => "%25",
        _ if rest.starts_with(REGISTER) => "%72",
        _ => return text.into(),
    };
    let start = text.get(..text.len() - rest.len()).unwrap_or_default();
    [start, code, rest.get(1..).unwrap_or_default()].concat().into()
}

/// Turns the `text` of a template into a name that is not reserved. The first character is escaped if the name is reserved, or if
/// it could be confused with an escaped name. Different texts stay different, because the escape sequence identifies the character.
pub(crate) fn unreserved(text: &str) -> Cow<'_, str> {
    let code = match text.as_bytes() {
        [b'{', ..] if is_reserved(text) => "%7B",
        [b'r', ..] if text.starts_with(REGISTER) => "%72",
        [b'%', b'7', b'B' | b'2', ..] | [b'%', b'2', b'5', ..] => "%25",
        _ => return unlike_register(text, below_namespace(text)),
    };
    [code, text.get(1..).unwrap_or_default()].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn ordinary_names_are_not_reserved() {
        for name in [
            "order:7",
            "order:{7}",
            "{7}:order",
            "{7}:queue",
            "{7}:fq",
            "{7}",
            "a{b}:q",
            "%3Aa",
            "redlock:fence",
            "a:%25",
            "a:%72",
            "a:b:redlock:f:{9}",
        ] {
            assert!(!is_reserved(name), "{name}");
            assert_eq!(unreserved(name), name);
        }
    }

    #[test]
    fn reserved_names_are_escaped_without_collisions() {
        let texts = [
            "{order:7}:q",
            "{order:7}:f",
            "{7}:q:order:{7}",
            "{}:f",
            "redlock:f:{9}",
            "redlock:f:9",
            "shop:redlock:f:{9}",
            "shop:%72edlock:f:{9}",
            "shop:%2572edlock:f:{9}",
            "shop:%252572edlock:f:{9}",
            "redlock:redlock:f:{9}",
            ":redlock:f:",
            "%7Border:7}:q",
            "%72edlock:f:9",
            "%257Border:7}:q",
            "%25",
            "%7B",
            "%",
            "%2525",
        ];
        let mut names = HashMap::new();
        for text in texts {
            let name = unreserved(text);
            assert!(!is_reserved(&name), "{text}: {name}");
            assert_eq!(names.insert(name.clone(), text), None, "{text}: {name}");
        }
    }
}
