//! `redlock inspect KEY`: who holds a lock, since when, from where, and who waits for it.

use crate::json;
use crate::outcome::{NO, Outcome, UNKNOWN, YES};
use redlock_runtime::{Holder, LockManager};

pub(super) async fn run(manager: &LockManager, key: &str, json: bool) -> Outcome {
    let inspection = manager.inspect(key).await;
    let code = match inspection.holder() {
        Some(Holder::Nobody) => NO,
        Some(_) => YES,
        None => UNKNOWN,
    };
    if json { Outcome::said(&json::inspection(&inspection), code) } else { Outcome::said(&inspection, code) }
}
