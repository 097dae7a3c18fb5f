//! Taking locks together with a fencing token.

use super::LockManager;
use crate::client::window::acquire;
use crate::error::FromLockError;
use crate::error::LockError;
use crate::guard::fenced_guard::FencedGuard;
use crate::guard::hold::hold;
use crate::request::{LockRequest, Wait};
use std::future::Future;
use std::panic::Location;

impl LockManager {
    /// Takes the lock together with a [`FencingToken`](crate::FencingToken), waiting for it if need be.
    ///
    /// The number is a *ballot*: each node accepts it only if it is larger than all that it has accepted, and a majority has
    /// to. It is proposed together with the lock, and costs a round trip more only when it was too small: when the clock of
    /// another process is ahead by more than this one knows of, or two locks meet that share a register, as all do whose keys have the same hash tag. A call that the
    /// lock is passed on to within this process has the next token without asking anybody.
    ///
    /// Fenced and other calls for one key exclude each other as always; only fenced ones have numbers.
    ///
    /// # What the nodes keep
    ///
    /// Each has at most 16 384 keys `redlock:f:{..}` for each namespace, for all names of locks together, about 161 bytes each. They do
    /// not expire.
    ///
    /// Tokens grow in the order of the holders, as long as no node loses these keys. A holder sends its number to nodes that come back
    /// without their data, so servers may be restarted empty one after the other while the lock is held.
    ///
    /// If one node loses its keys after the release, the next majority may consist of that node and of nodes that have never stored the
    /// number. The clocks then decide: a new ballot is the time of most servers. The token is larger than the earlier ones, unless the
    /// clocks of the servers were set back. If the user may not run `TIME`, the clocks of the processes are used, and a slower clock than
    /// that of an earlier holder gives a smaller token. The same holds if all nodes lose their keys.
    ///
    /// # Errors
    /// Those of [`acquire`](Self::acquire). [`LockError::NoQuorum`] also when too few nodes have accepted a number; the
    /// lock is given back then.
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// As for [`acquire`](Self::acquire). Numbers that were proposed by then are not used.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let manager = LockManager::in_memory();
    /// let guard = manager.acquire_fenced("order:7").await?;
    /// println!("UPDATE .. WHERE fencing_token <= {}", guard.fencing_token());
    /// guard.release().await
    /// # }
    /// ```
    #[track_caller]
    pub fn acquire_fenced(
        &self,
        request: impl Into<LockRequest>,
    ) -> impl Future<Output = Result<FencedGuard, LockError>> {
        let request = LockRequest { is_fenced: true, ..request.into().asked_at(Location::caller()) };
        async move { acquire(&self.local, &request).await.and_then(FencedGuard::new) }
    }

    /// Takes the lock together with a [`FencingToken`](crate::FencingToken) if it is free now, whatever `wait` the request
    /// or the manager has.
    ///
    /// # Errors
    /// [`LockError::Contended`] when another owner holds the lock; otherwise as for
    /// [`acquire_fenced`](Self::acquire_fenced).
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// As for [`acquire_fenced`](Self::acquire_fenced).
    #[track_caller]
    pub fn try_acquire_fenced(
        &self,
        request: impl Into<LockRequest>,
    ) -> impl Future<Output = Result<FencedGuard, LockError>> {
        self.acquire_fenced(request.into().wait(Wait::None))
    }

    /// Runs `body` while it holds the lock, as [`with_lock`](Self::with_lock) does, with a guard that has a
    /// [`FencingToken`](crate::FencingToken).
    ///
    /// # Errors
    /// Those of [`acquire_fenced`](Self::acquire_fenced), and [`LockError::Lost`] when the body was stopped; all turned
    /// into the body's own error type.
    ///
    /// # Panics
    /// On a tokio runtime without time enabled, and when the body panics.
    ///
    /// # Cancel safety
    /// The body is dropped, then the lock is given back.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// # let manager = LockManager::in_memory();
    /// let token = manager
    ///     .with_fenced_lock("cart:7", async |guard| Ok::<_, LockError>(guard.fencing_token()))
    ///     .await?;
    /// # assert!(token.as_u64() > 0); Ok(()) }
    /// ```
    #[track_caller]
    pub fn with_fenced_lock<R, F>(&self, request: impl Into<LockRequest>, body: F) -> impl Future<Output = R>
    where
        F: AsyncFnOnce(&FencedGuard) -> R,
        R: FromLockError,
    {
        let request = request.into().asked_at(Location::caller());
        async move {
            match self.acquire_fenced(request).await {
                Ok(guard) => hold(&guard, body(&guard)).with_guard().await.unwrap_or_else(R::from_lock_error),
                Err(error) => R::from_lock_error(error),
            }
        }
    }
}
