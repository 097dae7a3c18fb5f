//! A held lock.

#[cfg(test)]
mod tests;

use crate::client::acquire::AcquiredLock;
use crate::client::enclosing::Frame;
use crate::error::LockError;
use crate::guard::held::Held;
use crate::guard::loss_timer::Watched;
use crate::guard::scope::Scoped;
use crate::lock::{LockKey, Mode, OwnerToken};
use crate::request::DetachedLock;
use std::fmt;
use std::future::Future;
use std::time::Duration;

/// Held lock. Its lease is renewed while the guard exists. Dropping it releases the lock.
///
/// A loss of the lock does not stop the code that has the guard. Call [`is_held`](Self::is_held) before a side effect, or wait for
/// [`lost`](Self::lost). The bodies of [`with_lock`](crate::LockManager::with_lock) and of the attribute are stopped by a loss.
///
/// `drop` does not block and works anywhere, even while panicking and outside of a runtime. The release is queued on the connection
/// before `drop` returns, and retried in the background until it is answered. The runtime of the manager writes it when it next
/// polls the connection. If all threads of that runtime are blocked, a thread of this library writes it after 20 to 50 ms.
///
/// A guard does not prove that the lock is held: the lease ends on the nodes even if this process is suspended. If a hypervisor pauses the
/// virtual machine, its clocks stand still, and the guard counts as held until the next renewal is answered. Only a
/// [fencing token](crate::LockRequest::fencing) protects against a write after such a pause.
///
/// # Examples
/// ```
/// use redlock_runtime::{LockError, LockManager};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
/// let guard = LockManager::in_memory().acquire("order:7").await?;
/// assert!(guard.is_held() && guard.remaining() < guard.ttl());
/// guard.extend().await?;
/// guard.release().await
/// # }
/// ```
#[must_use = "the lock is released when the guard is dropped: write `let _guard = ..`, because `let _ = ..` drops it at once"]
pub struct LockGuard {
    held: Held,
}

impl LockGuard {
    pub(crate) fn new(obtained: AcquiredLock) -> Self {
        Self { held: Held::new(obtained) }
    }

    pub(crate) const fn held(&self) -> &Held {
        &self.held
    }

    /// Returns the locked key. For a lock of [several](crate::LockRequest::all) keys, their common name, as in `"a" + "b"`.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        self.held.acquisition().key()
    }

    /// Returns each requested key: one, unless the request was for [several](crate::LockRequest::all). Ancestors of a
    /// [path](crate::LockRequest::path) are not included.
    ///
    /// A nested [reentrant](crate::LockRequest::reentrant) call has the keys of the lock that it entered.
    pub fn keys(&self) -> impl Iterator<Item = &LockKey> {
        self.held.acquisition().keys()
    }

    /// Returns the mode: that of the request, and [`Mode::Shared`] after a [`downgrade`](Self::downgrade).
    ///
    /// A nested [reentrant](crate::LockRequest::reentrant) call has the mode of the lock that it entered.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.held.mode()
    }

    /// Turns an exclusive lock into a [shared](crate::LockRequest::shared) one, atomically: waiting readers enter, and no writer
    /// can acquire the lock in between.
    ///
    /// Readers that waited behind a writer of another process do not enter; that writer is served when the guard is dropped. A
    /// writer that waits in this process joins the queue on the nodes when the guard is dropped, behind readers that arrived
    /// earlier. The token, the lease, its renewal and the limits of the request do not change. A [fencing
    /// token](crate::FencingToken) stays the same, but should not be used for writes any more: the next writer has a larger one.
    ///
    /// A shared lock cannot be upgraded. Release it and acquire an exclusive one: two readers that both upgraded would deadlock.
    ///
    /// It does nothing if the lock is shared, released or lost, and nothing on the guard of a nested
    /// [reentrant](crate::LockRequest::reentrant) call. Nested calls inside this body share the lock from then on as well.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager, LockRequest, Mode};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let locks = LockManager::in_memory();
    /// let guard = locks.acquire("config").await?;
    /// // .. write it
    /// guard.downgrade();
    /// assert_eq!(guard.mode(), Mode::Shared);
    /// let reader = locks.acquire(LockRequest::shared("config")).await?;
    /// assert!(guard.is_held() && reader.is_held());
    /// # Ok(()) }
    /// ```
    pub fn downgrade(&self) {
        self.held.downgrade();
    }

    /// Returns the owner token: the value of the key on the nodes, followed by a `+` there while others wait. Tokens of shared
    /// locks are members of a sorted set.
    #[must_use]
    pub fn token(&self) -> &OwnerToken {
        self.held.acquisition().token()
    }

    /// Returns the lifetime of the lock on the nodes, counted from the acquisition or the last extension.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        self.held.acquisition().ttl()
    }

    /// Returns how much longer the lock is provably held. This is the rest of the lease on a majority of the nodes, minus the clock
    /// drift, and at most `max_hold`. Zero after the lease has ended or the lock was released.
    ///
    /// After a hand-over from another process it is at most one second, until the nodes have confirmed the full `ttl`.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.held.remaining()
    }

    /// Returns `true` if the lock is provably held now.
    ///
    /// No command is sent, so a deleted key is noticed at the next renewal. The proof relies on the clocks; the guide page
    /// [verification](crate::guide::reference::verification) lists the assumptions.
    #[must_use]
    pub fn is_held(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// Checks that the lock is provably held now. Call it before a side effect.
    ///
    /// No command is sent, and the check takes less than 100 ns. It cannot detect a pause between the check and the side effect; that
    /// needs a [fencing token](crate::FencingToken).
    ///
    /// # Errors
    /// [`LockError::Lost`], with the cause.
    pub fn ensure_held(&self) -> Result<(), LockError> {
        if self.is_held() { Ok(()) } else { Err(self.held.loss()) }
    }

    /// Waits until the lock is lost, and returns the error. For bodies that continue without the lock.
    ///
    /// It completes when the lease ends, whatever the network does, and after [`release`](Self::release).
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// Cancel safe: it can be called again.
    pub async fn lost(&self) -> LockError {
        Watched::new(&self.held).lost(Duration::ZERO).await
    }

    /// Waits until less than a fifth of the `ttl` remains, or until the lock is lost. Use it to save intermediate results.
    ///
    /// Renewal keeps more than half of the `ttl`. So renewal has been failing for a while, or is off, or `max_hold` is almost over.
    /// The short lease after a hand-over ([`remaining`](Self::remaining)) is ignored.
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// Cancel safe: it can be called again.
    pub async fn near_expiry(&self) {
        Watched::new(&self.held).lost(self.ttl() / 5).await;
    }

    /// Starts a new lease of one `ttl` from now. Concurrent calls take turns.
    ///
    /// Renewal does the same in the background. Use this without renewal, or to know that the nodes have confirmed the lease.
    ///
    /// # Errors
    /// - [`LockError::Lost`]: a majority of the nodes does not hold the lock for this token any more.
    /// - [`LockError::NoQuorum`]: too few nodes answered within one second, or within the node timeout if that is longer. The lock
    ///   is still held for [`remaining`](Self::remaining), and the call can be repeated.
    /// - [`LockError::Refused`]: too many nodes rejected the extension, for example after a change of their permissions. The lock
    ///   is still held for [`remaining`](Self::remaining).
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// A dropped call may or may not have extended the lease; [`remaining`](Self::remaining) counts the answers.
    pub async fn extend(&self) -> Result<(), LockError> {
        self.held.check_extendable()?;
        self.held.acquisition().extend().await?;
        // Checked a second time: after a release in the meantime, the lease may belong to another call.
        self.held.check_extendable()
    }

    /// Releases the lock and waits until a majority of the nodes has confirmed it. Later calls do nothing.
    ///
    /// The release is queued on the connection when the method is called, before the future is polled. Dropping the guard is enough
    /// in most places. Use this if the caller must know the outcome, or if the body continues with work that needs no lock.
    ///
    /// If another call of this process waits, the lock may pass to it without a command. A key with a
    /// [`min_hold`](crate::LockRequest::min_hold) stays taken until that time is over.
    ///
    /// # Errors
    /// The lock is released in every case.
    ///
    /// - [`LockError::Lost`]: the lock was lost before, so another caller may have held it.
    /// - [`LockError::NoQuorum`]: too few nodes answered within one second, or within the node timeout if that is longer. The
    ///   release continues in the background until the nodes have answered or the key has expired; nothing needs to be done.
    /// - [`LockError::Refused`]: too many nodes rejected the release. The key may stay there until it expires.
    ///
    /// # Panics
    /// When it is awaited outside of a tokio runtime with time enabled.
    ///
    /// # Cancel safety
    /// The lock is released even if the future is dropped.
    pub fn release(&self) -> impl Future<Output = Result<(), LockError>> + Send + use<> {
        let patience = self.held.acquisition().patience();
        let release = self.held.release();
        async move {
            match release? {
                Some(release) => release.confirmed(patience).await,
                // Another call of this process holds the lock now. Only a held lock is passed on.
                None => Ok(()),
            }
        }
    }

    /// Runs `future` as a body of this guard. Calls inside are nested calls, as in the body of
    /// [`with_lock`](crate::LockManager::with_lock), and [reentrant](crate::LockRequest::reentrant) calls enter the lock.
    ///
    /// Unlike a body of `with_lock`, the future is not stopped if the lock is lost: check the guard.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager, LockRequest};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let locks = LockManager::in_memory();
    /// let guard = locks.acquire("order:7").await?;
    /// let pay = async || locks.acquire(LockRequest::new("order:7").reentrant()).await.map(drop);
    /// guard.scope(pay()).await?;
    /// guard.release().await
    /// # }
    /// ```
    pub fn scope<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<'_, F> {
        Scoped::new(Frame::for_body(self.held.tenure(), true), future)
    }

    /// Marks the window of a [`once_per`](crate::LockRequest::once_per) as not run: when the guard is dropped or released, the next
    /// call in this window can run. Call it if the body has failed, or has found nothing to do. Without a window it has no effect.
    pub fn reopen_window(&self) {
        self.held.reopen_window();
    }

    /// Leaves the lock on the nodes. Another worker can take it over with [`LockManager::attach`](crate::LockManager::attach). If
    /// several workers try, at most one gets it.
    ///
    /// The lock keeps its mode. It is not renewed, and expires after the rest of its `ttl`. A lock that was just handed over keeps at
    /// least one second, or its `ttl` if that is shorter.
    ///
    /// A [permit](crate::LockRequest::permits) cannot be detached: it is released, with a warning in the log. If the guard was released
    /// before, attaching the result fails with [`LockError::Lost`].
    #[must_use = "without it, the lock cannot be attached or released before its `ttl` is over"]
    pub fn detach(self) -> DetachedLock {
        let parts = self.held.acquisition().parts();
        DetachedLock::new(&parts, self.held.detach(), self.ttl())
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockGuard")
            .field("key", self.key())
            .field("mode", &self.mode())
            .field("token", self.token())
            .field("remaining", &self.remaining())
            .finish()
    }
}
