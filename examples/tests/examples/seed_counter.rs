//! Tests of `seed_counter`: the count is exact with the lock and wrong without it.

use crate::program::{self, Outcome, alone};
use redlock_tests::Nodes;

async fn seed_counter(nodes: Option<&str>, arguments: &[&str]) -> Outcome {
    let mut command = program::command(env!("CARGO_BIN_EXE_seed_counter"), nodes);
    command.args(arguments);
    program::run(command).await
}

/// Parses the final number.
fn count(outcome: &Outcome) -> u64 {
    let number = outcome.stdout.lines().find_map(|line| line.strip_prefix("The number is ")?.split(',').next());
    number.unwrap_or_else(|| panic!("no number in {outcome:?}")).parse().unwrap()
}

#[tokio::test]
async fn count_is_exact_with_the_lock() {
    let _alone = alone().await;
    for count_of_nodes in [1, 3] {
        let nodes = Nodes::start(count_of_nodes).await;
        let outcome = seed_counter(Some(&nodes.environment_value()), &[]).await;
        assert!(outcome.succeeded, "{outcome:?}");
        assert_eq!(count(&outcome), 500, "{outcome:?}");
        assert!(nodes.contents().await.is_empty(), "{:?}", nodes.contents().await);
    }
}

#[tokio::test]
async fn count_is_wrong_without_the_lock() {
    let _alone = alone().await;
    let nodes = Nodes::start(1).await;
    let outcome = seed_counter(Some(&nodes.environment_value()), &["--unlocked"]).await;
    assert!(!outcome.succeeded, "{outcome:?}");
    let count = count(&outcome);
    assert!(count < 500, "{outcome:?}");
    assert_eq!(outcome.stderr, format!("seed_counter: {} of 500 additions are lost\n", 500 - count));
    assert!(nodes.contents().await.is_empty(), "{:?}", nodes.contents().await);
}

#[tokio::test]
async fn startup_error_names_the_missing_setting() {
    let _alone = alone().await;
    let outcome = seed_counter(None, &[]).await;
    assert!(!outcome.succeeded && outcome.stderr.contains("REDLOCK_NODES is not set"), "{outcome:?}");
    let outcome = seed_counter(None, &["--unlock"]).await;
    assert_eq!(outcome.stderr, "seed_counter: usage: seed_counter [--unlocked]\n");
}
