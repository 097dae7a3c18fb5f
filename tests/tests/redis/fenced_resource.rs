//! Fencing tokens at a protected resource: the script for Redis and the predicate for SQL.

use redlock_runtime::FencedSet;
use redlock_tests::RedisServer;
use std::io::Write;
use std::process::{Command, Stdio};

#[tokio::test]
async fn fenced_set_rejects_smaller_tokens_of_any_length() {
    let server = RedisServer::start().await;
    let table = [
        ("65536", 1),
        ("65536", 1),
        ("65535", 0),
        ("9999", 0),
        ("131072", 1),
        ("99999", 0),
        // Beyond 2^53, where Lua cannot distinguish two neighbouring numbers.
        ("9007199254740993", 1),
        ("9007199254740992", 0),
        ("9007199254740994", 1),
        ("9223372036854775807", 1),
        ("9223372036854775806", 0),
        ("18446744073709551615", 1),
        ("18446744073709551614", 0),
    ];
    for (token, expected) in table {
        let written: i64 =
            server.inspect().command(&["EVAL", FencedSet::SCRIPT, "2", "state", "fence", token, token]).await;
        assert_eq!(written, expected, "{token}");
        let state = server.inspect().get("state").await;
        assert_eq!(state, server.inspect().get("fence").await);
        assert_eq!(state.as_deref() == Some(token), expected == 1);
    }
}

#[tokio::test]
async fn fenced_set_accepts_set_options_and_rejects_malformed_tokens() {
    let server = RedisServer::start().await;
    let with_expiry = ["EVAL", FencedSet::SCRIPT, "2", "state", "fence", "7", "paid", "PX", "60000"];
    assert_eq!(server.inspect().command::<i64>(&with_expiry).await, 1);
    assert!((1..=60_000).contains(&server.inspect().pttl("state").await));
    assert_eq!(server.inspect().pttl("fence").await, -1);
    for wrong in ["", "0", "-1", "08", "7.0", "seven"] {
        let call = ["EVAL", FencedSet::SCRIPT, "2", "state", "fence", wrong, "stolen"];
        let error = server.inspect().try_command::<i64>(&call).await.unwrap_err();
        assert!(error.to_string().contains("positive decimal number"), "{error}");
    }
    assert_eq!(server.inspect().get("state").await.as_deref(), Some("paid"));
}

#[test]
fn sql_predicate_rejects_a_stale_writer() {
    // The statement from the documentation of `FencingToken`, with literal parameters.
    let update = |token: i64, state: &str| {
        format!(
            "UPDATE orders SET state = '{state}', fencing_token = {token} WHERE id = 7 AND fencing_token <= {token};\n\
             SELECT changes();\n"
        )
    };
    let script = [
        "CREATE TABLE orders (id BIGINT, state TEXT, fencing_token BIGINT NOT NULL DEFAULT 0);\n".to_owned(),
        "INSERT INTO orders (id, state) VALUES (7, 'new');\n".to_owned(),
        update(16_384, "first"),
        update(i64::MAX, "latest"),
        update(16_384, "stale"),
        update(i64::MAX, "again"),
        "SELECT state, fencing_token FROM orders;\n".to_owned(),
    ];
    assert_eq!(sqlite(&script.concat()), "1\n1\n0\n1\nagain|9223372036854775807\n");
}

/// Runs `script` in the `sqlite3` shell, on a database in memory. Returns the output.
fn sqlite(script: &str) -> String {
    let start = Command::new("sqlite3").arg("-batch").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut sqlite = start.expect("sqlite3 is needed here: apt-get install sqlite3");
    sqlite.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    String::from_utf8(sqlite.wait_with_output().unwrap().stdout).unwrap()
}
