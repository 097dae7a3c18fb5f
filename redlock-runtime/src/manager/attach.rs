//! Attaching detached locks.

use super::LockManager;
use crate::client::acquire::attach;
use crate::error::LockError;
use crate::guard::{Acquired, Fencing};
use crate::request::DetachedLock;
use std::future::Future;
use std::panic::Location;

impl LockManager {
    /// Takes over a lock that another worker has [detached](crate::LockGuard::detach). Both managers need the same namespace.
    ///
    /// The nodes then store the lock under a token of this manager, in the same mode. A new lease begins, and is renewed. The
    /// limits of the earlier request (`max_hold`, `min_hold`) do not apply. With [`DetachedLock::fencing`], the guard has a fencing
    /// token that is larger than all earlier ones of the lock.
    ///
    /// A text can be attached once. If a job is delivered to several workers, the first one gets the lock, and later ones get
    /// [`Lost`](LockError::Lost). If several workers attach at the same moment, each may win some of the nodes and none a majority.
    /// Then all of them fail, and the lock is free after one `ttl` at the latest. A detached lock is not renewed. If nodes lose
    /// their data meanwhile, another caller can take the lock.
    ///
    /// # Errors
    /// If the call fails, start anew: the lock is released. A node that did not answer keeps it until its `ttl` is over.
    ///
    /// - [`LockError::Lost`]: the lock has expired, or was attached by another worker.
    /// - [`LockError::NoQuorum`]: too few nodes answered, or, with fencing, too few have accepted a number.
    /// - [`LockError::Refused`]: too many nodes rejected the call. Retrying does not help.
    /// - [`LockError::Contended`]: another call of this process holds the key.
    /// - [`LockError::InvalidKey`], [`LockError::Configuration`]: the text names a lock that this manager cannot hold. For example,
    ///   its `ttl` is too short or too long, its keys are in different slots of a cluster, or it is a shared lock with fencing.
    /// - [`LockError::Closed`]: after [`shutdown`](Self::shutdown).
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// A dropped call releases the lock. It is not known then if the text can be attached again.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let locks = LockManager::in_memory();
    /// let message = locks.acquire("order:7").await?.detach().to_string();
    /// let guard = locks.attach(message.parse()?).await?;
    /// guard.release().await?;
    /// let again = locks.attach(message.parse()?).await;
    /// assert!(matches!(again, Err(LockError::Lost { .. })));
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn attach<F: Fencing>(&self, detached: DetachedLock<F>) -> impl Future<Output = Result<F::Guard, LockError>> {
        let location = Location::caller();
        let detached = detached.convert();
        async move { attach(&self.local, &detached, F::IS_FENCED, location).await.map(Acquired).and_then(F::guard) }
    }
}
