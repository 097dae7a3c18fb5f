//! A Redis Cluster as one node.

use crate::support::{GENEROUS, builder};
use redlock_runtime::{LockError, LockGuard, LockManager, LockRequest};
use redlock_tests::{Cluster, PATIENCE, RedisServer, eventually};
use std::time::Duration;

/// A manager that is connected to every master.
pub(crate) async fn connected(url: &str) -> LockManager {
    let manager = builder([url]).build().unwrap();
    eventually(PATIENCE, "it is ready", async || manager.ready().await).await;
    manager
}

/// Closes `managers`, lets every answer come in, and checks that nothing is left at any master.
pub(crate) async fn assert_nothing_left(managers: &[&LockManager], cluster: &Cluster) {
    for manager in managers {
        assert!(manager.shutdown().await, "a release was not answered: {:?}", manager.release_stats());
    }
    cluster.assert_empty(PATIENCE, &["redlock:f:"]).await;
}

/// A key on each of the masters.
async fn keys(cluster: &Cluster, masters: usize) -> Vec<String> {
    let mut keys = Vec::new();
    for master in 0..masters {
        keys.push(cluster.key_on(master, "order").await);
    }
    keys
}

#[tokio::test]
async fn locks_of_every_master() {
    let cluster = Cluster::start(3, 0).await;
    let (manager, other) = (connected(&cluster.url()).await, connected(&cluster.url()).await);
    for key in keys(&cluster, 3).await {
        let guard = manager.acquire(&key).await.unwrap();
        assert!(cluster.member(cluster.owner(&key).await).inspect().get(&key).await.is_some());
        assert!(other.try_acquire(&key).await.unwrap_err().is_contended());
        guard.release().await.unwrap();
        drop(other.try_acquire(&key).await.unwrap());
        let fenced = manager.acquire_fenced(&key).await.unwrap();
        assert!(fenced.fencing_token().to_string().len() > 1);
    }
    assert_nothing_left(&[&manager, &other], &cluster).await;
}
