//! A held lock.

#[cfg(test)]
mod tests;

use crate::client::acquire::Obtained;
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

/// A held lock. Dropping it gives the lock back.
///
/// The release has its place in the order of the connection before `drop` returns, and its answer is seen to in the
/// background: so a drop works anywhere, also while panicking and outside of the runtime. It is written when the runtime of
/// the manager next drives the connection, or by a thread of this library 20 to 50 ms later when all threads are blocked.
///
/// The existence of a guard does not prove exclusion: the lease ends at the nodes even if this process is suspended. If a hypervisor pauses
/// the virtual machine, the clocks of the machine stand still, and the guard counts as held until the next renewal is answered.
/// Call [`is_held`](Self::is_held), or let [`with_lock`](crate::LockManager::with_lock) and the attribute drop the body at its next
/// `.await`.
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
    pub(crate) fn new(obtained: Obtained) -> Self {
        Self { held: Held::new(obtained) }
    }

    pub(crate) const fn held(&self) -> &Held {
        &self.held
    }

    /// What is locked. Where that is [several](crate::LockRequest::all) keys, what they are called together.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        self.held.acquisition().key()
    }

    /// Each of the keys that were asked for, by their names: one, unless the request was for [several](crate::LockRequest::all).
    /// What is above a [path](crate::LockRequest::path) is none of them.
    ///
    /// A nested call that is [reentrant](crate::LockRequest::reentrant) has those of the lock that it has entered.
    pub fn keys(&self) -> impl Iterator<Item = &LockKey> {
        self.held.acquisition().keys()
    }

    /// Whether it is for this call alone or shared with others: as what it was asked for, and [`Mode::Shared`] after a
    /// [`downgrade`](Self::downgrade).
    ///
    /// A nested call that is [reentrant](crate::LockRequest::reentrant) has the mode of the lock that it has entered, whatever it
    /// asked for.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.held.mode()
    }

    /// Lets readers in, and goes on as one of them: an exclusive lock becomes a [shared](crate::LockRequest::shared) one, and
    /// nobody has it alone in between. For a writer that has written, and reads what it wrote.
    ///
    /// From the call on, the guard counts on a share only, and the nodes are told at once. Readers that wait enter, but none that
    /// has come after a writer of another process that waits: that one is served when the guard is dropped. A writer that waits in
    /// this process, behind the guard, asks the nodes only then, and comes after the readers of until then. The token, the lease and its renewal, and
    /// the limits of the request stay what they are, and so does a [fencing token](crate::FencingToken), with which nothing should
    /// be written any more: the next writer has a larger one, and has it only after the last reader.
    ///
    /// There is no way back: whoever wants the lock alone again gives it back first. Two that had not would wait for each other.
    ///
    /// It does nothing where the lock is shared already, was given back, or is lost; and nothing on the guard of a
    /// [reentrant](crate::LockRequest::reentrant) call in the body of another, whose lock it is. Such calls, as far as they run,
    /// share the lock from then on as well: a body should not do that while they write.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager, LockRequest, Mode};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let manager = LockManager::in_memory();
    /// let guard = manager.acquire("config").await?;
    /// // .. write it
    /// guard.downgrade();
    /// assert_eq!(guard.mode(), Mode::Shared);
    /// let reader = manager.acquire(LockRequest::shared("config")).await?;
    /// assert!(guard.is_held() && reader.is_held());
    /// # Ok(()) }
    /// ```
    pub fn downgrade(&self) {
        self.held.downgrade();
    }

    /// Who holds it: the value under the key at the nodes, there with a `+` behind it when others may wait for the lock. Those
    /// who share it are members of a sorted set.
    #[must_use]
    pub fn token(&self) -> &OwnerToken {
        self.held.acquisition().token()
    }

    /// The lifetime of the lock at the nodes, from the acquisition or the last extension.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        self.held.acquisition().ttl()
    }

    /// How much longer the lock is provably held: what is left of the `ttl` after clock drift, at a majority of the
    /// nodes, counted from when they were last asked, and no longer than `max_hold`. Zero when the lease has run out or
    /// was given back.
    ///
    /// A lock that another process has just handed over is held for a second at most, until the nodes have answered that it is
    /// held for the `ttl`; they were asked before the guard was made.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.held.remaining()
    }

    /// Returns `true` if the lock is provably held now. No command is sent, so a deleted key is noticed at the next renewal. The proof
    /// rests on the clocks: see the assumptions in the guide page `verification`.
    #[must_use]
    pub fn is_held(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// Checks that the lock is provably held now, before a side effect. No command is sent, and the check takes less than 100 ns. It
    /// cannot detect a pause between the check and the side effect; that needs a [fencing token](crate::FencingToken).
    ///
    /// # Errors
    /// [`LockError::Lost`], with the cause.
    pub fn ensure_held(&self) -> Result<(), LockError> {
        if self.is_held() { Ok(()) } else { Err(self.held.loss()) }
    }

    /// Waits until the lock is not held any more, and says why: for bodies that go on without it.
    ///
    /// It is ready no later than the lease runs out, whatever the network does, and after [`release`](Self::release).
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// Nothing is lost: it can be called again.
    pub async fn lost(&self) -> LockError {
        Watched::new(&self.held).lost(Duration::ZERO).await
    }

    /// Waits until less than a fifth of the `ttl` is left of the lease, or until it is lost: time to save what was done.
    ///
    /// Renewal keeps more than half of it; so something is wrong by then, or there is no renewal, or `max_hold` is near. The
    /// second for which a lock is handed over ([`remaining`](Self::remaining)) counts as no lease.
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// Nothing is lost: it can be called again.
    pub async fn near_expiry(&self) {
        Watched::new(&self.held).lost(self.ttl() / 5).await;
    }

    /// Starts the lease anew: another `ttl`, counted from now. Several calls at once take turns.
    ///
    /// Renewal does the same in the background, so that this is for guards without it, and for whoever must know.
    ///
    /// # Errors
    /// [`LockError::Lost`] when a majority of the nodes says that the lock is not held any more, and
    /// [`LockError::NoQuorum`] when too few answered within a second, or within the node timeout if that is longer. After that one, the
    /// lock is still held for [`remaining`](Self::remaining), and extending may be tried again.
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// A dropped call may or may not have extended the lease; [`remaining`](Self::remaining) counts what was answered.
    pub async fn extend(&self) -> Result<(), LockError> {
        self.held.may_be_extended()?;
        self.held.acquisition().extend().await?;
        // Once more: what was given back meanwhile may be another call's, whose lease that is.
        self.held.may_be_extended()
    }

    /// Gives the lock back and waits until a majority of the nodes has confirmed it. What is called later does nothing.
    ///
    /// The call itself puts the release into the order of the connection, before the future is polled. Dropping the guard is enough in most
    /// places; wait when the caller must know, or when a body has work left that needs no lock.
    ///
    /// Where another call of this process waits for the lock, it may be passed on to that one without a command. A key with
    /// a [`min_hold`](crate::LockRequest::min_hold) stays taken until that is over.
    ///
    /// # Errors
    /// The lock is given back in every case. [`LockError::Lost`] says that the lock was gone before, so that another
    /// owner may have been at work; [`LockError::NoQuorum`] that too few nodes answered within a second, or within the node timeout if
    /// that is longer. After that one, the key may still stand at some nodes: the release goes on in the background until they have answered
    /// or the key has expired, and there is nothing left to do.
    ///
    /// # Panics
    /// When it is awaited outside of a tokio runtime with time enabled.
    ///
    /// # Cancel safety
    /// The lock is given back whether or not the future is polled to its end.
    pub fn release(&self) -> impl Future<Output = Result<(), LockError>> + Send + use<> {
        let patience = self.held.acquisition().patience();
        let release = self.held.release();
        async move {
            match release? {
                Some(release) => release.confirmed(patience).await,
                // Another call of this process has it now, which is only given what is still held.
                None => Ok(()),
            }
        }
    }

    /// Runs `future` as a body of this guard: calls inside find that they are made under its lock, as in the body of
    /// [`with_lock`](crate::LockManager::with_lock). [Reentrant](crate::LockRequest::reentrant) ones enter it.
    ///
    /// Unlike such a body, it is not stopped when the lock is lost: ask the guard.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager, LockRequest};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let manager = LockManager::in_memory();
    /// let guard = manager.acquire("order:7").await?;
    /// let pay = async || manager.acquire(LockRequest::new("order:7").reentrant()).await.map(drop);
    /// guard.scope(pay()).await?;
    /// guard.release().await
    /// # }
    /// ```
    pub fn scope<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<'_, F> {
        Scoped::new(Frame::of_body(self.held.tenure(), true), future)
    }

    /// Marks the window of a [`once_per`](crate::LockRequest::once_per) as not run. When the guard is dropped or released, the next call
    /// in this window gets it. Call it if the body has failed, or has found that there is nothing to do. Without a window it has no effect.
    pub fn reopen_window(&self) {
        self.held.reopen_window();
    }

    /// Leaves the lock at the nodes for another worker, here or elsewhere, that takes it up with
    /// [`LockManager::attach`](crate::LockManager::attach). Of several that try, at most one gets it.
    ///
    /// It stays what it is, for one call alone or [shared](crate::LockRequest::shared). A
    /// [permit](crate::LockRequest::permits) is not left: it is given back, with a warning, because whoever took it up could not know
    /// whether it was proven all the time.
    /// Nobody renews it in the meantime: it ends with what is left of its `ttl`. A lock that was handed over just before has at
    /// least a second left, or its `ttl` if that is shorter, until the servers have executed what asks for more. A guard that was released before has
    /// nothing to leave: taking up the result is [`LockError::Lost`].
    #[must_use = "without it, nobody can take the lock up or give it back"]
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
