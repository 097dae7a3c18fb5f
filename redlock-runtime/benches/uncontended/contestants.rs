//! The compared lock implementations.

use crate::raw::Raw;
use redlock_runtime::{LockError, LockManager, distributed_lock};
use redlock_tests::Nodes;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// Future of one acquisition and release. Its output is `true` if the lock was acquired.
pub(crate) type Pair<'a> = Pin<Box<dyn Future<Output = bool> + Send + 'a>>;

const TTL: Duration = Duration::from_secs(30);

/// Implementation that acquires and releases the lock of a key.
pub(crate) trait Contestant: Send + Sync {
    fn name(&self) -> &'static str;
    fn pair<'a>(&'a self, key: &'a str) -> Pair<'a>;

    /// Returns the maximum number of tasks that the implementation supports.
    fn most_tasks(&self) -> usize {
        usize::MAX
    }
}

/// Handwritten lock on redis-rs: `SET NX PX`, and a compare-and-delete that is awaited.
pub(crate) struct RawAwaited(Raw);
/// Handwritten lock whose compare-and-delete runs in a spawned task.
pub(crate) struct RawUnawaited(Raw);
/// This library with `#[distributed_lock]`.
pub(crate) struct Ours(LockManager);
/// The crate rslock, which has its own connections.
pub(crate) struct Rslock(rslock::LockManager);

impl RawAwaited {
    pub(crate) async fn connect(nodes: &Nodes) -> Self {
        Self(Raw::connect(&nodes.urls()).await)
    }
}

impl Contestant for RawAwaited {
    fn name(&self) -> &'static str {
        "raw pair, release awaited"
    }

    fn pair<'a>(&'a self, key: &'a str) -> Pair<'a> {
        Box::pin(async move {
            let token = self.0.acquire(key, TTL).await.expect("nobody else wants it");
            self.0.release(key, &token).await;
            true
        })
    }
}

impl RawUnawaited {
    pub(crate) async fn connect(nodes: &Nodes) -> Self {
        Self(Raw::connect(&nodes.urls()).await)
    }
}

impl Contestant for RawUnawaited {
    fn name(&self) -> &'static str {
        "raw pair, release not awaited"
    }

    fn pair<'a>(&'a self, key: &'a str) -> Pair<'a> {
        Box::pin(async move {
            let token = self.0.acquire(key, TTL).await.expect("nobody else wants it");
            // Each pair has a fresh key, because the previous release may still be in progress.
            let (raw, key) = (self.0.clone(), key.to_owned());
            tokio::spawn(async move { raw.release(&key, &token).await });
            true
        })
    }
}

impl Ours {
    pub(crate) async fn connect(nodes: &Nodes) -> Self {
        let manager = LockManager::builder().nodes(nodes.urls()).build().expect("the harness gives valid URLs");
        manager.ready().await.expect("the nodes are up");
        Self(manager)
    }
}

#[distributed_lock(key = "{key}", ttl = 30, manager = manager)]
async fn locked(manager: &LockManager, key: &str) -> Result<(), LockError> {
    Ok(())
}

impl Contestant for Ours {
    fn name(&self) -> &'static str {
        "ours, through the attribute"
    }

    fn pair<'a>(&'a self, key: &'a str) -> Pair<'a> {
        Box::pin(async move { locked(&self.0, key).await.is_ok() })
    }
}

impl Rslock {
    pub(crate) fn connect(nodes: &Nodes) -> Self {
        Self(rslock::LockManager::new(nodes.urls()))
    }
}

impl Contestant for Rslock {
    fn name(&self) -> &'static str {
        "rslock"
    }

    fn pair<'a>(&'a self, key: &'a str) -> Pair<'a> {
        Box::pin(async move {
            match self.0.lock(key, TTL).await {
                Ok(lock) => self.0.unlock(&lock).await,
                Err(_) => return false,
            }
            true
        })
    }
}
