//! `redlock inspect KEY`: the holder of a key, its process and remaining lease, and the waiters.

use crate::arguments::Arguments;
use crate::connect;
use crate::outcome::{NO, Outcome, UNKNOWN, YES};
use redlock_runtime::LockManager;
use redlock_runtime::admin::{Holder, Inspection, ListOptions};
use serde_json::json;
use std::time::Duration;

/// Time limit of the search for a free key in other namespaces: 1 s. Too small: among millions of keys, the lock is not found. Too large: a
/// script that waits for a free key burdens the servers.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of keys in this search: 100. Too small: namespaces are missing. Too large: the answer fills the screen.
const SEARCH_LIMIT: usize = 100;

pub(super) async fn run(manager: &LockManager, arguments: &Arguments, key: &str) -> Outcome {
    let inspection = manager.inspect(key).await;
    let code = match inspection.holder() {
        Some(Holder::Nobody) => NO,
        Some(_) => YES,
        None => UNKNOWN,
    };
    let mut outcome = shown(&inspection, arguments, code);
    if code == NO && !arguments.json {
        let own = connect::namespace(arguments);
        for other in other_namespaces(arguments, key, own.as_deref()).await {
            let hint = if other.is_empty() {
                "  locked without a namespace: pass --namespace \"\"\n".to_owned()
            } else {
                format!("  locked in namespace {other:?}: pass --namespace {other:?}\n")
            };
            outcome.text.push_str(&hint);
        }
    }
    outcome
}

/// Returns an inspection with the namespace, as JSON or as text: `"order:7" in namespace "shop": free`.
pub(super) fn shown(inspection: &Inspection, arguments: &Arguments, code: u8) -> Outcome {
    let namespace = connect::namespace(arguments);
    if arguments.json {
        return Outcome::json(inspection, [("namespace", json!(namespace))], code);
    }
    let (text, key) = (inspection.to_string(), format!("{:?}", inspection.key.as_str()));
    let rest = text.strip_prefix(&key).unwrap_or(&text);
    let place =
        namespace.map_or_else(|| "without a namespace".to_owned(), |namespace| format!("in namespace {namespace:?}"));
    Outcome::new(&format!("{key} {place}{rest}"), code)
}

/// Returns the other namespaces in which any node has a lock of `key`. Stops at a time limit, so the list may be
/// incomplete. An empty name means no namespace.
async fn other_namespaces(arguments: &Arguments, key: &str, own: Option<&str>) -> Vec<String> {
    let Ok(all) = connect::connect_to_all(arguments) else { return Vec::new() };
    let pattern = ["*", &literally(key)].concat();
    let list = all.list(ListOptions::new(pattern).limit(SEARCH_LIMIT).timeout(SEARCH_TIMEOUT)).await;
    let namespaces = list.keys.iter().filter_map(|name| namespace_of(name.as_str(), key));
    namespaces.filter(|namespace| namespace != own.unwrap_or_default()).collect()
}

/// Returns the namespace of a lock named `name`, if it is a lock of `key`. The namespace is empty if the name has none.
fn namespace_of(name: &str, key: &str) -> Option<String> {
    match name.strip_suffix(key)? {
        "" => Some(String::new()),
        // The stored namespace contains no colon, because special characters are escaped as in a URL.
        prefix => prefix.strip_suffix(':').filter(|prefix| !prefix.contains(':')).map(unescaped),
    }
}

/// Decodes percent-encoded characters, such as `%3A`.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('%');
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let character = part.get(..2).and_then(|code| u8::from_str_radix(code, 16).ok());
        match character {
            Some(character) => {
                result.push(char::from(character));
                result.push_str(part.get(2..).unwrap_or_default());
            }
            None => result.push_str(part),
        }
    }
    result
}

/// Returns a Redis pattern that matches only `text`.
fn literally(text: &str) -> String {
    let special = |c: char| matches!(c, '*' | '?' | '[' | ']' | '\\' | '^' | '-');
    text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespace_is_parsed_from_the_lock_name() {
        let table = [
            ("order:4", Some("")),
            ("shop:order:4", Some("shop")),
            ("shop%3Aeu:order:4", Some("shop:eu")),
            ("50%25:order:4", Some("50%")),
            ("preorder:4", None),
            ("a:b:order:4", None),
            ("shop:order:44", None),
        ];
        for (name, expected) in table {
            assert_eq!(namespace_of(name, "order:4").as_deref(), expected, "{name}");
        }
    }
}
