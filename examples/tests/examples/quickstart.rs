//! Tests of `quickstart`, in memory and on Redis.

use crate::program::{self, Outcome, alone};
use redlock_tests::{Nodes, RedisServer};

async fn quickstart(nodes: Option<&str>) -> Outcome {
    program::run(program::command(env!("CARGO_BIN_EXE_quickstart"), nodes)).await
}

/// Output lines that begin with a time, without the time.
fn events(output: &Outcome) -> Vec<&str> {
    output.stdout.lines().filter_map(|line| Some(line.split_once(" ms  ")?.1)).collect()
}

fn assert_story(output: &Outcome) {
    assert!(output.succeeded && output.stderr.is_empty(), "{output:?}");
    let events = events(output);
    let position = |event: &str| {
        let found = events.iter().position(|line| line.starts_with(event));
        found.unwrap_or_else(|| panic!("{event:?} is missing in {events:#?}"))
    };
    let in_order = |wanted: &[&str]| {
        let positions: Vec<_> = wanted.iter().map(|event| position(event)).collect();
        assert!(positions.is_sorted(), "{wanted:?} in {events:#?}");
    };
    in_order(&["Ann   order 7: begins", "Ann   order 7: done", "Ben   order 7: begins", "Ben   order 7: done"]);
    // A call for another order does not wait.
    in_order(&["Cleo  order 8: begins", "Ann   order 7: done"]);
    in_order(&[
        "Ann   report of Monday: begins",
        "Ben   Err(\"report:Monday\" is held by another owner: the call at ",
        "Ann   Ok(42)",
    ]);
    in_order(&["Dan   order 9: begins", "Dan   order 9: timed out", "Eve   order 9: begins", "Eve   order 9: done"]);
    position("      all locks are released");
    assert_eq!(events.len(), 14, "{events:#?}");
}

#[tokio::test]
async fn in_memory() {
    let _alone = alone().await;
    let outcome = quickstart(None).await;
    assert!(outcome.stdout.starts_with("The locks are in this process, because REDLOCK_NODES is not set."));
    assert_story(&outcome);
}

#[tokio::test]
async fn quickstart_runs_on_redis() {
    let _alone = alone().await;
    for count in [1, 3] {
        let nodes = Nodes::start(count).await;
        let outcome = quickstart(Some(&nodes.environment_value())).await;
        assert!(outcome.stdout.starts_with("The locks are on the Redis servers in REDLOCK_NODES.\n"), "{outcome:?}");
        assert_story(&outcome);
        assert!(nodes.contents().await.is_empty(), "{count} nodes: {:?}", nodes.contents().await);
        for node in nodes.iter() {
            // Each new connection sets its name and sends one `SET` to check its permission. A lock needs more `SET`s
            // than that.
            let asked = node.inspect().calls("client|setname").await;
            assert!(node.inspect().calls("set").await > asked, "one of {count} nodes was left out");
        }
    }
}

/// `main` returns the error, so the runtime prints it as `{:?}`, which must be one readable line.
#[tokio::test]
async fn quickstart_reports_unreachable_servers() {
    let _alone = alone().await;
    let server = RedisServer::start().await;
    server.kill();
    let outcome = quickstart(Some(&server.url())).await;
    assert!(!outcome.succeeded, "{outcome:?}");
    let expected = format!("Error: no quorum: 1 of 1 nodes needed, 0 agreed; 127.0.0.1:{}: not", server.port());
    assert!(outcome.stderr.starts_with(&expected) && outcome.stderr.lines().count() == 1, "{outcome:?}");
}
