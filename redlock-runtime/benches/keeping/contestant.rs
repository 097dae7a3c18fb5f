//! The compared libraries.

use crate::body::Body;
use crate::plan::TTL;
use redlock_runtime::{LockError, LockGuard, LockManager, LockRequest, Wait};
use std::time::Instant;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Ours,
    Rslock,
}

/// Lock manager with separate connections, as in a separate process.
#[derive(Clone)]
pub(crate) enum Contestant {
    Ours(LockManager),
    Rslock(rslock::LockManager),
}

impl Kind {
    pub(crate) const ALL: [Self; 2] = [Self::Ours, Self::Rslock];

    /// Connects to every node.
    pub(crate) async fn connect(self, urls: Vec<String>) -> Contestant {
        match self {
            Self::Ours => {
                let builder = LockManager::builder().nodes(urls).default_ttl(TTL).tuning(|tuning| tuning.max_ttl(TTL));
                let manager = builder.build().expect("the harness gives valid URLs");
                manager.ready().await.expect("the nodes are up");
                Contestant::Ours(manager)
            }
            Self::Rslock => {
                let manager = rslock::LockManager::new(urls);
                manager.acquire("warm-up", TTL).await.expect("nobody else wants it").release().await;
                Contestant::Rslock(manager)
            }
        }
    }
}

impl Contestant {
    /// Runs `body` under a lock that the library renews. Returns `true` if the body ended normally, and `false` if the
    /// lock was lost.
    pub(crate) async fn hold(&self, key: &str, body: &Body) -> bool {
        match self {
            Self::Ours(manager) => {
                let body = async |_: &LockGuard| {
                    body.run().await;
                    Ok::<_, LockError>(())
                };
                manager.with_lock(key, body).await.is_ok()
            }
            Self::Rslock(manager) => manager.using(key.as_bytes(), TTL, async || body.run().await).await.is_ok(),
        }
    }

    /// Waits for the lock, releases it, and returns the time of the acquisition. Returns `None` if the library gives
    /// up.
    pub(crate) async fn wait(&self, key: &str) -> Option<Instant> {
        match self {
            Self::Ours(manager) => {
                let guard = manager.acquire(LockRequest::new(key).wait(Wait::Forever)).await.ok()?;
                let held = Instant::now();
                drop(guard);
                Some(held)
            }
            Self::Rslock(manager) => {
                let guard = manager.acquire(key, TTL).await.ok()?;
                let held = Instant::now();
                guard.release().await;
                Some(held)
            }
        }
    }
}
