//! A holder of several keys loses one of them by a break or a deletion. When it notices, it releases the others as well
//! (defect 24 of peers: a release stops at the first error and leaves the rest).

use super::{all, place};
use crate::support::{SIZES, known_everywhere};
use crate::waiters::{assert_all_gone, managers};
use redlock_runtime::admin::BreakOptions;
use redlock_runtime::{LockError, LockGuard, LockManager, LockPart, LockRequest};
use redlock_tests::{Nodes, PATIENCE, eventually};
use std::time::Duration;

/// Lease of the locks. A call that waits for its end waits for this long.
const TTL: Duration = Duration::from_secs(30);
/// Much shorter than a lease.
const SOON: Duration = Duration::from_secs(10);

/// Held lock, the name that is taken away, and a request for the other names only.
struct Case {
    held: fn() -> LockRequest,
    taken: &'static str,
    others: fn() -> LockRequest,
}

const CASES: [Case; 6] = [
    Case { held: || all(["a", "b"]), taken: "b", others: || "a".into() },
    Case { held: || all(["a", "b", "c"]), taken: "a", others: || LockRequest::all(["b", "c"]) },
    Case { held: || all([LockPart::shared("a"), "b".into()]), taken: "b", others: || "a".into() },
    Case { held: || all([LockPart::shared("a"), "b".into()]), taken: "a", others: || "b".into() },
    Case { held: || place("/A/C"), taken: "/{A}/C", others: || LockRequest::path("/A") },
    Case { held: || place("/A/C/D"), taken: "/{A}", others: || "/{A}/C/D".into() },
];

/// Waits until the holder finds out by itself, and returns its error. Takes the name away again in each round, because the holder may win
/// it back.
async fn found_out(held: &LockGuard, strike: impl AsyncFn()) -> LockError {
    eventually(PATIENCE, "the holder finds out", async || {
        strike().await;
        let _ = held.extend().await;
        held.ensure_held().err().ok_or("it is held")
    })
    .await
}

/// Checks that others get all names long before the end of the lease, and that all nodes are empty.
async fn assert_others_enter(nodes: &Nodes, [ours, theirs]: [LockManager; 2], case: &Case) {
    for request in [(case.others)(), (case.held)()] {
        let shown = format!("{request:?} when {} is gone, {} nodes", case.taken, nodes.len());
        let next = theirs.acquire(request.wait(SOON)).await;
        next.unwrap_or_else(|error| panic!("{shown}: {error}")).release().await.unwrap();
    }
    assert_all_gone(&ours, nodes).await;
    assert_all_gone(&theirs, nodes).await;
}

#[tokio::test]
async fn notified_break_of_one_key_releases_the_other_keys() {
    // A holder that forgets its token at the loss, or releases only the broken name, would keep the others until its lease ends.
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        for case in &CASES {
            let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
            // After this, its channels are open.
            ours.check().await;
            let held = known_everywhere(&ours, &nodes, (case.held)().ttl(TTL)).await;
            let token = *held.token();
            let stops = async {
                let lost = held.lost().await;
                drop(held);
                lost
            };
            let (report, lost) = tokio::join!(theirs.break_lock(case.taken, token), stops);
            assert!(report.is_broken() && report.holder_notified, "{}, {size} nodes: {report}", case.taken);
            assert!(matches!(lost, LockError::Lost { .. }), "{lost:?}");
            assert_others_enter(&nodes, [ours, theirs], case).await;
        }
    }
}

/// Runs `strike`, which takes one name away without a notification. Checks that the holder notices it and releases the others.
async fn assert_found_out_gives_back(strike: impl AsyncFn(&LockManager, &Nodes, &str, &LockGuard)) {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        for case in &CASES {
            let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
            let held = known_everywhere(&ours, &nodes, (case.held)().ttl(TTL)).await;
            let lost = found_out(&held, async || strike(&theirs, &nodes, case.taken, &held).await).await;
            assert!(matches!(lost, LockError::Lost { .. }), "{lost:?}");
            drop(held);
            assert_others_enter(&nodes, [ours, theirs], case).await;
        }
    }
}

#[tokio::test]
async fn forced_break_of_one_key_releases_the_other_keys() {
    // The holder is not notified, and does not listen for requests. So only its own release can free the other names.
    assert_found_out_gives_back(async |theirs, _, taken, held| {
        theirs.break_lock(taken, BreakOptions::new(*held.token()).by_force()).await;
    })
    .await;
}

#[tokio::test]
async fn deletion_of_one_key_releases_the_other_keys() {
    // A node that answers "not yours" to the whole request because one name is gone has not released the others.
    assert_found_out_gives_back(async |_, nodes, taken, _| {
        for node in nodes.iter() {
            node.inspect().command::<usize>(&["DEL", taken]).await;
        }
    })
    .await;
}

#[tokio::test]
async fn release_after_the_loss_of_one_key_returns_lost() {
    // A release that only counts nodes with remaining keys would accept that two bodies have run at once.
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        for (case, is_known) in CASES.iter().flat_map(|case| [(case, false), (case, true)]) {
            let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
            let held = known_everywhere(&ours, &nodes, (case.held)().ttl(TTL)).await;
            let strike = async || {
                for node in nodes.iter() {
                    node.inspect().command::<usize>(&["DEL", case.taken]).await;
                }
            };
            strike().await;
            if is_known {
                found_out(&held, strike).await;
            }
            let shown = format!("without {}, known: {is_known}, {size} nodes", case.taken);
            let released = held.release().await.expect_err(&shown);
            assert!(matches!(released, LockError::Lost { .. }), "{shown}: {released:?}");
            assert_others_enter(&nodes, [ours, theirs], case).await;
        }
    }
}
