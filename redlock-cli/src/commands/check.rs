//! `redlock check`: tests whether the nodes can be used for locks, and reports settings that may break locks.

use crate::outcome::{NO, Outcome, UNKNOWN, YES};
use redlock_runtime::LockManager;

pub(super) async fn run(manager: &LockManager, is_probe: bool, json: bool) -> Outcome {
    let report = manager.check().await;
    let warnings = report.warnings();
    let counting = report.nodes.iter().filter(|node| node.error.is_none()).count();
    let code = match warnings.len() {
        _ if counting < report.needed => UNKNOWN,
        0 => YES,
        _ if is_probe => YES,
        _ => NO,
    };
    if json {
        return Outcome::json(&report, [], code);
    }
    let warnings = warnings.iter().map(|warning| format!("\nwarning: {warning}"));
    Outcome::new(&std::iter::once(report.to_string()).chain(warnings).collect::<String>(), code)
}
