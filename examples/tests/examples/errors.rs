//! Compares the error messages on the page "Errors" of the guide with the messages that the errors print.

use crate::program::alone;
use redlock_runtime::{LockError, LockManager, LockRequest, distributed_lock};
use redlock_tests::Nodes;
use std::time::Duration;

const PAGE: &str = include_str!("../../../redlock-runtime/docs/guide/reference/errors.md");
const KEY: &str = "order:7";

#[track_caller]
fn assert_documented(error: &LockError, text: &str) {
    let name = format!("{error:#?}");
    let name: String = name.chars().take_while(char::is_ascii_alphanumeric).collect();
    let row = PAGE.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
    let row = row.unwrap_or_else(|| panic!("no row for {name}"));
    assert!(row.contains(text), "{name} prints:\n{text}\nThe page has:\n{row}");
}

/// Deadlocks with itself: acquires the key that the function already holds.
#[distributed_lock(key = "order:7", manager = locks)]
async fn capture(locks: &LockManager) -> Result<(), LockError> {
    locks.acquire(KEY).await.map(drop)
}

#[distributed_lock(key = "{id}", manager = locks)]
async fn of_value(locks: &LockManager, id: &str) -> Result<(), LockError> {
    Ok(())
}

/// Message of a `WouldDeadlock` error, with its source lines replaced by those on the page.
fn with_documented_lines(error: &LockError) -> String {
    let LockError::WouldDeadlock { held, .. } = error else { panic!("{error}") };
    let (taken, asked) = (held.acquire_line().to_string(), held.request_line().to_string());
    error.to_string().replace(&taken, "src/orders.rs:7").replace(&asked, "src/orders.rs:12")
}

#[tokio::test(start_paused = true)]
async fn errors_of_acquisition_and_loss_match_the_guide() {
    let locks = LockManager::in_memory();
    let request = || LockRequest::new(KEY).ttl(Duration::from_secs(30));
    let guard = locks.acquire(request()).await.unwrap();
    let refused = [
        locks.try_acquire(KEY).await,
        locks.acquire(request().wait(Duration::from_secs(2))).await,
        locks.acquire(request().once_per(Duration::from_millis(10))).await,
    ];
    drop(guard);
    let window = || LockRequest::new("report").once_per(Duration::from_secs(900));
    drop(locks.acquire(window()).await.unwrap());
    let taken = locks.acquire(window()).await.unwrap_err();
    // The end of the window depends on the time of day, so that part is cut off.
    assert_documented(&taken, taken.to_string().split("; the next window starts in").next().unwrap());
    let lost = locks
        .with_lock(request().without_renewal(), async |_| std::future::pending::<Result<(), LockError>>().await)
        .await;
    let invalid = of_value(&locks, "").await;
    let would_deadlock = capture(&locks).await.unwrap_err();
    assert_documented(&would_deadlock, &with_documented_lines(&would_deadlock));
    let not_installed = LockManager::current().map(drop);
    assert!(locks.shutdown().await);
    let closed = locks.acquire(KEY).await.map(drop);

    let errors = refused.into_iter().map(|refused| refused.map(drop)).chain([lost, invalid, not_installed, closed]);
    for error in errors.map(Result::unwrap_err) {
        // The message continues with the source line of the holder, which the page does not show.
        let text = error.to_string();
        assert_documented(&error, text.split(": the call at ").next().unwrap());
    }
}

#[tokio::test]
async fn missing_quorum_error_matches_the_guide() {
    let _alone = alone().await;
    let nodes = Nodes::start(3).await;
    nodes[1].kill();
    let locks = LockManager::builder().nodes(nodes.urls()).build().unwrap();
    locks.ready().await.unwrap(); // two of three nodes are enough
    nodes[2].freeze();
    let error = locks.try_acquire(KEY).await.unwrap_err();
    let mut text = error.to_string();
    for (node, documented) in nodes.iter().zip(["10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379"]) {
        text = text.replace(&format!("127.0.0.1:{}", node.port()), documented);
    }
    // Error number of macOS, and that of Linux.
    assert_documented(&error, &text.replace("os error 61", "os error 111"));
}

#[tokio::test]
async fn wrong_password_error_matches_the_guide() {
    let _alone = alone().await;
    let nodes = Nodes::start_with(1, |_, builder| builder.password("right")).await;
    let address = format!("127.0.0.1:{}", nodes[0].port());
    let locks = LockManager::builder().node(format!("redis://:wrong@{address}")).build().unwrap();
    let error = locks.try_acquire(KEY).await.unwrap_err();
    assert_documented(&error, &error.to_string().replace(&address, "10.0.0.1:6379"));
}
