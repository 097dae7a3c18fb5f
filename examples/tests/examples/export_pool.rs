//! Tests of `export_pool`: with permits, each tenant has several exports at a time but never more than five. Without
//! them, a tenant has more.

use crate::program::{self, Outcome, alone};
use redlock_tests::Nodes;

async fn export_pool(nodes: Option<&str>, arguments: &[&str]) -> Outcome {
    let mut command = program::command(env!("CARGO_BIN_EXE_export_pool"), nodes);
    command.args(arguments);
    program::run(command).await
}

/// Parses the maximum number of concurrent exports of each tenant.
fn together(outcome: &Outcome) -> Vec<u32> {
    let (_, list) = outcome.stdout.split_once("have run together are [").unwrap();
    let (list, _) = list.split_once(']').unwrap();
    list.split(", ").map(|most| most.parse().unwrap()).collect()
}

#[tokio::test]
async fn permits_limit_the_concurrent_exports_of_a_tenant() {
    let _alone = alone().await;
    for count in [1, 3] {
        let nodes = Nodes::start(count).await;
        let outcome = export_pool(Some(&nodes.environment_value()), &[]).await;
        assert!(outcome.succeeded, "{outcome:?}");
        assert!(together(&outcome).iter().all(|most| (2..=5).contains(most)), "{outcome:?}");
        assert!(nodes.contents().await.is_empty(), "{:?}", nodes.contents().await);
    }
}

#[tokio::test]
async fn concurrent_exports_exceed_the_limit_without_permits() {
    let _alone = alone().await;
    let nodes = Nodes::start(1).await;
    let outcome = export_pool(Some(&nodes.environment_value()), &["--unlimited"]).await;
    assert!(!outcome.succeeded, "{outcome:?}");
    assert!(outcome.stderr.ends_with(" exports of a tenant have run together\n"), "{outcome:?}");
    assert!(together(&outcome).iter().any(|most| *most > 5), "{outcome:?}");
    assert!(nodes.contents().await.is_empty(), "{:?}", nodes.contents().await);
}

#[tokio::test]
async fn startup_error_names_the_missing_setting() {
    let _alone = alone().await;
    let outcome = export_pool(None, &[]).await;
    assert!(!outcome.succeeded && outcome.stderr.contains("REDLOCK_NODES is not set"), "{outcome:?}");
    let outcome = export_pool(None, &["--unlimit"]).await;
    assert_eq!(outcome.stderr, "export_pool: usage: export_pool [--unlimited]\n");
}
