//! The real `redis-cli`, for interoperation tests: a client that shares no code with ours.

use std::process::Stdio;

use tokio::process::Command;

use crate::RedisServer;
use crate::external::REDIS_CLI;

/// Runs `redis-cli` against `server` and returns its output, without the final newline.
///
/// Replies are in redis-cli's raw form: `OK`, `1`, an empty text for nil. An error reply is returned as its text. The
/// environment variable `REDIS_CLI` names another binary.
///
/// # Panics
/// If `redis-cli` is missing or cannot connect.
///
/// # Examples
/// ```no_run
/// # async fn example(node: redlock_tests::RedisServer) {
/// let reply = redlock_tests::redis_cli(&node, &["SET", "order:1", "me", "NX", "PX", "30000"]).await;
/// assert_eq!(reply, "OK");
/// # }
/// ```
pub async fn redis_cli(server: &RedisServer, arguments: &[&str]) -> String {
    let mut command = Command::new(REDIS_CLI.path());
    command.args(["-h", "127.0.0.1", "-p", &server.port().to_string()]).args(arguments);
    if let Some(password) = server.password() {
        command.env("REDISCLI_AUTH", password);
    }
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = command.output().await.unwrap_or_else(|error| REDIS_CLI.cannot_run(&error));
    let text = String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "redis-cli {arguments:?}: {text} {complaint}");
    text
}
