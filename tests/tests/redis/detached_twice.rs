//! Texts of detached locks that are delivered more than once.

use crate::support::{SIZES, assert_nothing_left, manager};
use redlock_runtime::{DetachedLock, FencedGuard, LockError, LockGuard, LockManager, LockRequest};
use redlock_tests::{Nodes, PATIENCE};
use std::future::Future;
use tokio::task::JoinSet;

const KEY: &str = "order:7";
const ROUNDS: usize = 40;

fn request() -> LockRequest {
    LockRequest::new(KEY).wait(PATIENCE)
}

/// Attaches one lock in several workers at the same time. Returns their outcomes.
async fn at_once<G: Send + 'static, A>(
    managers: &[LockManager],
    detached: &DetachedLock,
    attach: impl Fn(LockManager, DetachedLock) -> A,
) -> Vec<Result<G, LockError>>
where
    A: Future<Output = Result<G, LockError>> + Send + 'static,
{
    let mut workers = JoinSet::new();
    for manager in managers {
        workers.spawn(attach(manager.clone(), detached.clone()));
    }
    workers.join_all().await
}

/// Returns the guard of the only successful worker, if there is one. All others must have failed with `Lost`.
fn winner<G>(outcomes: Vec<Result<G, LockError>>) -> Option<G> {
    let mut winners = Vec::new();
    for outcome in outcomes {
        match outcome {
            Ok(guard) => winners.push(guard),
            Err(LockError::Lost { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
    assert!(winners.len() <= 1, "{} have it", winners.len());
    winners.pop()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn detached_lock_is_attached_by_at_most_one_worker() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let managers = [manager(&nodes).await, manager(&nodes).await, manager(&nodes).await];
        let mut taken_up = 0;
        for round in 0..ROUNDS {
            // The lock must be free again, whichever workers held the nodes before.
            let detached = managers[round % 3].acquire(request()).await.unwrap().detach();
            let attach = |manager: LockManager, detached: DetachedLock| async move { manager.attach(detached).await };
            let winner: Option<LockGuard> = winner(at_once(&managers, &detached, attach).await);
            assert!(size > 1 || winner.is_some(), "one node has one winner");
            if let Some(guard) = winner {
                taken_up += 1;
                guard.extend().await.unwrap();
                guard.release().await.unwrap();
            }
        }
        assert!(taken_up > 0, "{size} nodes");
        for manager in &managers {
            assert_nothing_left(manager, &nodes).await;
        }
    }
}

#[tokio::test]
async fn detached_lock_is_attached_once_per_manager() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let detached = manager.acquire(request()).await.unwrap().detach();
    let (one, other) = tokio::join!(manager.attach(detached.clone()), manager.attach(detached.clone()));
    let guard = one.unwrap();
    assert!(matches!(other, Err(LockError::Contended { .. })), "{other:?}");
    assert!(matches!(manager.attach(detached.clone()).await, Err(LockError::Contended { .. })));
    guard.release().await.unwrap();
    assert!(matches!(manager.attach(detached).await, Err(LockError::Lost { .. })));
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn attach_with_fencing_returns_a_larger_token() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let managers = [manager(&nodes).await, manager(&nodes).await];
        let attach =
            |manager: LockManager, detached: DetachedLock| async move { manager.attach(detached.fencing()).await };
        let mut latest = None;
        for round in 0..ROUNDS / 4 {
            let guard = managers[round % 2].acquire(request().fencing()).await.unwrap();
            assert!(latest < Some(guard.fencing_token()));
            latest = Some(guard.fencing_token());
            let winner: Option<FencedGuard> = winner(at_once(&managers, &guard.detach(), attach).await);
            assert!(size > 1 || winner.is_some(), "one node has one winner");
            if let Some(guard) = winner {
                assert!(latest < Some(guard.fencing_token()));
                latest = Some(guard.fencing_token());
                // A second hand-over, without competitors.
                let again = managers[round % 2].attach(guard.detach().fencing()).await.unwrap();
                assert!(latest < Some(again.fencing_token()));
                latest = Some(again.fencing_token());
                again.release().await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn lock_detached_without_a_fencing_token_is_attached_with_one() {
    let nodes = Nodes::start(3).await;
    let (ours, theirs) = (manager(&nodes).await, manager(&nodes).await);
    let before = ours.acquire(request().fencing()).await.unwrap().fencing_token();
    let unfenced = ours.acquire(request()).await.unwrap();
    let guard = theirs.attach(unfenced.detach().fencing()).await.unwrap();
    assert!(before < guard.fencing_token());
    drop(guard);
    assert!(theirs.shutdown().await);
}
