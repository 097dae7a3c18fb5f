//! `redlock list [PATTERN]`: which locks are held, one line each.

use crate::age::age;
use crate::json;
use crate::outcome::{NO, Outcome, UNKNOWN, YES};
use redlock_runtime::LockManager;
use redlock_runtime::admin::{Holder, Inspection, single_line};
use std::time::Duration;

pub(super) async fn run(manager: &LockManager, pattern: &str, most: usize, within: Duration, json: bool) -> Outcome {
    let list = manager.list(pattern, most, within).await;
    let mut locks = manager.inspect_all(list.keys.iter().cloned(), true).await;
    // Those that have ended meanwhile are no locks any more.
    locks.retain(|lock| lock.holder() != Some(&Holder::Nobody));
    let code = match locks.len() {
        _ if !list.is_heard() => UNKNOWN,
        0 => NO,
        _ => YES,
    };
    let outcome = if json {
        Outcome::said(&json::list(&list, &locks), code)
    } else {
        Outcome::said(&locks.iter().map(line).collect::<Vec<_>>().join("\n"), code)
    };
    let more = (!list.is_complete).then(|| {
        format!("there may be more than these: write --most (now {most}), --within (now {within:?}), or a pattern")
    });
    outcome.complaining(more.into_iter().chain(list.failures.iter().map(ToString::to_string)))
}

/// `order:7  12.3s  2 processes waiting  order-service;host7;1234 at 10.0.0.9:51234 (token ..)`
fn line(lock: &Inspection) -> String {
    let waiting = lock.nodes.iter().map(|node| node.waiting).max().unwrap_or(0);
    let processes = if waiting == 1 { "process" } else { "processes" };
    let (key, waiting) = (single_line(lock.key.as_str()), format!("{waiting} {processes} waiting"));
    match lock.holder() {
        Some(Holder::Owner(owner)) => format!("{key}  {}  {waiting}  {owner}", age(owner.age())),
        Some(holder) => format!("{key}  {waiting}  {holder}"),
        None => format!("{key}  {waiting}  no majority"),
    }
}
