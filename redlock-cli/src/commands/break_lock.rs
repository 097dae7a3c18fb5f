//! `redlock break KEY --token T`: takes a lock away from its holder. Without a token, it shows the holder and asks.

use crate::json;
use crate::outcome::{NO, Outcome, UNANSWERED, UNKNOWN, YES};
use redlock_runtime::LockManager;
use redlock_runtime::admin::{BreakReport, BreakRequest, Holder, single_line};
use std::io::{self, IsTerminal, Write};
use std::time::Duration;
use tokio::time::timeout;

/// How long the release may take to be answered before the process ends. Smaller, who waits is served late when a node is slow;
/// larger, the command hangs where one is frozen.
const PATIENCE: Duration = Duration::from_secs(2);

/// Shows the holder and asks whether to break its lock. Returns the token of the holder.
///
/// # Errors
/// The outcome of the command if nothing must be broken: the lock is free or has several holders, there is no terminal, or the answer is no.
pub(super) async fn confirmed_token(manager: &LockManager, key: &str, json: bool) -> Result<String, Outcome> {
    let inspection = manager.inspect(key).await;
    let readers = inspection.readers();
    let token = match (inspection.holder(), readers.as_slice()) {
        (Some(Holder::Nobody), _) => return Err(Outcome::said(&inspection, NO)),
        (Some(Holder::Owner(owner)), _) => owner.token.to_string(),
        (Some(Holder::Shared { .. }), [owner]) => owner.token.to_string(),
        (Some(Holder::Foreign { value, .. }), _) => value.to_string(),
        (Some(_), _) => {
            let complaint = "which lock to break is not clear: write --token with one of the tokens above".to_owned();
            return Err(Outcome::said(&inspection, UNKNOWN).complaining([complaint]));
        }
        (None, _) => return Err(Outcome::said(&inspection, UNKNOWN)),
    };
    if json || !io::stdin().is_terminal() {
        let complaint = format!("`break` asks in a terminal only: write --token {token}");
        return Err(Outcome::said(&inspection, UNKNOWN).complaining([complaint]));
    }
    let shown: Vec<_> = inspection.to_string().lines().map(|line| single_line(line).into_owned()).collect();
    if asks(&shown.join("\n")).unwrap_or(false) { Ok(token) } else { Err(Outcome::said(&"nothing was broken", NO)) }
}

/// Shows a text in the terminal, and returns `true` if the answer is yes.
fn asks(text: &str) -> io::Result<bool> {
    let mut terminal = io::stderr();
    write!(terminal, "{text}\nBreak this lock? [y/N] ")?;
    terminal.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "yes" | "Y"))
}

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
