//! Where the keys of a manager stand in Redis: below its namespace, and apart from those of all others.

/// The longest namespace, in bytes. It is part of every key of every command: longer ones would cost more than they say.
const MAX_LEN: usize = 256;

/// What stands before a key. Without a separator in it but at its end, so that no other namespace has the same key: `shop`
/// with `eu:7` is `shop:eu:7`, and `shop:eu` with `7` is `shop%3Aeu:7`.
pub(crate) fn prefix(namespace: &str) -> String {
    if namespace.is_empty() { String::new() } else { namespace.replace('%', "%25").replace(':', "%3A") + ":" }
}

/// Why it cannot be a namespace, if so.
pub(crate) fn fault(namespace: &str) -> Option<String> {
    let length = namespace.len();
    (length > MAX_LEN).then(|| {
        format!("the namespace is {length} bytes long and at most {MAX_LEN} are allowed: name the application")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn an_ordinary_namespace_is_what_it_is() {
        let table =
            [("", ""), ("shop", "shop:"), ("shop/eu-1", "shop/eu-1:"), ("shop:eu", "shop%3Aeu:"), ("5%", "5%25:")];
        for (namespace, expected) in table {
            assert_eq!(prefix(namespace), expected);
        }
    }

    #[test]
    fn no_two_namespaces_share_a_name() {
        let parts = ["a", ":", "%", "%3A", "%25", "3A", "b"];
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
    fn it_is_bounded() {
        assert_eq!(fault(&"n".repeat(MAX_LEN)), None);
        assert!(fault(&"n".repeat(MAX_LEN + 1)).unwrap().contains("257 bytes"));
    }
}
