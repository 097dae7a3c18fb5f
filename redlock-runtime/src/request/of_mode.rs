//! Requests for a shared lock, and what does not go with one.

use crate::error::LockError;
use crate::lock::{LockKey, Mode};
use crate::request::LockRequest;
use std::time::Duration;

impl LockRequest {
    /// A request for a share of `key`, with the manager's defaults: the caller is a *reader*, and has the lock together with
    /// other readers. The same as `LockRequest::new(key).mode(Mode::Shared)`.
    ///
    /// For what many may look at and one may change, when looking takes long enough that readers would stand in each other's
    /// way. A lock for one call alone is what [`new`](Self::new) asks for: its caller is a *writer* to readers of the key.
    ///
    /// # Who enters when
    /// Readers and writers are served together, in the order in which they began to wait. A reader does not pass a writer that
    /// waits, so that a stream of readers keeps no writer out for longer than those that were there before it; and the readers
    /// that wait between two writers enter together. Writers of one process are an exception: while one of them has the lock, the
    /// others stand in the line of their process, which is represented in the queues by the first of them; and it may go from one to
    /// the next for as long as [`local_handover`](crate::LockManagerBuilder::local_handover) says.
    ///
    /// Every reader has a token and a lease of its own, which is renewed by itself. So one that dies keeps writers out until its
    /// own `ttl` is over, whatever the others do, and takes no share from them.
    ///
    /// # Readers of one process
    /// Bodies of [`with_lock`](crate::LockManager::with_lock) and of the attribute that have the lock of one key with the same `ttl`,
    /// with renewal and without `min_hold`, have one token and one lease together. The first asks the nodes; others *join* it without a command,
    /// or wait for what it gets; the last to leave gives the lock back. Each has a [`max_hold`](Self::max_hold) of its own, and a loss is told to
    /// all. Nobody joins when a call of this process waits to be a writer; when one of another process does, they join for as long as
    /// [`local_handover`](crate::LockManagerBuilder::local_handover) says, and no token is joined for longer than one `ttl` in all.
    ///
    /// A guard of [`acquire`](crate::LockManager::acquire) has a token of its own: it may be [left](crate::LockGuard::detach) to another worker.
    ///
    /// # What is different from an exclusive lock
    /// - There is nothing to [`linger`](Self::linger): when the last reader of a process has left, the next one asks the nodes.
    /// - There is no [fencing token](crate::FencingToken): what is held together has no order.
    /// - There is no [`once_per`](Self::once_per), which is for one call in each window.
    /// - [`min_hold`](Self::min_hold) keeps writers out for that time, and no readers.
    /// - A writer may go on as a reader, by [`LockGuard::downgrade`](crate::LockGuard::downgrade), and a reader may not become
    ///   a writer: two of them that tried would wait for each other. Take the exclusive lock in the first place.
    ///
    /// # When not to use it
    /// A body that needs a second share while it has one waits behind a writer that waits for the first: for ever, if nothing
    /// else ends it. Within one process, such a call is told [`LockError::WouldDeadlock`]; through another process, by a request
    /// to a service that asks for the same key, nobody can see it.
    ///
    /// Where bodies are shorter than the way to the nodes and back, and hardly two of them run at the same time, an exclusive lock may
    /// serve more of them: inside of a process it passes from call to call without a command, also when nobody had it in between.
    ///
    /// A share costs a node more than an exclusive lock, which is a plain `SET`: about half as long again for one call, and twice as
    /// long where many calls keep the servers busy.
    ///
    /// All processes that use the key need a version of this library that knows shared locks.
    ///
    /// # Errors
    /// When it is acquired: [`LockError::Configuration`] together with a fencing token, `once_per` or `linger`.
    ///
    /// # Cancel safety
    /// As for any other request: see [`LockManager::acquire`](crate::LockManager::acquire).
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager, LockRequest};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let manager = LockManager::in_memory();
    /// let one = manager.acquire(LockRequest::shared("config")).await?;
    /// let other = manager.acquire(LockRequest::shared("config")).await?;
    /// assert!(one.is_held() && other.is_held());
    /// assert!(manager.try_acquire("config").await.unwrap_err().is_contended());
    /// # Ok(()) }
    /// ```
    pub fn shared(key: impl Into<LockKey>) -> Self {
        Self::new(key).mode(Mode::Shared)
    }

    /// Whether the lock is for the call alone, or [shared](Self::shared) with others. Default: [`Mode::Exclusive`].
    pub const fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// # Errors
    /// [`LockError::Configuration`] for what does not go with a shared lock, if all that is wanted has that `mode`.
    pub(super) fn check_mode(&self, mode: Mode) -> Result<(), LockError> {
        if self.mode.is_permit() || self.permits.is_some() {
            return self.check_permits();
        } else if !mode.is_shared() {
            return Ok(());
        }
        let refused = if self.is_fenced {
            "readers have a shared lock at the same time, so that a fencing token orders nothing: leave out one of the two"
        } else if self.windows.is_some() {
            "once_per runs once in each window, and a shared lock is had by several at the same time: leave out one of the two"
        } else if self.linger.is_some_and(|linger| linger > Duration::ZERO) {
            "linger leaves the lock to the next call of this process, and a shared one is left to nobody: leave out one of \
             the two"
        } else {
            return Ok(());
        };
        Err(LockError::configuration(refused))
    }
}

#[cfg(test)]
mod tests {
    use crate::{LockError, LockManager, LockRequest, Mode};
    use std::time::Duration;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_request_shows_that_it_is_shared() {
        assert!(format!("{:?}", LockRequest::shared("config")).contains("mode: Shared"));
        assert!(!format!("{:?}", LockRequest::shared("config").mode(Mode::Exclusive)).contains("mode"));
    }

    #[tokio::test]
    async fn what_does_not_go_with_a_shared_lock_is_refused() {
        let manager = LockManager::in_memory();
        let shared = || LockRequest::shared("config");
        let table = [
            (manager.acquire(shared().linger(SECOND)).await, "linger"),
            (manager.acquire(shared().once_per(SECOND)).await, "once_per"),
            (manager.acquire_fenced(shared()).await.map(Into::into), "fencing"),
            (manager.try_acquire_fenced(shared()).await.map(Into::into), "fencing"),
            (manager.with_fenced_lock(shared(), async |_| unreachable!("it is refused")).await, "fencing"),
        ];
        for (outcome, expected) in table {
            let error = outcome.unwrap_err();
            let is_configuration = matches!(error, LockError::Configuration { .. });
            assert!(is_configuration && error.to_string().contains(expected), "{error}");
        }
    }

    #[tokio::test]
    async fn a_manager_whose_locks_linger_keeps_no_shared_one() {
        let manager = LockManager::builder().linger(SECOND).in_memory().unwrap();
        drop(manager.acquire(LockRequest::shared("config")).await.unwrap());
        drop(manager.acquire(LockRequest::shared("config").linger(Duration::ZERO)).await.unwrap());
        assert_eq!(manager.stats().linger.started, 0);
        drop(manager.try_acquire("config").await.unwrap());
    }
}
