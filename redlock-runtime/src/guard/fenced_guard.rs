//! A held lock with its fencing token.

use crate::client::acquire::AcquiredLock;
use crate::error::LockError;
use crate::guard::lock_guard::LockGuard;
use crate::protocol::fencing_token::FencingToken;
use crate::request::DetachedLock;
use std::fmt;
use std::ops::Deref;

/// Held lock with its [`FencingToken`]. Dereferences to the [`LockGuard`]; dropping it releases the lock.
///
/// The token does not change while the guard exists, neither by renewal nor by [`downgrade`](LockGuard::downgrade).
///
/// # Examples
/// ```
/// use redlock_runtime::{LockError, LockManager};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
/// let guard = LockManager::in_memory().lock("order:7").fencing().await?;
/// let token = guard.fencing_token(); // send it along with every write
/// assert!(guard.is_held());
/// # let _ = token;
/// guard.release().await
/// # }
/// ```
#[must_use = "the lock is released when the guard is dropped: write `let _guard = ..`, because `let _ = ..` drops it at once"]
pub struct FencedGuard {
    guard: LockGuard,
    token: FencingToken,
}

impl FencedGuard {
    /// Returns the guard of a fenced acquisition.
    ///
    /// # Errors
    /// [`LockError::NoQuorum`] or [`LockError::Refused`] if the lock has no number. A fenced request never leads here without a
    /// number.
    pub(crate) fn new(obtained: AcquiredLock) -> Result<Self, LockError> {
        match obtained.fencing_token {
            Some(token) => Ok(Self { guard: LockGuard::new(obtained), token }),
            None => Err(obtained.acquisition().failure()),
        }
    }

    /// Returns the token to send along with every write while the lock is held.
    #[must_use]
    pub const fn fencing_token(&self) -> FencingToken {
        self.token
    }

    /// Leaves the lock on the nodes for another worker; see [`LockGuard::detach`]. Attach it with
    /// [`DetachedLock::fencing`](crate::DetachedLock::fencing) to get a larger token.
    #[must_use = "without it, the lock cannot be attached or released before its `ttl` is over"]
    pub fn detach(self) -> DetachedLock {
        self.guard.detach()
    }

    /// Returns the guard without the token.
    pub fn into_guard(self) -> LockGuard {
        self.guard
    }
}

impl Deref for FencedGuard {
    type Target = LockGuard;

    fn deref(&self) -> &LockGuard {
        &self.guard
    }
}

impl From<FencedGuard> for LockGuard {
    fn from(fenced: FencedGuard) -> Self {
        fenced.into_guard()
    }
}

impl fmt::Debug for FencedGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FencedGuard").field("guard", &self.guard).field("fencing_token", &self.token).finish()
    }
}

#[cfg(test)]
mod tests {
    use crate::LockManager;
    use crate::LockRequest;
    use std::future::{Future, poll_fn};
    use std::pin::pin;
    use std::task::Poll;

    #[tokio::test(start_paused = true)]
    async fn exhausted_fencing_number_is_followed_by_the_next() {
        let manager = LockManager::in_memory();
        let mut guard = manager.acquire(LockRequest::new("order:7").fencing()).await.unwrap();
        let first = guard.fencing_token();
        // All tokens of one number, and ten of the next one.
        let calls = 16_384 + 10;
        for _ in 1..calls {
            let mut next = pin!(manager.acquire(LockRequest::new("order:7").fencing()));
            let is_in_line = poll_fn(|cx| Poll::Ready(next.as_mut().poll(cx).is_pending())).await;
            assert!(is_in_line);
            let before = guard.fencing_token();
            drop(guard);
            guard = next.await.unwrap();
            assert!(before < guard.fencing_token());
        }
        assert_eq!(guard.fencing_token().as_u64() - first.as_u64(), calls - 1);
    }
}
