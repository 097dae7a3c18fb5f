//! `redlock fence KEY`: the largest fencing number of a key.

use super::{failures, has_quorum};
use crate::outcome::{NO, Outcome, UNKNOWN, YES};
use redlock_runtime::LockManager;
use serde_json::json;

pub(super) async fn run(manager: &LockManager, key: &str, json: bool) -> Outcome {
    let inspection = manager.inspect(key).await;
    let fence = inspection.fence();
    let code = match fence {
        _ if !has_quorum(&inspection) => UNKNOWN,
        Some(_) => YES,
        None => NO,
    };
    let text = fence.map(|fence| fence.to_string());
    let outcome = if json {
        Outcome::json(&json!({"key": key, "fence": text}), [], code)
    } else {
        Outcome::new(&text.unwrap_or_default(), code)
    };
    outcome.with_messages(failures(&inspection))
}
