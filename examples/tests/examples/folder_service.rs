//! Tests of `folder_service`: with the locks, files are written in parallel and a rename loses no line. Without them,
//! lines are lost.

use crate::program::{self, Outcome, alone};
use redlock_tests::Nodes;

async fn folder_service(nodes: Option<&str>, arguments: &[&str]) -> Outcome {
    let mut command = program::command(env!("CARGO_BIN_EXE_folder_service"), nodes);
    command.args(arguments);
    program::run(command).await
}

/// Parses the largest number of concurrent writes in one process.
fn together(outcome: &Outcome) -> u64 {
    let number = outcome.stdout.lines().find_map(|line| line.split_once(" up to ")?.1.split(' ').next()?.parse().ok());
    number.unwrap_or_else(|| panic!("no number in {outcome:?}"))
}

#[tokio::test]
async fn rename_loses_no_line_and_files_are_written_concurrently() {
    let _alone = alone().await;
    for count in [1, 3] {
        let nodes = Nodes::start(count).await;
        let outcome = folder_service(Some(&nodes.environment_value()), &[]).await;
        assert!(outcome.succeeded, "{outcome:?}");
        assert!(together(&outcome) > 1, "{outcome:?}");
        assert!(nodes.contents().await.is_empty(), "{:?}", nodes.contents().await);
    }
}

#[tokio::test]
async fn rename_loses_lines_without_locks() {
    let _alone = alone().await;
    let nodes = Nodes::start(1).await;
    // A write overlaps a rename only by chance, so repeat.
    let lost = async || folder_service(Some(&nodes.environment_value()), &["--unlocked"]).await;
    let mut outcome = lost().await;
    for _ in 0..20 {
        if !outcome.succeeded {
            break;
        }
        outcome = lost().await;
    }
    assert!(!outcome.succeeded, "{outcome:?}");
    assert!(outcome.stderr.starts_with("folder_service: 240 lines were written, and "), "{outcome:?}");
    assert!(nodes.contents().await.is_empty(), "{:?}", nodes.contents().await);
}

#[tokio::test]
async fn startup_error_names_the_missing_setting() {
    let _alone = alone().await;
    let outcome = folder_service(None, &[]).await;
    assert!(!outcome.succeeded && outcome.stderr.contains("REDLOCK_NODES is not set"), "{outcome:?}");
    let outcome = folder_service(None, &["--unlock"]).await;
    assert_eq!(outcome.stderr, "folder_service: usage: folder_service [--unlocked]\n");
}
