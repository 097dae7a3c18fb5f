//! The three ways to wait for a lock that are compared.

use crate::plan::LIMIT;
use crate::raw::Raw;
use redlock_runtime::{LockGuard, LockManager, LockRequest, Wait};
use std::time::Duration;
use tokio::time::timeout;

/// The mean pause of the raw poller; each pause is between half of it and one and a half.
pub(crate) const POLL: Duration = Duration::from_millis(50);

/// Long enough that no lock here runs out unless that is what is measured.
pub(crate) const TTL: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ours,
    Rslock,
    Poller,
}

/// One manager with connections of its own, as each process has one.
#[derive(Clone)]
pub(crate) enum Contender {
    Ours(LockManager),
    Rslock(rslock::LockManager),
    Poller(Raw),
}

/// A lock that is held until [`release`](Self::release).
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

    /// Connected, and every script known to the nodes.
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
    /// Waits until the lock is held; `None` when that takes longer than [`LIMIT`], or the library gives up by itself.
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
    /// The way each is commonly used: ours is dropped, as after the body of an annotated function, and sees to the
    /// answer in the background; the others have no release but one that is awaited.
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
