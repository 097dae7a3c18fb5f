//! The compared lock implementations.

use crate::plan::LIMIT;
use crate::raw::Raw;
use redlock_runtime::{LockGuard, LockManager, LockRequest, Wait};
use std::time::Duration;
use tokio::time::timeout;

/// Mean pause of the raw poller. Each pause is random, between 0.5 and 1.5 times this value.
pub(crate) const POLL: Duration = Duration::from_millis(50);

/// Long enough that no lock expires, except where expiry is measured.
pub(crate) const TTL: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ours,
    Rslock,
    Poller,
}

/// Lock manager with separate connections, as in a separate process.
#[derive(Clone)]
pub(crate) enum Contender {
    Ours(LockManager),
    Rslock(rslock::LockManager),
    Poller(Raw),
}

/// Held lock. [`release`](Self::release) releases it.
pub(crate) enum Held {
    Ours(LockGuard),
    Rslock(rslock::LockGuard),
    Poller { raw: Raw, key: String, token: String },
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Ours, Self::Rslock, Self::Poller];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Rslock => "rslock",
            Self::Poller => "raw poller",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Connects, and acquires a lock once so that the nodes have loaded every script.
    pub(crate) async fn connect(self, urls: &[String]) -> Contender {
        let contender = match self {
            Self::Ours => {
                let manager = LockManager::builder().nodes(urls).build().expect("the harness gives valid URLs");
                manager.ready().await.expect("the nodes are up");
                Contender::Ours(manager)
            }
            Self::Rslock => Contender::Rslock(rslock::LockManager::new(urls.to_vec())),
            Self::Poller => Contender::Poller(Raw::connect(urls).await),
        };
        let own_key = format!("warm:{}", uuid::Uuid::now_v7());
        contender.acquire(&own_key, TTL).await.expect("nobody else wants it").release().await;
        contender
    }

    pub(crate) async fn connect_many(self, count: usize, urls: &[String]) -> Vec<Contender> {
        futures_util::future::join_all((0..count).map(|_| self.connect(urls))).await
    }
}

impl Contender {
    /// Waits for the lock. Returns `None` if this takes longer than [`LIMIT`] or the library gives up.
    pub(crate) async fn acquire(&self, key: &str, ttl: Duration) -> Option<Held> {
        timeout(LIMIT, self.acquire_at_last(key, ttl)).await.ok().flatten()
    }

    async fn acquire_at_last(&self, key: &str, ttl: Duration) -> Option<Held> {
        match self {
            Self::Ours(manager) => {
                let request = LockRequest::new(key).ttl(ttl).wait(Wait::Forever);
                manager.acquire(request).await.ok().map(Held::Ours)
            }
            Self::Rslock(manager) => manager.acquire(key, ttl).await.ok().map(Held::Rslock),
            Self::Poller(raw) => Some(poll(raw, key, ttl).await),
        }
    }
}

impl Held {
    /// Releases the lock in the usual way of each implementation. Our guard is dropped, as after an annotated function,
    /// and the reply is handled in the background. The others offer only a release that is awaited.
    pub(crate) async fn release(self) {
        match self {
            Self::Ours(guard) => drop(guard),
            Self::Rslock(guard) => guard.release().await,
            Self::Poller { raw, key, token } => raw.release(&key, &token).await,
        }
    }
}

async fn poll(raw: &Raw, key: &str, ttl: Duration) -> Held {
    loop {
        if let Some(token) = raw.acquire(key, ttl).await {
            return Held::Poller { raw: raw.clone(), key: key.to_owned(), token };
        }
        tokio::time::sleep(POLL.mul_f64(0.5 + fastrand::f64())).await;
    }
}
