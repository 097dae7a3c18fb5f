//! `redlock waiters KEY`: the waiters of a key, the next one first.

use super::{failures, has_quorum};
use crate::age::age;
use crate::outcome::{NO, Outcome, UNKNOWN, YES};
use redlock_runtime::LockManager;

pub(super) async fn run(manager: &LockManager, key: &str, json: bool) -> Outcome {
    let inspection = manager.inspect(key).await;
    let waiters = inspection.waiters();
    let code = match waiters.len() {
        _ if !has_quorum(&inspection) => UNKNOWN,
        0 => NO,
        _ => YES,
    };
    let outcome = if json {
        Outcome::json(&waiters, [], code)
    } else {
        let lines = waiters.iter().map(|owner| format!("{owner}, waiting for {}", age(owner.age())));
        Outcome::new(&lines.collect::<Vec<_>>().join("\n"), code)
    };
    outcome.with_messages(failures(&inspection))
}
