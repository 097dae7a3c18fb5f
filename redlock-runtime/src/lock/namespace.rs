//! Namespaces of managers: prefixes that separate their keys in Redis.

use crate::lock::slot::hash_tag;
use std::fmt::Write as _;

/// Maximum length of an escaped namespace in bytes. It is a part of every key of every command, and of every script. Too large: scripts
/// become longer than a server accepts before the login.
pub(crate) const MAX_LEN: usize = 256;

/// Returns the prefix of the names of all keys in `namespace`: the escaped namespace and a colon, or nothing for no namespace.
///
/// 1. The only colon is the last character. So no two namespaces share a name: `shop` with `eu:7` is `shop:eu:7`, and `shop:eu` with
///    `7` is `shop%3Aeu:7`.
/// 2. No character has a meaning in a pattern of Redis, in the file of an ACL, or in a Lua string. So `<prefix>*` is a pattern for
///    exactly the keys of this namespace, and the prefix can be a part of a script.
/// 3. Either the prefix contains a complete hash tag, or it contains no opening brace. So all names have the slot of that tag, or
///    the prefix does not change which tag they have. No name begins with a brace and the prefix of another namespace.
pub(crate) fn prefix(namespace: &str) -> String {
    let mut prefix = String::with_capacity(namespace.len() + 1);
    let mut has_tag = false;
    for (at, character) in namespace.char_indices() {
        let rest = namespace.get(at..).unwrap_or_default();
        let opens = character == '{' && !has_tag;
        has_tag |= opens && hash_tag(rest).is_some();
        if is_plain(character) && (!opens || has_tag) {
            prefix.push(character);
        } else {
            let _ = write!(prefix, "%{:02X}", u32::from(character));
        }
    }
    if !prefix.is_empty() {
        prefix.push(':');
    }
    prefix
}

/// Returns `true` for a character that stays as it is. All others are ASCII.
fn is_plain(character: char) -> bool {
    !(character.is_ascii_control() || " %:*?[]\\'\"`".contains(character))
}

/// Returns the error for an invalid namespace.
pub(crate) fn fault(namespace: &str) -> Option<String> {
    let length = prefix(namespace).len().saturating_sub(1);
    (length > MAX_LEN).then(|| {
        format!(
            "the namespace is {length} bytes long and at most {MAX_LEN} are allowed: use the name of the \
                 application"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn ordinary_namespace_is_unchanged_in_the_prefix() {
        let table =
            [("", ""), ("shop", "shop:"), ("shop/eu-1", "shop/eu-1:"), ("shop:eu", "shop%3Aeu:"), ("5%", "5%25:")];
        for (namespace, expected) in table {
            assert_eq!(prefix(namespace), expected);
        }
    }

    #[test]
    fn special_characters_of_patterns_and_scripts_are_escaped() {
        let table = [
            ("*", "%2A:"),
            ("s?[a-z]\\", "s%3F%5Ba-z%5D%5C:"),
            ("a'b\"c`", "a%27b%22c%60:"),
            (" \t\r\n\0\u{7f}", "%20%09%0D%0A%00%7F:"),
            ("schön", "schön:"),
        ];
        for (namespace, expected) in table {
            assert_eq!(prefix(namespace), expected);
        }
    }

    #[test]
    fn only_complete_hash_tags_keep_their_braces() {
        let table = [
            ("{shop}", "{shop}:"),
            ("eu{shop}", "eu{shop}:"),
            ("{shop", "%7Bshop:"),
            ("{}", "%7B}:"),
            ("{}{a}", "%7B}{a}:"),
            ("{{a}", "{{a}:"),
            ("{a}{", "{a}{:"),
            ("}{a", "}%7Ba:"),
            ("{a:b}", "{a%3Ab}:"),
        ];
        for (namespace, expected) in table {
            let prefix = prefix(namespace);
            assert_eq!(prefix, expected);
            assert_eq!(prefix.contains('{'), hash_tag(&prefix).is_some(), "{prefix}");
        }
    }

    #[test]
    fn names_in_different_namespaces_are_different() {
        let parts = ["a", ":", "%", "%3A", "%25", "3A", "b", "{", "}", "%7B", "*"];
        let texts: Vec<String> =
            parts.iter().flat_map(|a| parts.map(|b| [a, b].concat())).chain(parts.map(Into::into)).collect();
        let mut names = HashMap::new();
        for pair in texts.iter().flat_map(|namespace| texts.iter().map(move |key| (namespace, key))) {
            if let Some(other) = names.insert(prefix(pair.0) + pair.1, pair).filter(|other| *other != pair) {
                panic!("{pair:?} and {other:?}");
            }
        }
    }

    #[test]
    fn namespace_length_is_bounded() {
        assert_eq!(fault(&"n".repeat(MAX_LEN)), None);
        assert!(fault(&"n".repeat(MAX_LEN + 1)).unwrap().contains("257 bytes"));
        assert!(fault(&":".repeat(86)).unwrap().contains("258 bytes"), "as it is escaped");
    }
}
