//! Helpers to run an example until it exits.

use redlock_tests::PATIENCE;
use std::process::Stdio;
use tokio::process::Command;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::timeout;

/// Serializes tests that run an example: the examples use all cores, and some print times.
pub(crate) async fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::const_new(());
    TURN.lock().await
}

/// Exit status and output of a program.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) succeeded: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Command for the program at `path`, with `nodes` as `REDLOCK_NODES`. Dropping the child kills it.
pub(crate) fn command(path: &str, nodes: Option<&str>) -> Command {
    let mut command = Command::new(path);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    match nodes {
        Some(nodes) => command.env("REDLOCK_NODES", nodes),
        None => command.env_remove("REDLOCK_NODES"),
    };
    command
}

/// Runs a program until it exits.
pub(crate) async fn run(mut command: Command) -> Outcome {
    let output = timeout(PATIENCE, command.output()).await;
    let output = output.unwrap_or_else(|_| panic!("{command:?} has not ended")).unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Outcome { succeeded: output.status.success(), stdout: text(output.stdout), stderr: text(output.stderr) }
}
