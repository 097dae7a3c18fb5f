//! Runs the service and its client as separate processes that share one Redis server.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "helpers of tests are tests too")]

use redlock_tests::{PATIENCE, RedisServer, eventually};
use rustix::process::{Pid, Signal, kill_process};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

const SOON: Duration = Duration::from_millis(100);
/// Longer than any timeout here.
const NEVER: Duration = Duration::from_secs(3600);

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_grpc_service"));
    command.args(arguments).env_remove("REDLOCK_NODES").kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// One process of the service on a free port. Dropping it kills the process.
struct Service {
    process: Child,
    stdout: Lines<BufReader<ChildStdout>>,
    url: String,
}

impl Service {
    async fn start(server: &RedisServer, payment: Duration) -> Self {
        let mut command = program(&["serve", "0"]);
        command.env("REDLOCK_NODES", server.url()).env("PAYMENT_MS", payment.as_millis().to_string());
        let mut process = command.stderr(Stdio::inherit()).spawn().unwrap();
        let mut stdout = BufReader::new(process.stdout.take().unwrap()).lines();
        let first = timeout(PATIENCE, stdout.next_line()).await.expect("it starts").unwrap();
        let url = first.as_deref().and_then(|line| line.strip_prefix("grpc_service: listening on "));
        Self { url: url.unwrap_or_else(|| panic!("{first:?}")).to_owned(), process, stdout }
    }

    fn client(&self, verb: &str, seat: &str, name: &str) -> Command {
        program(&[verb, &self.url, "hamlet", seat, name])
    }

    /// Runs the client, and returns its output or its error message.
    async fn call(&self, verb: &str, seat: &str, name: &str) -> Result<String, String> {
        said(self.client(verb, seat, name)).await
    }
}

/// Runs a program that prints one line: to standard output on success, to standard error otherwise.
async fn said(mut command: Command) -> Result<String, String> {
    let output = timeout(PATIENCE, command.output()).await.expect("it ends").unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap().trim_end().to_owned();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

async fn wait_until_locked(server: &RedisServer, key: &str) {
    eventually(PATIENCE, "the seat is locked", async || server.inspect().get(key).await.ok_or(())).await;
}

async fn assert_no_lock(server: &RedisServer) {
    eventually(PATIENCE, "no lock is left", async || {
        let left = server.inspect().mentions("locks:").await;
        if left.is_empty() { Ok(()) } else { Err(left) }
    })
    .await;
}

#[tokio::test]
async fn two_services_sell_each_seat_only_once() {
    let server = RedisServer::start().await;
    let (first, second) = (Service::start(&server, SOON).await, Service::start(&server, SOON).await);
    let (ann, ben) = tokio::join!(first.call("sell", "7", "Ann"), second.call("sell", "7", "Ben"));
    assert!(ann.is_ok() != ben.is_ok(), "{ann:?} {ben:?}");
    let (winner, late) = if ann.is_ok() { ("Ann", &ben) } else { ("Ben", &ann) };
    assert_eq!(ann.as_ref().or(ben.as_ref()).unwrap(), &format!("hamlet, seat 7: sold to {winner}"));
    let late = late.as_ref().unwrap_err();
    let answers =
        ["Aborted: another request is working on this: try again later", "FailedPrecondition: the seat is sold"];
    assert!(answers.iter().any(|answer| late.starts_with(&format!("grpc_service: {answer}"))), "{late}");
    assert_eq!(second.call("sell", "8", "Ben").await.unwrap(), "hamlet, seat 8: sold to Ben");
    assert_eq!(second.call("take-back", "7", winner).await.unwrap(), "hamlet, seat 7: free");
    assert_no_lock(&server).await;
}

/// The client decodes the retry delay with `tonic-types`, which is independent of this project.
#[tokio::test]
async fn contended_call_returns_a_retry_delay() {
    let server = RedisServer::start().await;
    let service = Service::start(&server, SOON).await;
    for verb in ["sell", "take-back"] {
        let key = "locks:seat:hamlet:7";
        server.inspect().command::<()>(&["SET", key, "somebody else", "PX", "60000"]).await;
        let answer = service.call(verb, "7", "Ann").await.unwrap_err();
        assert_eq!(answer, "grpc_service: Aborted: another request is working on this: try again later (in about 5s)");
        server.inspect().command::<()>(&["DEL", key]).await;
    }
}

#[tokio::test]
async fn unreachable_redis_returns_unavailable() {
    let server = RedisServer::start().await;
    let service = Service::start(&server, SOON).await;
    server.kill();
    let answer = service.call("sell", "7", "Ann").await.unwrap_err();
    assert_eq!(answer, "grpc_service: Unavailable: this cannot be done at the moment: try again later (in about 2s)");
}

#[tokio::test]
async fn client_disconnect_releases_the_seat_lock() {
    let server = RedisServer::start().await;
    let service = Service::start(&server, NEVER).await;
    let client = service.client("sell", "7", "Ann").spawn().unwrap();
    wait_until_locked(&server, "locks:seat:hamlet:7").await;
    drop(client);
    assert_no_lock(&server).await;
}

#[tokio::test]
async fn stopping_service_finishes_running_calls_and_releases_locks() {
    let server = RedisServer::start().await;
    let mut service = Service::start(&server, Duration::from_millis(500)).await;
    let client = service.client("sell", "7", "Ann");
    let answer = tokio::spawn(said(client));
    wait_until_locked(&server, "locks:seat:hamlet:7").await;
    let id = service.process.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)).expect("it runs");
    kill_process(id, Signal::TERM).unwrap();
    assert_eq!(answer.await.unwrap().unwrap(), "hamlet, seat 7: sold to Ann");
    assert!(timeout(PATIENCE, service.process.wait()).await.expect("it ends").unwrap().success());
    assert_eq!(service.stdout.next_line().await.unwrap().as_deref(), Some("grpc_service: stopped"));
    assert!(server.inspect().mentions("locks:").await.is_empty(), "shutdown waits for the release");
}

#[tokio::test]
async fn startup_error_names_the_missing_setting() {
    let usage = said(program(&[])).await.unwrap_err();
    assert!(usage.starts_with("grpc_service: usage: grpc_service serve PORT"), "{usage}");
    let missing = said(program(&["serve", "0"])).await.unwrap_err();
    assert!(missing.starts_with("grpc_service: REDLOCK_NODES is not set"), "{missing}");
}
