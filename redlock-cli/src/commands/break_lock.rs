//! `redlock break KEY --token T`: takes a lock from whoever has it.

use crate::json;
use crate::outcome::{NO, Outcome, UNANSWERED, UNKNOWN, YES};
use redlock_runtime::{BreakReport, BreakRequest, LockManager};
use std::time::Duration;
use tokio::time::timeout;

/// How long the release may take to be answered before the process ends. Smaller, who waits is served late when a node is slow;
/// larger, the command hangs where one is frozen.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) async fn run(manager: &LockManager, request: BreakRequest, is_forced: bool, json: bool) -> Outcome {
    let report = manager.break_lock_with(request).await;
    // The lock is on its way to the next one when the report is here, and this process may end.
    let is_answered = timeout(PATIENCE, manager.shutdown()).await == Ok(true);
    let code = code(&report, is_forced);
    let outcome = if json { Outcome::said(&json::break_report(&report), code) } else { Outcome::said(&report, code) };
    let late =
        (!is_answered).then(|| "a node has not answered: who waits there is served when the lease is over".to_owned());
    let unanswered =
        "the holder has not said that it has stopped, and nobody else gets the lock before its lease is over";
    let unanswered = (code == UNANSWERED).then(|| unanswered.to_owned());
    outcome.complaining(late.into_iter().chain(unanswered))
}

fn code(report: &BreakReport, force: bool) -> u8 {
    match () {
        () if report.is_broken() && (report.has_stopped || force) => YES,
        () if report.is_broken() => UNANSWERED,
        () if report.is_heard() => NO,
        () => UNKNOWN,
    }
}
