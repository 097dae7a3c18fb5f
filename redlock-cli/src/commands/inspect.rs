//! `redlock inspect KEY`: who holds a lock, since when, from where, and who waits for it.

use crate::arguments::Arguments;
use crate::outcome::{NO, Outcome, UNKNOWN, YES};
use crate::{connect, json};
use redlock_runtime::LockManager;
use redlock_runtime::admin::Holder;
use serde_json::json;
use std::time::Duration;

/// How long other namespaces are searched for a free key. Too short: among millions of keys, a lock in another namespace is not found. Too
/// long: a script that waits for a free key burdens the servers.
const LONGEST_SEARCH: Duration = Duration::from_secs(1);
/// Maximum number of names that are looked at in this search. Too small: namespaces are missing. Too large: the answer fills the screen.
const MOST_NAMES: usize = 100;

pub(super) async fn run(manager: &LockManager, arguments: &Arguments, key: &str) -> Outcome {
    let inspection = manager.inspect(key).await;
    let code = match inspection.holder() {
        Some(Holder::Nobody) => NO,
        Some(_) => YES,
        None => UNKNOWN,
    };
    let namespace = connect::namespace(arguments);
    if arguments.json {
        let mut inspection = json::inspection(&inspection);
        if let Some(inspection) = inspection.as_object_mut() {
            inspection.insert("namespace".to_owned(), json!(namespace));
        }
        return Outcome::said(&inspection, code);
    }
    let mut text = match &namespace {
        Some(namespace) => format!("{inspection}\n  in the namespace {namespace:?}"),
        None => format!("{inspection}\n  without a namespace"),
    };
    if code == NO {
        for other in other_namespaces(arguments, key, namespace.as_deref()).await {
            let hint = if other.is_empty() {
                "\n  taken without a namespace: write --namespace \"\"".to_owned()
            } else {
                format!("\n  taken in the namespace {other:?}: write --namespace {other:?}")
            };
            text.push_str(&hint);
        }
    }
    Outcome::said(&text, code)
}

/// Returns the other namespaces in which `key` is taken at any node, as far as they are found in time. The empty name stands for no
/// namespace.
async fn other_namespaces(arguments: &Arguments, key: &str, own: Option<&str>) -> Vec<String> {
    let Ok(all) = connect::connect_to_all(arguments) else { return Vec::new() };
    let pattern = ["*", &literally(key)].concat();
    let list = all.list(&pattern, MOST_NAMES, LONGEST_SEARCH).await;
    let namespaces = list.keys.iter().filter_map(|name| namespace_of(name.as_str(), key));
    namespaces.filter(|namespace| namespace != own.unwrap_or_default()).collect()
}

/// Returns the namespace in the name of a lock of `key`; empty if there is none, and `None` for the name of another key.
fn namespace_of(name: &str, key: &str) -> Option<String> {
    match name.strip_suffix(key)? {
        "" => Some(String::new()),
        // A namespace has no colon in Redis, and other characters are escaped as in a URL.
        prefix => prefix.strip_suffix(':').filter(|prefix| !prefix.contains(':')).map(unescaped),
    }
}

/// Replaces `%3A` by the character with this number.
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

/// Returns a pattern of Redis that matches `text` alone.
fn literally(text: &str) -> String {
    let special = |c: char| matches!(c, '*' | '?' | '[' | ']' | '\\' | '^' | '-');
    text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespace_is_read_from_the_name_of_a_lock() {
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
