//! Validation of requests for a shared lock.

use crate::error::LockError;
use crate::lock::Mode;
use crate::request::acquire_request::AcquireRequest;
use std::time::Duration;

impl AcquireRequest {
    /// Checks the options of a request. `mode` is that of all its parts together.
    ///
    /// # Errors
    /// [`LockError::Configuration`] for options that exclude a shared lock.
    pub(super) fn check_mode(&self, mode: Mode) -> Result<(), LockError> {
        if self.mode.is_permit() || self.permits.is_some() {
            return self.check_permits();
        } else if !mode.is_shared() {
            return Ok(());
        }
        let refused = if self.is_fenced {
            "several readers hold a shared lock at the same time, so a fencing token cannot order them: leave out one \
             of the two"
        } else if self.windows.is_some() {
            "once_per runs once in each window, and several callers hold a shared lock at the same time: leave out \
             one of the two"
        } else if self.linger.is_some_and(|linger| linger > Duration::ZERO) {
            "linger keeps the lock for the next call of this process, and a shared lock cannot be kept: leave out one \
             of the two"
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
    fn debug_of_request_shows_shared_mode() {
        assert!(format!("{:?}", LockRequest::shared("config")).contains("mode: Shared"));
        assert!(!format!("{:?}", LockRequest::shared("config").mode(Mode::Exclusive)).contains("mode"));
    }

    #[tokio::test]
    async fn options_that_conflict_with_a_shared_lock_are_refused() {
        let manager = LockManager::in_memory();
        let shared = || LockRequest::shared("config");
        let table = [
            (manager.acquire(shared().linger(SECOND)).await, "linger"),
            (manager.acquire(shared().once_per(SECOND)).await, "once_per"),
            (manager.acquire(shared().fencing()).await.map(Into::into), "fencing"),
            (manager.try_acquire(shared().fencing()).await.map(Into::into), "fencing"),
            (manager.with_lock(shared().fencing(), async |_| unreachable!("it is refused")).await, "fencing"),
        ];
        for (outcome, expected) in table {
            let error = outcome.unwrap_err();
            let is_configuration = matches!(error, LockError::Configuration { .. });
            assert!(is_configuration && error.to_string().contains(expected), "{error}");
        }
    }

    #[tokio::test]
    async fn shared_lock_does_not_linger_by_the_manager_default() {
        let manager = LockManager::builder().linger(SECOND).in_memory().unwrap();
        drop(manager.acquire(LockRequest::shared("config")).await.unwrap());
        drop(manager.acquire(LockRequest::shared("config").linger(Duration::ZERO)).await.unwrap());
        assert_eq!(manager.stats().linger.started, 0);
        drop(manager.try_acquire("config").await.unwrap());
    }
}
