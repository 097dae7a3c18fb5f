//! The lock of a guard, for the tasks that its body spawns.

use super::LockManager;
use super::installed::{InManager, scoped_manager};
use crate::client::enclosing::BodyHold;
use crate::error::LockError;
use crate::guard::LockGuard;
use crate::guard::loss_timer::{Watched, check_held};
use crate::guard::scope::InheritedScope;
use crate::lock::LockKey;
use std::fmt;
use std::future::Future;
use std::time::Duration;

/// Lock of a parent, for a task that the parent spawns. Made by [`LockGuard::inherit`].
///
/// The task shares the lock but does not extend it. The lock ends with the guard of the parent, and is lost for the task at the
/// same moment. The task learns of a loss in one of two ways:
///
/// - [`scope`](Self::scope) runs a future and drops it at the loss. Use it for async code.
/// - [`ensure_held`](Self::ensure_held), [`is_held`](Self::is_held) and [`lost`](Self::lost) report it. Use them before a side effect,
///   and in code that blocks its thread.
///
/// A clone refers to the same lock. Like a guard, it keeps the connections of the manager open.
///
/// # Examples
/// ```
/// use redlock_runtime::{LockError, LockManager};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
/// let guard = LockManager::in_memory().acquire("file:7").await?;
/// let lock = guard.inherit();
/// let work = tokio::task::spawn_blocking(move || {
///     for _part in 0..3 {
///         lock.ensure_held()?; // the thread must stop by itself
///     }
///     Ok::<_, LockError>(())
/// });
/// work.await.expect("it does not panic")?;
/// guard.release().await
/// # }
/// ```
#[derive(Clone)]
#[must_use = "spawn its `scope`"]
pub struct Inherited {
    tenure: BodyHold,
    /// Manager of the scope in which the parent ran.
    manager: Option<LockManager>,
}

impl LockGuard {
    /// Returns the lock for a task that works for this call. The task runs in its [`scope`](Inherited::scope). Calls there find the
    /// lock, and annotated functions use the manager of the [`LockManager::scope`] that is active here.
    ///
    /// The lock still ends with the guard, so the body must wait for the task. If the lock is lost or the guard ends first, the scope
    /// drops the future of the task and returns [`LockError::Lost`].
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager, LockRequest};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let manager = LockManager::in_memory();
    /// let guard = manager.acquire("order:7").await?;
    /// let task = tokio::spawn(guard.inherit().scope({
    ///     let manager = manager.clone();
    ///     async move { manager.acquire(LockRequest::new("order:7").reentrant()).await.map(drop) }
    /// }));
    /// task.await.expect("it does not panic")??;
    /// guard.release().await
    /// # }
    /// ```
    pub fn inherit(&self) -> Inherited {
        Inherited { tenure: self.held().tenure().for_a_task(), manager: scoped_manager() }
    }
}

impl Inherited {
    /// Returns the locked key.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        self.tenure.key()
    }

    /// Returns `true` if the parent provably holds the lock now. After the guard has ended, it returns `false`. See
    /// [`LockGuard::is_held`].
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.tenure.is_held()
    }

    /// Checks that the parent provably holds the lock now, before a side effect. No command is sent. It cannot detect a pause between
    /// the check and the side effect; that needs a [fencing token](crate::FencingToken).
    ///
    /// # Errors
    /// [`LockError::Lost`], with the cause. After a release or the end of the guard, the cause is
    /// [`Released`](crate::LossCause::Released).
    pub fn ensure_held(&self) -> Result<(), LockError> {
        check_held(&self.tenure)
    }

    /// Waits until the lock is lost, or until the guard of the parent is released or dropped, and returns the reason. Use it in
    /// tasks that must clean up before they stop.
    ///
    /// It is ready when the lease runs out at the latest, whatever the network does.
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// Nothing is lost: it can be called again.
    pub async fn lost(&self) -> LockError {
        Watched::new(&self.tenure).lost(Duration::ZERO).await
    }

    /// Runs `future` while the parent holds the lock. Calls inside find the lock, as in a body of the guard. Annotated functions
    /// use the manager of the [`LockManager::scope`] in which [`inherit`](LockGuard::inherit) was called.
    ///
    /// The future is dropped at its next `.await` when the lock is lost, like a body of [`with_lock`](LockManager::with_lock). The
    /// task cannot check the guard, so this also happens if the parent continues after the loss, for example
    /// with `on_lost = continue`.
    ///
    /// The future is also dropped when the guard is released, dropped or detached. The task holds nothing from then on, so a parent
    /// that needs its result waits for it.
    ///
    /// # Errors
    /// [`LockError::Lost`], with the cause. The future has not run to its end, or has not begun if the lock was lost before. After a
    /// release or the end of the guard, the cause is [`Released`](crate::LossCause::Released).
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// Dropping it drops `future`. The lock stays with the parent.
    pub fn scope<F: Future>(self, future: F) -> impl Future<Output = Result<F::Output, LockError>> + use<F> {
        InManager::new(self.manager, InheritedScope::new(self.tenure, future))
    }
}

impl fmt::Debug for Inherited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let remaining = self.tenure.remaining();
        f.debug_struct("Inherited").field("key", self.key()).field("remaining", &remaining).finish_non_exhaustive()
    }
}
