//! Error messages: they name the remedy, and contain no secrets.

use crate::program::{held_everywhere, redlock, service};
use redlock_tests::{FakeServer, Nodes, RedisServer};

#[tokio::test]
async fn commands_without_a_quorum_exit_with_code_two() {
    let nodes = Nodes::start(3).await;
    let (urls, holder) = (nodes.environment_value(), service(&nodes).await);
    let guard = held_everywhere(&holder, &nodes, "order:7").await;
    nodes[0].kill();
    let inspected = redlock(&urls, &["inspect", "order:7"]).await;
    assert!(inspected.code == 0 && inspected.stdout.contains("not connected: "), "{inspected:?}");
    nodes[1].kill();
    let token = guard.token().as_str();
    let commands: [&[&str]; 6] = [
        &["check"],
        &["inspect", "order:7"],
        &["waiters", "order:7"],
        &["list"],
        &["fence", "order:7"],
        &["break", "order:7", "--token", token],
    ];
    for command in commands {
        let outcome = redlock(&urls, command).await;
        let said = [&*outcome.stdout, &outcome.stderr].concat();
        assert!(outcome.code == 2 && said.contains("not connected"), "{command:?}: {outcome:?}");
    }
}

#[tokio::test]
async fn no_output_shows_a_password() {
    let guarded = RedisServer::builder().password("hunter2").start().await;
    let port = guarded.port();
    let right = format!("redis://:hunter2@127.0.0.1:{port}");
    let wrong = format!("redis://shop:hunter3@127.0.0.1:{port}");
    let gone = "redis://:hunter4@127.0.0.1:1".to_owned();
    let mistyped = format!("http://:hunter5@127.0.0.1:{port}");
    for url in [right, wrong, gone, mistyped] {
        for arguments in [&["check"] as &[&str], &["inspect", "order:7"], &["list", "--json"]] {
            let outcome = redlock(&url, arguments).await;
            let said = [&*outcome.stdout, &outcome.stderr].concat();
            assert!(!said.contains("hunter") && !said.contains("panicked"), "{arguments:?}: {outcome:?}");
            let outcome = redlock("", &[&["--nodes", &url], arguments].concat()).await;
            assert!(![&*outcome.stdout, &outcome.stderr].concat().contains("hunter"), "{arguments:?}: {outcome:?}");
        }
    }
}

#[tokio::test]
async fn server_errors_are_escaped_and_truncated() {
    let text = "hostile\nforged\x1b[2J\u{202e}".to_owned() + &"x".repeat(20_000);
    let server = FakeServer::start(move |_| format!("-ERR {text}\r\n")).await;
    for arguments in [&["check"] as &[&str], &["inspect", "order:7"], &["list"], &["waiters", "order:7"]] {
        let outcome = redlock(&server.url(), arguments).await;
        let said = [&*outcome.stdout, &outcome.stderr].concat();
        assert!(
            outcome.code == 2 && said.contains(r"hostile\u000aforged\u001b[2J\u202e"),
            "{arguments:?}: {outcome:?}"
        );
        assert!(!said.contains(['\u{1b}', '\u{202e}']), "{arguments:?}: {outcome:?}");
        assert!(
            said.len() < 4000 && !said.lines().any(|line| line.starts_with("forged")),
            "{arguments:?}: {outcome:?}"
        );
    }
}

#[tokio::test]
async fn wrong_command_line_is_explained() {
    let table: [(&[&str], &str); 5] = [
        (&["inspect", "order:7"], "REDLOCK_NODES"),
        (&["inspect"], "Usage"),
        (&["insepct", "order:7"], "inspect"),
        (&["--nodes", "localhost:6379", "check"], "is not a Redis URL"),
        (&["--nodes", "redis://127.0.0.1:1", "watch"], "list --json"),
    ];
    for (arguments, expected) in table {
        let outcome = redlock("", arguments).await;
        assert_eq!((outcome.code, &*outcome.stdout), (2, ""), "{arguments:?}: {outcome:?}");
        assert!(outcome.stderr.contains(expected), "{arguments:?}: {outcome:?}");
    }
}
