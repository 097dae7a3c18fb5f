//! Readers on a server whose memory is used up.

use super::{KEY, reader};
use crate::waiters::managers;
use redlock_runtime::{LockGuard, LockRequest};
use redlock_tests::{Nodes, PATIENCE};

#[tokio::test]
async fn full_server_rejects_new_readers_and_keeps_current_ones() {
    let nodes = Nodes::start(1).await;
    let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
    let held = [ours.acquire(reader()).await.unwrap(), ours.acquire(reader()).await.unwrap()];
    let node = nodes[0].inspect();
    node.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let waits = LockRequest::shared(KEY).wait(PATIENCE);
    let others = [theirs.acquire(waits).await, theirs.try_acquire(LockRequest::shared(KEY)).await];
    for error in others.map(Result::unwrap_err) {
        assert!(error.to_string().contains("answered OOM") && error.is_transient(), "{error:?}");
    }
    for guard in &held {
        guard.extend().await.unwrap();
    }
    assert!(held.iter().all(LockGuard::is_held));
    for guard in held {
        guard.release().await.unwrap();
    }
    nodes.assert_empty(PATIENCE).await;
}
