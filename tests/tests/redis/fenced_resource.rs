//! Fencing tokens at a protected resource: the script for Redis and the predicate for SQL.

use redlock_runtime::FencedSet;
use redlock_tests::RedisServer;
use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

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

/// Page "Fencing in SQL" of the guide.
const PAGE: &str = include_str!("../../../redlock-runtime/docs/guide/recipes/fencing_postgres.md");

/// Returns the statements of the transaction on the page, between `BEGIN` and `COMMIT`.
fn statements_of_the_page() -> Vec<&'static str> {
    let (_, rest) = PAGE.split_once("\nBEGIN;\n").unwrap();
    let (transaction, _) = rest.split_once("\nCOMMIT;\n").unwrap();
    transaction.lines().filter(|line| !line.starts_with("--")).collect()
}

fn is_read(statement: &str) -> bool {
    statement.starts_with("SELECT")
}

#[test]
fn fence_before_the_read_loses_no_update_of_a_late_holder() {
    let database = Database::create("fence-first");
    // The late holder comes after the read of holder 8. Its fence is rejected, so its update is not lost in silence.
    assert_eq!(database.late_holder_between_read_and_write(&statements_of_the_page()), Outcome::LateHolderRejected);
    assert_eq!(database.order(), (8, 45));
}

#[test]
fn read_before_the_fence_loses_an_update_of_a_late_holder() {
    let database = Database::create("read-first");
    let mut statements = statements_of_the_page();
    statements.sort_by_key(|statement| !is_read(statement));
    // Both holders succeed, but 40 + 1 + 5 is 46.
    assert_eq!(database.late_holder_between_read_and_write(&statements), Outcome::BothAccepted);
    assert_eq!(database.order(), (8, 45));
}

#[test]
fn transaction_of_the_page_keeps_the_update_of_a_later_holder() {
    let database = Database::create("transaction");
    let [mut first, mut later] = [database.connect(8, 5), database.connect(9, 1)];
    let statements = statements_of_the_page();
    // SQLite needs `IMMEDIATE`, as the page says.
    first.query("BEGIN IMMEDIATE;");
    let (write, before) = statements.split_last().unwrap();
    assert!(before.iter().all(|statement| first.run(statement)));
    // The other transaction waits for the end of this one.
    later.send("BEGIN IMMEDIATE;");
    assert!(first.run(write));
    first.query("COMMIT;");
    assert_eq!(later.answer(), [""; 0]);
    assert!(statements.iter().all(|statement| later.run(statement)));
    later.query("COMMIT;");
    assert_eq!(database.order(), (9, 46));
}

/// Result of two holders that both change one row.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    BothAccepted,
    LateHolderRejected,
}

/// Database in `SQLite` with the order 7 of the page, with the fencing number 7 and the amount 40.
struct Database(PathBuf);

impl Database {
    fn create(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.sqlite", std::process::id()));
        let database = Self(path);
        database.connect(0, 0).query(
            "CREATE TABLE orders (id BIGINT, amount BIGINT, fencing_token BIGINT NOT NULL DEFAULT 0);\n\
             INSERT INTO orders VALUES (7, 40, 7);",
        );
        database
    }

    /// Connects the holder of the lock with the fencing number `token`, which adds `extra` to the amount.
    fn connect(&self, token: i64, extra: i64) -> Holder {
        let start =
            Command::new("sqlite3").arg("-batch").arg(&self.0).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut shell = start.expect(MISSING);
        let output = BufReader::new(shell.stdout.take().unwrap()).lines();
        let mut holder = Holder { shell, output, token, extra, amount: 0 };
        // Waits for the transactions of others, for up to a minute.
        holder.query(".timeout 60000");
        holder
    }

    /// Holder 8 runs the `statements` up to its read. Then the late holder 7 runs all of them, and then holder 8 the
    /// rest. Each statement sees the last committed row, as in `PostgreSQL` with `READ COMMITTED`.
    fn late_holder_between_read_and_write(&self, statements: &[&str]) -> Outcome {
        let [mut holder, mut late] = [self.connect(8, 5), self.connect(7, 1)];
        let read = statements.iter().position(|statement| is_read(statement)).unwrap();
        let (before, after) = statements.split_at(read + 1);
        assert!(before.iter().all(|statement| holder.run(statement)));
        let is_accepted = statements.iter().all(|statement| late.run(statement));
        assert!(after.iter().all(|statement| holder.run(statement)));
        if is_accepted { Outcome::BothAccepted } else { Outcome::LateHolderRejected }
    }

    /// Returns the fencing number and the amount of the order.
    fn order(&self) -> (i64, i64) {
        let rows = self.connect(0, 0).query("SELECT fencing_token, amount FROM orders WHERE id = 7;");
        let (token, amount) = rows[0].split_once('|').unwrap();
        (token.parse().unwrap(), amount.parse().unwrap())
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        fs::remove_file(&self.0).unwrap();
    }
}

/// Connection of a holder: a `sqlite3` shell.
struct Holder {
    shell: Child,
    output: Lines<BufReader<ChildStdout>>,
    token: i64,
    extra: i64,
    /// New amount, computed from the last read.
    amount: i64,
}

impl Holder {
    /// Runs a statement of the page. Returns `false` if it changes no row: then the holder must stop.
    fn run(&mut self, statement: &str) -> bool {
        let (token, amount) = (self.token.to_string(), self.amount.to_string());
        let statement = statement.replace("$1", &token).replace("$2", "7").replace("$3", &amount);
        if is_read(&statement) {
            self.amount = self.query(&statement)[0].parse::<i64>().unwrap() + self.extra;
            return true;
        }
        self.query(&format!("{statement}\nSELECT changes();")) == ["1"]
    }

    /// Runs commands and returns the lines of the answer.
    fn query(&mut self, sql: &str) -> Vec<String> {
        self.send(sql);
        self.answer()
    }

    fn send(&mut self, sql: &str) {
        writeln!(self.shell.stdin.as_mut().unwrap(), "{sql}\n.print end").unwrap();
    }

    fn answer(&mut self) -> Vec<String> {
        self.output.by_ref().map(Result::unwrap).take_while(|line| line != "end").collect()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // The shell ends with its input.
        drop(self.shell.stdin.take());
        self.shell.wait().unwrap();
    }
}

const MISSING: &str = "sqlite3 is needed here: apt-get install sqlite3";

/// Runs `script` in the `sqlite3` shell, on a database in memory. Returns the output.
fn sqlite(script: &str) -> String {
    let start = Command::new("sqlite3").arg("-batch").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut sqlite = start.expect(MISSING);
    sqlite.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    String::from_utf8(sqlite.wait_with_output().unwrap().stdout).unwrap()
}
