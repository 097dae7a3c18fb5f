//! Runs `redlock` as a process.

use redlock_runtime::{LockGuard, LockManager};
use redlock_tests::{Nodes, PATIENCE, eventually};
use serde_json::Value;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::timeout;

/// Exit code and output of a program.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Runs `redlock` with `nodes` as `REDLOCK_NODES`.
pub(crate) async fn redlock(nodes: &str, arguments: &[&str]) -> Outcome {
    redlock_with(nodes, &[], arguments).await
}

/// Runs `redlock` with `nodes` as `REDLOCK_NODES`, and other variables.
pub(crate) async fn redlock_with(nodes: &str, variables: &[(&str, &str)], arguments: &[&str]) -> Outcome {
    let mut command = Command::new(env!("CARGO_BIN_EXE_redlock"));
    command.args(arguments).env("REDLOCK_NODES", nodes).env_remove("REDLOCK_NAMESPACE");
    command.envs(variables.iter().copied());
    run(command).await
}

/// Runs `redlock` in a pseudo-terminal with `answer` as input. The output of the terminal becomes the standard output.
pub(crate) async fn redlock_in_terminal(nodes: &str, arguments: &[&str], answer: &str) -> Outcome {
    const TERMINAL: &str = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    let mut command = Command::new("python3");
    command.args(["-c", TERMINAL, env!("CARGO_BIN_EXE_redlock")]).args(arguments);
    command.env("REDLOCK_NODES", nodes).env_remove("REDLOCK_NAMESPACE");
    run_with(command, answer).await
}

/// Runs a program until it exits.
pub(crate) async fn run(command: Command) -> Outcome {
    run_with(command, "").await
}

async fn run_with(mut command: Command, input: &str) -> Outcome {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A program that does not read its input may have exited already, which makes the write fail.
    let _ = stdin.write_all(input.as_bytes()).await;
    drop(stdin);
    let output = timeout(PATIENCE, child.wait_with_output()).await;
    let output = output.unwrap_or_else(|_| panic!("{command:?} has not ended")).unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap();
    Outcome { code, stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Lock manager of a service called `shop`.
pub(crate) async fn service(nodes: &Nodes) -> LockManager {
    let manager = LockManager::builder().nodes(nodes.urls()).label("shop").node_timeout(Duration::from_secs(5));
    let manager = manager.build().unwrap();
    manager.ready().await.unwrap();
    manager
}

/// Acquires the lock, and waits until every node has stored it.
pub(crate) async fn held_everywhere(manager: &LockManager, nodes: &Nodes, key: &str) -> LockGuard {
    let guard = manager.acquire(key).await.unwrap();
    for node in nodes.iter() {
        eventually(PATIENCE, "every node has it", async || node.inspect().get(key).await.map(drop).ok_or("free")).await;
    }
    guard
}
