//! `redlock break KEY --token T`: takes a lock from its holder. Without a token, it shows the holder and asks.

use super::inspect;
use crate::arguments::Arguments;
use crate::outcome::{NO, Outcome, UNCONFIRMED, UNKNOWN, YES};
use redlock_runtime::LockManager;
use redlock_runtime::admin::{BreakOptions, BreakReport, Holder, single_line};
use std::io::{self, IsTerminal, Write};
use std::time::Duration;
use tokio::time::timeout;

/// Timeout for the replies to the release: 2 s. Too small: the next waiter is served late if a node is slow. Too large: the command hangs
/// if a node is frozen.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// Shows the holder and asks whether to break its lock. Returns the token of the holder.
///
/// # Errors
/// Returns the outcome of the command if nothing must be broken: the key is free or has several holders, there is no
/// terminal, or the answer is no.
pub(super) async fn confirmed_token(
    manager: &LockManager,
    arguments: &Arguments,
    key: &str,
) -> Result<String, Outcome> {
    let inspection = manager.inspect(key).await;
    let shown = |code| inspect::shown(&inspection, arguments, code);
    let readers = inspection.readers();
    let token = match (inspection.holder(), readers.as_slice()) {
        (Some(Holder::Nobody), _) => return Err(shown(NO)),
        (Some(Holder::Owner(owner)), _) => owner.token.to_string(),
        (Some(Holder::Shared { .. }), [owner]) => owner.token.to_string(),
        (Some(Holder::Foreign { value, .. }), _) => value.to_string(),
        (Some(Holder::Data), _) => {
            return Err(shown(UNKNOWN).with_messages(["the key holds data that is not a lock".to_owned()]));
        }
        (Some(_), _) => {
            let message = "the lock has several holders: pass one of the tokens above as --token".to_owned();
            return Err(shown(UNKNOWN).with_messages([message]));
        }
        (None, _) => return Err(shown(UNKNOWN)),
    };
    if arguments.json || !io::stdin().is_terminal() {
        let message = format!("cannot ask for confirmation without a terminal: pass --token {token}");
        return Err(shown(UNKNOWN).with_messages([message]));
    }
    let text: Vec<_> = shown(YES).text.trim_end().lines().map(|line| single_line(line).into_owned()).collect();
    if confirms(&text.join("\n")).unwrap_or(false) { Ok(token) } else { Err(Outcome::new(&"nothing was broken", NO)) }
}

/// Shows a text in the terminal and asks for confirmation. Returns `true` if the answer is yes.
fn confirms(text: &str) -> io::Result<bool> {
    let mut terminal = io::stderr();
    write!(terminal, "{text}\nBreak it? [y/N] ")?;
    terminal.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

pub(super) async fn run(
    manager: &LockManager,
    key: &str,
    options: BreakOptions,
    is_forced: bool,
    json: bool,
) -> Outcome {
    let report = manager.break_lock(key, options).await;
    // The release may still be unanswered. Wait for the replies, because this process ends soon.
    let is_answered = timeout(RELEASE_TIMEOUT, manager.shutdown()).await == Ok(true);
    let code = code(&report, is_forced);
    let outcome = if json { Outcome::json(&report, [], code) } else { Outcome::new(&report, code) };
    let unanswered = "a node has not answered the release: there, the next waiter is served when the lease ends";
    let unconfirmed = "the holder has not reported that it stopped: the key stays locked until its lease ends, unless it is broken by force";
    let messages = [(!is_answered, unanswered), (code == UNCONFIRMED, unconfirmed)];
    outcome.with_messages(messages.into_iter().filter(|(applies, _)| *applies).map(|(_, text)| text.to_owned()))
}

fn code(report: &BreakReport, is_forced: bool) -> u8 {
    match () {
        () if report.is_broken() && (report.holder_stopped || is_forced) => YES,
        () if report.is_broken() => UNCONFIRMED,
        () if report.has_quorum() => NO,
        () => UNKNOWN,
    }
}
