//! Tests of `bank_transfer`: the total is preserved with the locks, and changes without them.

use crate::program::{self, Outcome, alone};
use redlock_tests::Nodes;

async fn bank_transfer(nodes: Option<&str>, arguments: &[&str]) -> Outcome {
    let mut command = program::command(env!("CARGO_BIN_EXE_bank_transfer"), nodes);
    command.args(arguments);
    program::run(command).await
}

#[tokio::test]
async fn total_is_constant_with_locks() {
    let _alone = alone().await;
    for count in [1, 3] {
        let nodes = Nodes::start(count).await;
        let outcome = bank_transfer(Some(&nodes.environment_value()), &[]).await;
        assert!(outcome.succeeded, "{outcome:?}");
        assert!(outcome.stdout.contains(", 5000 together, after "), "{outcome:?}");
        assert!(nodes.contents().await.is_empty(), "{:?}", nodes.contents().await);
    }
}

#[tokio::test]
async fn total_changes_without_locks() {
    let _alone = alone().await;
    let nodes = Nodes::start(1).await;
    let outcome = bank_transfer(Some(&nodes.environment_value()), &["--unlocked"]).await;
    assert!(!outcome.succeeded, "{outcome:?}");
    assert!(outcome.stderr.starts_with("bank_transfer: there were 5000, and now there are "), "{outcome:?}");
    assert!(nodes.contents().await.is_empty(), "{:?}", nodes.contents().await);
}

#[tokio::test]
async fn startup_error_names_the_missing_setting() {
    let _alone = alone().await;
    let outcome = bank_transfer(None, &[]).await;
    assert!(!outcome.succeeded && outcome.stderr.contains("REDLOCK_NODES is not set"), "{outcome:?}");
    let outcome = bank_transfer(None, &["--unlock"]).await;
    assert_eq!(outcome.stderr, "bank_transfer: usage: bank_transfer [--unlocked]\n");
}
