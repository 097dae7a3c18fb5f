//! Keys from a URL and texts from a server cannot forge a line of the log.

use crate::subscriber::{event, keep_all};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{Request, StatusCode};
use axum::{Router, routing::get};
use redlock_runtime::{LockError, LockManager, LockRequest, distributed_lock};
use redlock_tests::FakeServer;
use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tower::ServiceExt;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Writes each event and each span of the library as a line, as programs do with their logs.
#[derive(Clone, Default)]
struct LineWriter(Arc<Mutex<String>>);

impl LineWriter {
    fn write(&self, metadata: &Metadata<'_>, record: impl FnOnce(&mut dyn Visit)) {
        let mut line = format!("{} {}:", metadata.level(), metadata.name());
        record(&mut Fields(&mut line));
        let mut log = self.0.lock().unwrap();
        *log += &line;
        *log += "\n";
    }

    fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }
}

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Subscriber for LineWriter {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "redlock"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.write(span.metadata(), |fields| span.record(fields));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.write(event.metadata(), |fields| event.record(fields));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Returns `true` for a character that a line must not contain: it ends the line, controls the terminal or reorders the text.
fn is_unsafe(character: char) -> bool {
    character.is_control() || character == '\u{202e}'
}

#[distributed_lock(key = "note:{name}", manager = locks, wait = none)]
async fn show(State(locks): State<LockManager>, Path(name): Path<String>) -> Result<String, LockError> {
    Ok(name)
}

#[distributed_lock(path = "/{tenant}/{folder:/}", manager = locks, wait = none)]
async fn store(
    State(locks): State<LockManager>,
    Path((tenant, folder)): Path<(String, String)>,
) -> Result<String, LockError> {
    Ok([tenant, folder].concat())
}

#[tokio::test]
async fn hostile_key_cannot_forge_a_log_line() {
    let (log, manager) = (LineWriter::default(), LockManager::in_memory());
    let _subscribed = tracing::subscriber::set_default(log.clone());
    let routes = Router::new().route("/notes/{name}", get(show)).route("/files/{tenant}/{*folder}", get(store));
    let app = routes.with_state(manager.clone());
    let status = async |uri: &str| {
        let request = Request::get(uri).body(Body::empty()).unwrap();
        app.clone().oneshot(request).await.unwrap().status()
    };
    let (name, hostile) = ("7\n\r\u{1b}[2J\u{202e}ERROR forged", "7%0A%0D%1B%5B2J%E2%80%AEERROR%20forged");

    assert_eq!(status(&format!("/notes/{hostile}")).await, StatusCode::OK);
    let held = manager.acquire(format!("note:{name}")).await.unwrap();
    assert_eq!(status(&format!("/notes/{hostile}")).await, StatusCode::CONFLICT);
    let waiting = LockRequest::new(format!("note:{name}")).wait(Duration::from_millis(200));
    manager.acquire(waiting).await.unwrap_err();
    held.release().await.unwrap();
    // The error of this request quotes the path.
    assert_eq!(status(&format!("/files/{hostile}/a/../b")).await, StatusCode::BAD_REQUEST);
    // Ordinary keys are not changed.
    assert_eq!(status("/notes/f%C3%BCr%20Zo%C3%AB").await, StatusCode::OK);

    let log = log.text();
    let is_line = |line: &str| {
        let (start, rest) = line.split_once(' ').unwrap_or_default();
        ["DEBUG", "INFO", "WARN", "ERROR"].contains(&start) && rest.contains(": ") && !line.contains(is_unsafe)
    };
    let forged: Vec<_> = log.lines().filter(|line| !is_line(line)).collect();
    assert!(forged.is_empty(), "{forged:#?}");
    for event in ["acquired", "skipped", "timed_out", "redlock.hold", "request_failed"] {
        let line = format!(" {event}: ");
        // A message quotes a key as Rust does.
        let escaped = [r"note:7\u000a\u000d\u001b[2J\u202eERROR forged", r"/7\n\r\u{1b}[2J\u{202e}ERROR forged/a/.."];
        let is_told = |text: &str| text.contains(&line) && escaped.iter().any(|key| text.contains(key));
        assert!(log.lines().any(is_told), "{event} in {log}");
    }
    assert!(log.contains("key=note:für Zoë "), "{log}");
}

#[tokio::test]
async fn hostile_server_error_cannot_forge_a_log_line() {
    keep_all();
    let server = FakeServer::start(|_| "-ERR hostile\nERROR forged \u{1b}[2J\u{202e}\r\n".to_owned()).await;
    let manager = LockManager::builder().node(server.url()).build().unwrap();
    let told = event("node_down", "forged").await;
    let escaped = r"ERR hostile\u000aERROR forged \u001b[2J\u202e";
    assert!(told.field("error").contains(escaped), "{told:?}");
    let errors = [manager.ready().await.unwrap_err(), manager.acquire("hostile:7").await.unwrap_err()];
    for text in errors.iter().map(ToString::to_string).chain([manager.check().await.to_string()]) {
        assert!(text.contains(escaped) && !text.contains(is_unsafe), "{text:?}");
    }
    let no_quorum = event("no_quorum", "hostile:7").await;
    assert!(no_quorum.field("causes").contains(escaped), "{no_quorum:?}");
}

#[tokio::test]
async fn error_of_a_long_key_or_path_is_truncated() {
    let (log, manager) = (LineWriter::default(), LockManager::in_memory());
    let _subscribed = tracing::subscriber::set_default(log.clone());
    let endless = "a//../".repeat(200_000);
    let requests = [
        LockRequest::new(endless.clone()),
        LockRequest::path(endless.clone()),
        LockRequest::path(format!("/{endless}")),
        LockRequest::all([endless.clone(), format!("{endless}b")]),
        // Short enough for a lock, and longer than an error shows.
        LockRequest::path(format!("/{}/../b", "a".repeat(1000))),
        LockRequest::new(format!("{{{}}}:q", "a".repeat(1000))),
    ];
    for request in requests {
        let error = manager.acquire(request).await.unwrap_err();
        assert!(matches!(error, LockError::InvalidKey { .. }) && error.to_string().len() < 600, "{error}");
    }
    assert!(log.text().len() < 2000, "{}", log.text());
}

#[tokio::test]
async fn error_of_a_long_server_reply_is_truncated() {
    keep_all();
    let long = "x".repeat(20_000);
    // An error, and a text that does not answer any command.
    for answer in [format!("-ERR endless {long}\r\n"), format!("+boundless {long}\r\n")] {
        let server = FakeServer::start(move |_| answer.clone()).await;
        let manager = LockManager::builder().node(server.url()).build().unwrap();
        let error = manager.acquire("order:endless").await.unwrap_err().to_string();
        let report = manager.check().await;
        for text in [&error, &report.to_string(), &report.warnings().join("\n")] {
            assert!(text.len() < 2000, "{} bytes: {}", text.len(), &text[..500]);
        }
        assert!(error.contains(" more characters)"), "{error}");
    }
    let told = event("node_down", "endless").await;
    let error = told.field("error");
    // The step that failed and a remedy follow.
    assert!(error.contains("x.. (19712 more characters), so ") && error.len() < 600, "{told:?}");
}
