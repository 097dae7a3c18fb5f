//! What options of a call promise of every kind of lock: of one key there are tests of its own (`holding`).

use crate::support::{BRIEF, assert_nothing_left, builder, connected, manager};
use crate::waiters::{assert_all_gone, obtained, waiting};
use redlock_runtime::{LockError, LockGuard, LockManager, LockPart, LockRequest, LossCause};
use redlock_tests::{Nodes, PATIENCE};
use std::future::pending;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Short enough to wait for its end.
const TTL: Duration = Duration::from_secs(1);
/// How long a key stays taken at least.
const LEAST: Duration = Duration::from_secs(1);

type Kind = (&'static str, fn() -> LockRequest);

/// A request of each kind but the exclusive lock of one key, of which two exclude each other.
const KINDS: [Kind; 4] = [
    ("several", || LockRequest::all(["a", "b"])),
    ("several, one shared", || LockRequest::all([LockPart::shared("a"), "b".into()])),
    ("a path", || LockRequest::path("/A/C")),
    ("a permit", || LockRequest::new("a").permits(1)),
];

async fn brief(nodes: &Nodes) -> LockManager {
    connected(builder(nodes.urls()).node_timeout(BRIEF).default_ttl(TTL), nodes).await
}

#[tokio::test]
async fn a_body_that_does_not_end_is_stopped_after_the_longest_hold() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        for (name, request) in KINDS {
            let (ours, theirs) = (brief(&nodes).await, brief(&nodes).await);
            let begun = Instant::now();
            let body = async |guard: &LockGuard| {
                assert!(guard.is_held());
                pending::<Result<(), LockError>>().await
            };
            let stopped = ours.with_lock(request().max_hold(2 * TTL), body);
            let error = stopped.await.expect_err(name);
            assert!(begun.elapsed() >= 2 * TTL, "{name}: it was renewed until then, and not for {:?}", begun.elapsed());
            assert!(matches!(error, LockError::Lost { cause: LossCause::MaxHold, .. }), "{name}: {error:?}");
            obtained(waiting(&theirs, request().wait(PATIENCE))).await.release().await.unwrap();
            assert_all_gone(&theirs, &nodes).await;
            assert_nothing_left(&ours, &nodes).await;
        }
    }
}

#[tokio::test]
async fn what_was_had_stays_taken_until_the_least_hold_is_over() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        for (name, request) in KINDS {
            let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
            let begun = Instant::now();
            ours.acquire(request().min_hold(LEAST)).await.expect(name).release().await.unwrap();
            for manager in [&ours, &theirs] {
                assert!(manager.try_acquire(request()).await.unwrap_err().is_contended(), "{name}");
            }
            obtained(waiting(&theirs, request().wait(PATIENCE))).await.release().await.unwrap();
            assert!(begun.elapsed() + Duration::from_millis(50) > LEAST, "{name}: {:?}", begun.elapsed());
            assert_all_gone(&ours, &nodes).await;
            assert_all_gone(&theirs, &nodes).await;
        }
    }
}

#[tokio::test]
async fn a_body_that_goes_on_without_its_lock_is_told() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        for (name, request) in KINDS {
            let manager = brief(&nodes).await;
            let guard = manager.acquire(request().renew(false)).await.expect(name);
            assert!(matches!(guard.lost().await, LockError::Lost { .. }), "{name}");
            assert!(guard.ensure_held().is_err() && guard.remaining().is_zero(), "{name}");
            // What the nodes keep a little longer than the client counts on.
            sleep(TTL / 4).await;
            assert!(guard.release().await.is_err(), "{name}");
            assert_all_gone(&manager, &nodes).await;
        }
    }
}
