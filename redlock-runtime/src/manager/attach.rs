//! Taking up locks that another worker has left.

use super::LockManager;
use crate::client::acquire::attach;
use crate::error::LockError;
use crate::guard::LockGuard;
use crate::guard::fenced_guard::FencedGuard;
use crate::request::DetachedLock;
use std::future::Future;
use std::panic::Location;

impl LockManager {
    /// Takes up a lock that another worker has left with [`LockGuard::detach`]. Both managers need the same namespace.
    ///
    /// The nodes keep the lock under a token of this manager from then on, for one call alone or shared as it was before. Its lease starts anew and is renewed, without the
    /// limits that it had there.
    ///
    /// A text can be attached once: if a job is delivered to several workers, one of them gets the lock, and the later ones get
    /// [`Lost`](LockError::Lost). If several workers attach at the same moment, each may win some of the nodes and none a majority: then
    /// all of them fail, and the lock is free after one `ttl` at the latest. A detached lock is not renewed. If nodes lose their data
    /// meanwhile, another caller can take the lock.
    ///
    /// # Errors
    /// Whoever could not take it up starts anew: what was taken up is given back, and a node that could not be asked keeps
    /// the lock until its `ttl` is over.
    /// [`LockError::Lost`] when the lock is not there any more, because its `ttl` was over or somebody else has taken it
    /// up, [`LockError::NoQuorum`] when too few nodes answered, [`LockError::Contended`] when another call of this process
    /// has the key, [`LockError::Configuration`] when the `ttl` is too short or too long for this manager,
    /// [`LockError::Closed`] after [`shutdown`](Self::shutdown).
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// Dropped at any point, what was taken up is given back. Whether the text is good for another try is open then.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let manager = LockManager::in_memory();
    /// let message = manager.acquire("order:7").await?.detach().to_string();
    /// let guard = manager.attach(message.parse()?).await?;
    /// guard.release().await?;
    /// let again = manager.attach(message.parse()?).await;
    /// assert!(matches!(again, Err(LockError::Lost { .. })));
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn attach(&self, detached: DetachedLock) -> impl Future<Output = Result<LockGuard, LockError>> {
        let location = Location::caller();
        async move { attach(&self.local, &detached, false, location).await.map(LockGuard::new) }
    }

    /// Takes up a lock that another worker has left, as [`attach`](Self::attach) does, together with a
    /// [`FencingToken`](crate::FencingToken). It is larger than the one that the lock had there, if it had one.
    ///
    /// # Errors
    /// Those of [`attach`](Self::attach), [`LockError::Configuration`] also for a [shared](crate::Mode::Shared) lock, which
    /// nobody takes up by that. [`LockError::NoQuorum`] also when too few nodes gave a number; the lock is given
    /// back then.
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// As for [`attach`](Self::attach). Numbers that were proposed by then are not used.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let manager = LockManager::in_memory();
    /// let first = manager.acquire_fenced("order:7").await?;
    /// let before = first.fencing_token();
    /// let second = manager.attach_fenced(first.detach()).await?;
    /// assert!(before < second.fencing_token());
    /// second.release().await
    /// # }
    /// ```
    #[track_caller]
    pub fn attach_fenced(&self, detached: DetachedLock) -> impl Future<Output = Result<FencedGuard, LockError>> {
        let location = Location::caller();
        async move { attach(&self.local, &detached, true, location).await.and_then(FencedGuard::new) }
    }
}
