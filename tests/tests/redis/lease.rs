//! Leases that expire, are extended, or turn out to belong to another holder (defects 9, 10, 11, 13 and 16 of peers).

use crate::support::{
    BRIEF, GENEROUS, SIZES, acquired_everywhere, assert_nothing_left, barrier, builder, causes, connected, holders,
    majority, manager,
};
use redlock_runtime::{LockError, LockGuard, LockRequest, NodeError};
use redlock_tests::{Nodes, PATIENCE, RedisServer, eventually, eventually_eq};
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;

const KEY: &str = "order:7";
const LOOKS: usize = 50;

/// Looks at the key on every node at the moment when the body is dropped. It uses a blocking client, since a `Drop`
/// cannot await.
struct Body {
    urls: Vec<String>,
    seen: Arc<Mutex<Vec<Option<String>>>>,
}

impl Drop for Body {
    fn drop(&mut self) {
        for url in &self.urls {
            let mut connection = redis::Client::open(url.as_str()).unwrap().get_connection().unwrap();
            // Repeats the look, because a release that was sent too early may be on its way.
            for _ in 0..LOOKS {
                let owner = redis::cmd("GET").arg(KEY).query(&mut connection).unwrap();
                self.seen.lock().unwrap().push(owner);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn body_is_stopped_while_the_nodes_still_store_the_key() {
    // Defects 11 and 13: reported after the keys have expired; released before the body is gone.
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        // When the lease is over for the client, half of the ttl is left at the nodes. So a busy machine has time to look.
        let manager =
            connected(builder(nodes.urls()).tuning(|tuning| tuning.drift_factor(0.5)).node_timeout(BRIEF), &nodes)
                .await;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let body = Body { urls: nodes.urls(), seen: Arc::clone(&seen) };
        let token = Mutex::new(String::new());
        let request = LockRequest::new(KEY).ttl(Duration::from_secs(4)).without_renewal();
        let stuck = async |guard: &LockGuard| -> Result<(), LockError> {
            guard.token().as_str().clone_into(&mut token.lock().unwrap());
            let _body = body;
            pending().await
        };
        let outcome = tokio::time::timeout(PATIENCE, manager.with_lock(request, stuck)).await;
        let error = outcome.expect("the body is stopped").unwrap_err();
        assert!(matches!(error, LockError::Lost { .. }), "{error:?}");
        let owner = Some(token.into_inner().unwrap());
        assert_eq!(*seen.lock().unwrap(), vec![owner; size * LOOKS], "{size} nodes");
        assert_nothing_left(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn body_is_stopped_in_time_with_all_nodes_frozen() {
    // Defect 11: the deadline is local, whatever the network does.
    let nodes = Nodes::start(3).await;
    let manager = connected(builder(nodes.urls()).node_timeout(BRIEF), &nodes).await;
    let request = LockRequest::new(KEY).ttl(Duration::from_millis(300));
    let frozen = async |guard: &LockGuard| -> Result<(), LockError> {
        nodes.iter().for_each(RedisServer::freeze);
        guard.extend().await.unwrap_err();
        pending().await
    };
    let outcome = tokio::time::timeout(GENEROUS, manager.with_lock(request, frozen)).await;
    let error = outcome.expect("stopped by its own clock").unwrap_err();
    assert!(matches!(error, LockError::Lost { .. }), "{error:?}");
    nodes.iter().for_each(RedisServer::thaw);
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn extended_lease_outlives_its_first_ttl() {
    let nodes = Nodes::start(3).await;
    // Half of it outlasts a pause of the machine.
    let ttl = Duration::from_secs(4);
    let manager = connected(builder(nodes.urls()).node_timeout(ttl / 2).default_ttl(ttl), &nodes).await;
    let guard = manager.acquire(LockRequest::new(KEY).without_renewal()).await.unwrap();
    let begun = std::time::Instant::now();
    while begun.elapsed() < ttl {
        eventually(ttl, "half of the lease is used up", async || match guard.remaining() {
            left if left < ttl / 2 => Ok(()),
            left => Err(left),
        })
        .await;
        guard.extend().await.unwrap();
        assert!(guard.remaining() > ttl / 2, "{guard:?}");
    }
    eventually_eq(PATIENCE, "held everywhere", 3, async || holders(&nodes, &guard).await).await;
    guard.release().await.unwrap();
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn concurrent_extensions_of_one_lock_do_not_block_each_other() {
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    let guard = Arc::new(manager.acquire(KEY).await.unwrap());
    let mut extensions = JoinSet::new();
    for _ in 0..2 {
        let guard = Arc::clone(&guard);
        extensions.spawn(async move { guard.extend().await.unwrap() });
    }
    let others = async {
        for _ in 0..20 {
            manager.acquire("another").await.unwrap().release().await.unwrap();
        }
    };
    tokio::select! {
        _ = extensions.join_all() => {}
        () = others => panic!("40 later commands were answered before 2 extensions"),
    }
    drop(guard);
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn extension_resets_the_expiry_at_all_nodes() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let guard = acquired_everywhere(&manager, &nodes, KEY).await;
    for node in nodes.iter() {
        node.inspect().command::<()>(&["PEXPIRE", KEY, "10000"]).await;
    }
    guard.extend().await.unwrap();
    for node in nodes.iter() {
        eventually(PATIENCE, "the whole ttl again", async || match node.inspect().pttl(KEY).await {
            left if left > 10_000 => Ok(()),
            left => Err(left),
        })
        .await;
    }
    guard.release().await.unwrap();
    assert_nothing_left(&manager, &nodes).await;
}

/// Loss of the key of a guard without its knowledge.
#[derive(Clone, Copy, Debug)]
enum Loss {
    Expired,
    TakenByAnother,
}

impl Loss {
    async fn strike(self, node: &RedisServer) {
        node.inspect().command::<()>(&["PEXPIRE", KEY, "1"]).await;
        eventually_eq(PATIENCE, "the key expires", None, async || node.inspect().get(KEY).await).await;
        if matches!(self, Self::TakenByAnother) {
            node.inspect().command::<()>(&["SET", KEY, "another", "NX", "PX", "60000"]).await;
        }
    }

    fn owner(self) -> Option<&'static str> {
        matches!(self, Self::TakenByAnother).then_some("another")
    }
}

#[tokio::test]
async fn lock_lost_at_a_majority_is_not_recreated_by_extend_or_release() {
    // Defects 10 and 16.
    for size in SIZES {
        for loss in [Loss::Expired, Loss::TakenByAnother] {
            let nodes = Nodes::start(size).await;
            let manager = manager(&nodes).await;
            let guard = acquired_everywhere(&manager, &nodes, KEY).await;
            let lost = majority(size);
            for node in &nodes[..lost] {
                loss.strike(node).await;
            }
            for _ in 0..2 {
                let error = guard.extend().await.unwrap_err();
                assert!(matches!(error, LockError::Lost { .. }), "{loss:?} on {size} nodes: {error:?}");
                assert!(!guard.is_held());
            }
            let error = guard.release().await.unwrap_err();
            assert!(matches!(error, LockError::Lost { .. } | LockError::NoQuorum { .. }), "{error:?}");
            assert!(manager.shutdown().await);
            barrier(&nodes).await;
            for node in nodes.iter().take(lost) {
                assert_eq!(node.inspect().get(KEY).await.as_deref(), loss.owner());
            }
            for node in nodes.iter().skip(lost) {
                assert_eq!(node.inspect().get(KEY).await, None, "what was still ours is given back");
            }
        }
    }
}

#[tokio::test]
async fn release_of_a_lost_lock_fails_and_does_not_affect_the_next_holder() {
    for loss in [Loss::Expired, Loss::TakenByAnother] {
        let nodes = Nodes::start(3).await;
        let manager = manager(&nodes).await;
        let guard = acquired_everywhere(&manager, &nodes, KEY).await;
        for node in nodes.iter() {
            loss.strike(node).await;
        }
        let error = guard.release().await.unwrap_err();
        assert!(matches!(error, LockError::Lost { .. }), "{error:?}");
        assert!(manager.shutdown().await);
        barrier(&nodes).await;
        for node in nodes.iter() {
            assert_eq!(node.inspect().get(KEY).await.as_deref(), loss.owner());
        }
        assert_eq!(manager.stats().releases.not_owner, 3, "counted at every node");
    }
}

#[tokio::test]
async fn lost_lock_does_not_mask_the_result_of_the_body() {
    // Defect 16: the release of an expired lock retries for seconds and then replaces the body's result.
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let body = async |_: &LockGuard| {
        nodes[0].inspect().flush_all().await;
        nodes[1].inspect().flush_all().await;
        Ok::<_, LockError>(7)
    };
    assert_eq!(manager.with_lock(KEY, body).await.unwrap(), 7);
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn failed_extension_does_not_release_the_lock() {
    // Defect 9: the failed round deletes the caller's own healthy lock.
    for (size, frozen) in [(1, 1), (3, 2), (5, 3)] {
        let nodes = Nodes::start(size).await;
        let manager = connected(builder(nodes.urls()).node_timeout(BRIEF), &nodes).await;
        let guard = eventually(PATIENCE, "a lock on a busy machine", async || manager.acquire(KEY).await).await;
        let before = guard.remaining();
        nodes[..frozen].iter().for_each(RedisServer::freeze);
        let error = guard.extend().await.unwrap_err();
        let causes = causes(&error);
        assert!(causes.iter().all(|(_, cause)| matches!(cause, NodeError::TimedOut(_))), "{error:?}");
        assert!(causes.len() >= frozen, "{error:?}");
        assert!(guard.is_held() && guard.remaining() <= before, "{guard:?}");
        nodes[..frozen].iter().for_each(RedisServer::thaw);
        eventually(PATIENCE, "extended again", async || guard.extend().await).await;
        eventually_eq(PATIENCE, "held everywhere", size, async || holders(&nodes, &guard).await).await;
        drop(guard);
        assert_nothing_left(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn lock_lost_on_one_node_is_still_held() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let guard = acquired_everywhere(&manager, &nodes, KEY).await;
    Loss::TakenByAnother.strike(&nodes[0]).await;
    guard.extend().await.unwrap();
    assert!(guard.is_held());
    guard.release().await.unwrap();
    assert!(manager.shutdown().await);
    barrier(&nodes).await;
    let owners: Vec<_> = nodes.contents().await.into_iter().map(|(i, keys)| (i, keys[KEY].clone())).collect();
    assert_eq!(owners, [(0, "another".to_owned())]);
}
