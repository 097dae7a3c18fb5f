//! Tests of `config_reload`: with the lock, readers run together and read consistent values. Without it, some reads are
//! inconsistent.

use crate::program::{self, Outcome, alone};
use redlock_tests::Nodes;

async fn config_reload(nodes: Option<&str>, arguments: &[&str]) -> Outcome {
    let mut command = program::command(env!("CARGO_BIN_EXE_config_reload"), nodes);
    command.args(arguments);
    program::run(command).await
}

/// Parses the number of served requests and the largest number of requests in progress in one process.
fn served(outcome: &Outcome) -> (u64, u64) {
    let numbers = outcome.stdout.lines().find_map(|line| {
        let (served, rest) = line.split_once(" requests were served, up to ")?;
        Some((served.parse().unwrap(), rest.split(' ').next()?.parse().unwrap()))
    });
    numbers.unwrap_or_else(|| panic!("no numbers in {outcome:?}"))
}

#[tokio::test]
async fn readers_share_the_lock_and_see_no_partial_configuration() {
    let _alone = alone().await;
    for count in [1, 3] {
        let nodes = Nodes::start(count).await;
        let outcome = config_reload(Some(&nodes.environment_value()), &[]).await;
        assert!(outcome.succeeded, "{outcome:?}");
        let (served, together) = served(&outcome);
        assert!(served >= 24 && together > 1, "{outcome:?}");
        assert!(nodes.contents().await.is_empty(), "{:?}", nodes.contents().await);
    }
}

#[tokio::test]
async fn readers_see_a_partial_configuration_without_locks() {
    let _alone = alone().await;
    let nodes = Nodes::start(1).await;
    let outcome = config_reload(Some(&nodes.environment_value()), &["--unlocked"]).await;
    assert!(!outcome.succeeded, "{outcome:?}");
    assert!(outcome.stderr.ends_with("requests saw half a configuration\n"), "{outcome:?}");
    assert!(nodes.contents().await.is_empty(), "{:?}", nodes.contents().await);
}

#[tokio::test]
async fn startup_error_names_the_missing_setting() {
    let _alone = alone().await;
    let outcome = config_reload(None, &[]).await;
    assert!(!outcome.succeeded && outcome.stderr.contains("REDLOCK_NODES is not set"), "{outcome:?}");
    let outcome = config_reload(None, &["--unlock"]).await;
    assert_eq!(outcome.stderr, "config_reload: usage: config_reload [--unlocked]\n");
}
