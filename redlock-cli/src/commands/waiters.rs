//! `redlock waiters KEY`: who waits for a lock, the next one first.

use super::{failures, is_heard};
use crate::age::age;
use crate::json;
use crate::outcome::{NO, Outcome, UNKNOWN, YES};
use redlock_runtime::LockManager;
use serde_json::Value;

pub(super) async fn run(manager: &LockManager, key: &str, json: bool) -> Outcome {
    let inspection = manager.inspect(key).await;
    let waiters = inspection.waiters();
    let code = match waiters.len() {
        _ if !is_heard(&inspection) => UNKNOWN,
        0 => NO,
        _ => YES,
    };
    let outcome = if json {
        Outcome::said(&waiters.into_iter().map(json::owner).collect::<Value>(), code)
    } else {
        let lines = waiters.iter().map(|owner| format!("{owner}, for {}", age(owner.age())));
        Outcome::said(&lines.collect::<Vec<_>>().join("\n"), code)
    };
    outcome.complaining(failures(&inspection))
}
