//! Runs every command of `docs/operations.md`.

use crate::program::{Outcome, held_everywhere, redlock, run, service};
use redlock_runtime::{LockRequest, Wait};
use redlock_tests::{Nodes, PATIENCE, eventually};
use std::path::Path;
use tokio::process::Command;
use tokio::time::timeout;

const PAGE: &str = include_str!("../../../docs/operations.md");

/// Returns the shell commands of the page in their order.
fn commands() -> Vec<&'static str> {
    let blocks = PAGE.split("\n```sh\n").skip(1).map(|rest| rest.split("\n```").next().unwrap());
    blocks.flat_map(str::lines).collect()
}

/// Runs `command` in a shell whose `PATH` begins with the directory of the tested `redlock`.
async fn shell(command: &str, urls: &str, port: &str, token: &str) -> Outcome {
    let ours = Path::new(env!("CARGO_BIN_EXE_redlock")).parent().unwrap();
    let path = format!("{}:{}", ours.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-u", "-c", command]).env("PATH", path).env("REDLOCK_NODES", urls).env_remove("REDLOCK_NAMESPACE");
    shell.env("HOST", "127.0.0.1").env("PORT", port).env("TOKEN", token);
    run(shell).await
}

#[tokio::test]
async fn every_command_of_the_operations_page_works() {
    let nodes = Nodes::start(3).await;
    let (urls, holder, waiter) = (nodes.environment_value(), service(&nodes).await, service(&nodes).await);
    // Create a fencing number, so that `redlock fence` finds one.
    holder.acquire(LockRequest::new("order:7").fencing()).await.unwrap().release().await.unwrap();
    let guard = held_everywhere(&holder, &nodes, "order:7").await;
    let token = guard.token().to_string();
    let waiting = tokio::spawn(async move { waiter.acquire(LockRequest::new("order:7").wait(Wait::Forever)).await });
    eventually(PATIENCE, "somebody waits", async || {
        let waiters = redlock(&urls, &["waiters", "order:7"]).await;
        if waiters.code == 0 { Ok(()) } else { Err(waiters) }
    })
    .await;
    // Simulates a body that stops when its lock is lost.
    tokio::spawn(async move {
        guard.lost().await;
        drop(guard);
    });
    let commands = commands();
    for command in &commands {
        let outcome = shell(command, &urls, &nodes[0].port().to_string(), &token).await;
        // The test servers do not persist data, so `check` prints a warning.
        let expected = if *command == "redlock check" { 0..=1 } else { 0..=0 };
        let is_refused = outcome.stdout.starts_with("ERR") || outcome.stdout.starts_with("NO");
        assert!(expected.contains(&outcome.code) && !is_refused, "{command}: {outcome:?}");
    }
    drop(timeout(PATIENCE, waiting).await.expect("the lock was broken").unwrap().unwrap());
    for name in ["check", "inspect", "waiters", "list", "break", "fence"] {
        assert!(commands.iter().any(|command| command.starts_with(&format!("redlock {name}"))), "{name}");
    }
    assert!(commands.len() >= 15, "{commands:?}");
}
