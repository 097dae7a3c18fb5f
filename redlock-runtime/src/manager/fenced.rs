//! Taking locks together with a fencing token.

use super::LockManager;
use crate::client::window::acquire;
use crate::error::FromLockError;
use crate::error::LockError;
use crate::guard::fenced_guard::FencedGuard;
use crate::guard::hold::hold;
use crate::request::{LockRequest, Wait};

impl LockManager {
    /// Takes the lock together with a [`FencingToken`](crate::FencingToken), waiting for it if need be.
    ///
    /// The nodes keep a counter for each lock, and a majority must agree on the next number. It comes with the lock
    /// itself. When the counters differ, as after a node was down or has lost its data, one more round trip makes them
    /// alike again. A call that the lock is passed on to within this process has the next token without asking anybody.
    ///
    /// Fenced and other calls for one key exclude each other as always; only fenced ones draw numbers.
    ///
    /// # What the nodes must keep
    ///
    /// A counter is a key beside the lock, `{order:7}:f` for `order:7`, which expires 31 days after the last number was
    /// drawn. It then starts again above `redlock:fence`, the largest number that the node has given to any lock; this one
    /// key, one for each database, never expires.
    ///
    /// Tokens grow as long as every node that has given the last number keeps these keys until the others have it as well: a
    /// majority gives it, and a node that was away then does not know it. A node that comes back without its data is made
    /// equal to the others by the next call. With [`tolerate_amnesia`](crate::LockManagerBuilder::tolerate_amnesia), so
    /// many nodes may forget at any time. When too many have, numbers are given twice, or start from the beginning; the
    /// resource then refuses every new owner until they have caught up: with one node, that is every restart without
    /// persistence (`appendonly yes` with `appendfsync always` loses none). A server that evicts keys loses them, too.
    ///
    /// On a server in cluster mode, a script reaches one slot only, and `redlock:fence` is in another one than the lock:
    /// the nodes then refuse, and the call fails with [`LockError::NoQuorum`].
    ///
    /// # Errors
    /// Those of [`acquire`](Self::acquire). [`LockError::NoQuorum`] also when too few nodes gave a number; the lock is
    /// given back then.
    ///
    /// # Panics
    /// Outside of a tokio runtime with time enabled.
    ///
    /// # Cancel safety
    /// As for [`acquire`](Self::acquire). Numbers that were drawn by then are not used.
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
    pub async fn acquire_fenced(&self, request: impl Into<LockRequest>) -> Result<FencedGuard, LockError> {
        let request = LockRequest { is_fenced: true, ..request.into() };
        acquire(&self.local, request).await.and_then(FencedGuard::new)
    }

    /// Takes the lock together with a [`FencingToken`](crate::FencingToken) if it is free now, whatever `wait` the request
    /// or the manager has.
    ///
    /// # Errors
    /// [`LockError::Contended`] when another owner holds the lock; otherwise as for
    /// [`acquire_fenced`](Self::acquire_fenced).
    ///
    /// # Panics
    /// Outside of a tokio runtime with time enabled.
    ///
    /// # Cancel safety
    /// As for [`acquire_fenced`](Self::acquire_fenced).
    pub async fn try_acquire_fenced(&self, request: impl Into<LockRequest>) -> Result<FencedGuard, LockError> {
        self.acquire_fenced(request.into().wait(Wait::None)).await
    }

    /// Runs `body` while it holds the lock, as [`with_lock`](Self::with_lock) does, with a guard that has a
    /// [`FencingToken`](crate::FencingToken).
    ///
    /// # Errors
    /// Those of [`acquire_fenced`](Self::acquire_fenced), and [`LockError::Lost`] when the body was stopped; all turned
    /// into the body's own error type.
    ///
    /// # Panics
    /// Outside of a tokio runtime with time enabled, and when the body panics.
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
    pub async fn with_fenced_lock<R, F>(&self, request: impl Into<LockRequest>, body: F) -> R
    where
        F: AsyncFnOnce(&FencedGuard) -> R,
        R: FromLockError,
    {
        match self.acquire_fenced(request).await {
            Ok(guard) => hold(&guard, body(&guard)).await.unwrap_or_else(R::from_lock_error),
            Err(error) => R::from_lock_error(error),
        }
    }
}
