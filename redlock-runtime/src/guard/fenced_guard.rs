//! A held lock with its fencing token.

use crate::client::acquire::Obtained;
use crate::error::LockError;
use crate::guard::lock_guard::LockGuard;
use crate::protocol::fencing_token::FencingToken;
use crate::request::DetachedLock;
use std::fmt;
use std::ops::Deref;

/// A held lock that has a [`FencingToken`]. It derefs to the [`LockGuard`]; dropping it gives the lock back.
///
/// The token stays the same for as long as the guard lives: a renewal draws no other, and
/// [`downgrade`](LockGuard::downgrade) does not either.
///
/// # Examples
/// ```
/// use redlock_runtime::{LockError, LockManager};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
/// let guard = LockManager::in_memory().acquire(LockRequest::new("order:7").fencing()).await?;
/// let token = guard.fencing_token(); // goes with every write
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
    /// # Errors
    /// [`LockError::NoQuorum`] when the lock has no number, which a fenced request does not get.
    pub(crate) fn new(obtained: Obtained) -> Result<Self, LockError> {
        match obtained.fencing_token {
            Some(token) => Ok(Self { guard: LockGuard::new(obtained), token }),
            None => Err(obtained.acquisition().failure()),
        }
    }

    /// The number to send along with what is written while the lock is held.
    #[must_use]
    pub const fn fencing_token(&self) -> FencingToken {
        self.token
    }

    /// Leaves the lock at the nodes for another worker, as [`LockGuard::detach`] does. Whoever takes it up with
    /// [`LockManager::attach_fenced`](crate::LockManager::attach_fenced) gets a larger token.
    #[must_use = "without it, nobody can take the lock up or give it back"]
    pub fn detach(self) -> DetachedLock {
        self.guard.detach()
    }

    /// The guard without the token, for what takes it by value.
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
    async fn a_number_that_is_used_up_is_followed_by_another() {
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
