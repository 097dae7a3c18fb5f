//! `redlock list [PATTERN]`: the held locks, one line each.

use super::waiter_count;
use crate::age::age;
use crate::outcome::{NO, Outcome, UNKNOWN, YES};
use redlock_runtime::LockManager;
use redlock_runtime::admin::{Holder, InspectOptions, Inspection, ListOptions, single_line};
use serde_json::to_value;

pub(super) async fn run(manager: &LockManager, options: ListOptions, json: bool) -> Outcome {
    let list = manager.list(options).await;
    let mut locks = manager.inspect_all(list.keys.iter().cloned(), InspectOptions::default()).await;
    // Remove locks that were released after the list was made.
    locks.retain(|lock| lock.holder() != Some(&Holder::Nobody));
    let code = match locks.len() {
        _ if !list.has_quorum() => UNKNOWN,
        0 => NO,
        _ => YES,
    };
    let outcome = if json {
        Outcome::json(&list, [("locks", to_value(&locks).unwrap_or_default())], code)
    } else {
        Outcome::new(&locks.iter().map(line).collect::<Vec<_>>().join("\n"), code)
    };
    let more = "the list may be incomplete: raise --limit or --timeout, or pass a narrower pattern";
    let more = (!list.is_complete).then(|| more.to_owned());
    outcome.with_messages(more.into_iter().chain(list.failures.iter().map(ToString::to_string)))
}

/// Formats a lock: `order:7  12.3s  2 processes waiting  order-service;host7;1234 at 10.0.0.9:51234 (token ..)`
fn line(lock: &Inspection) -> String {
    let count = waiter_count(lock);
    let processes = if count == 1 { "process" } else { "processes" };
    let (key, waiting) = (single_line(lock.key.as_str()), format!("{count} {processes} waiting"));
    match lock.holder() {
        Some(Holder::Owner(owner)) => format!("{key}  {}  {waiting}  {owner}", age(owner.age())),
        Some(holder) => format!("{key}  {waiting}  {holder}"),
        None => format!("{key}  {waiting}  no majority"),
    }
}
