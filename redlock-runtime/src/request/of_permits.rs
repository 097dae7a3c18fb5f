//! Validation of requests for a permit.

use crate::error::LockError;
use crate::lock::Mode;
use crate::lock::parts::Parts;
use crate::request::acquire_request::AcquireRequest;
use std::time::Duration;

/// Maximum number of permits of one key. Every node returns all holders to every call that enters.
const MOST_PERMITS: u32 = 1000;

impl AcquireRequest {
    /// Returns the mode of the request for `parts`: `Permit`, or the mode of the parts.
    pub(crate) fn mode_of(&self, parts: &Parts) -> Mode {
        if self.mode.is_permit() { Mode::Permit } else { parts.mode() }
    }

    /// Checks a request for permits.
    ///
    /// # Errors
    /// [`LockError::Configuration`] for options that exclude permits.
    pub(super) fn check_permits(&self) -> Result<(), LockError> {
        let refused = match self.permits {
            None => "Mode::Permit does not set the number of permits: write .permits(n) instead of the mode",
            Some(0) => "with 0 permits no call can enter: allow at least 1",
            Some(many) if many > MOST_PERMITS => {
                "more than 1000 permits are not supported, because every call reads the list of holders: use several \
                 keys"
            }
            _ if self.key().is_none() => {
                "permits and several keys or a path are two kinds of lock: leave out one of the two"
            }
            _ if !self.mode.is_permit() => "permits and a mode are two kinds of lock: leave out one of the two",
            _ if self.is_fenced => {
                "several callers hold permits at the same time, so a fencing token cannot order them: leave out one \
                 of the two"
            }
            _ if self.windows.is_some() => {
                "once_per runs once in each window, and several callers hold permits at the same time: leave out one \
                 of the two"
            }
            _ if self.linger.is_some_and(|linger| linger > Duration::ZERO) => {
                "linger keeps the lock for the next call of this process, and a permit cannot be kept: leave out one \
                 of the two"
            }
            _ => return Ok(()),
        };
        Err(LockError::configuration(refused))
    }
}

#[cfg(test)]
mod tests {
    use crate::guard::hold::hold;
    use crate::{LockError, LockManager, LockRequest, Mode};
    use std::time::Duration;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn debug_of_request_shows_its_permits() {
        assert!(format!("{:?}", LockRequest::new("export").permits(3)).contains("permits: 3"));
        assert!(!format!("{:?}", LockRequest::new("export")).contains("permits"));
    }

    #[tokio::test]
    async fn options_that_conflict_with_permits_are_refused() {
        let manager = LockManager::in_memory();
        let permits = || LockRequest::new("export").permits(2);
        let table = [
            (manager.acquire(permits().linger(SECOND)).await, "linger"),
            (manager.acquire(permits().once_per(SECOND)).await, "once_per"),
            (manager.acquire(permits().mode(Mode::Shared)).await, "two kinds"),
            (manager.acquire(LockRequest::shared("export").permits(2)).await, "two kinds"),
            (manager.acquire(LockRequest::new("export").mode(Mode::Permit)).await, "number of permits"),
            (manager.acquire(LockRequest::all(["export", "import"]).permits(2)).await, "several keys"),
            (manager.acquire(LockRequest::path("/export").permits(2)).await, "a path"),
            (manager.acquire(permits().permits(0)).await, "no call can enter"),
            (manager.acquire(permits().permits(1001)).await, "1000"),
            (manager.acquire(permits().fencing()).await.map(Into::into), "fencing"),
        ];
        for (outcome, expected) in table {
            let error = outcome.unwrap_err();
            let is_configuration = matches!(error, LockError::Configuration { .. });
            assert!(is_configuration && error.to_string().contains(expected), "{error}");
        }
    }

    #[tokio::test]
    async fn permit_limit_is_that_of_each_request() {
        let manager = LockManager::in_memory();
        let with = |permits| LockRequest::new("export").permits(permits);
        let one = manager.acquire(with(2)).await.unwrap();
        let _two = manager.acquire(with(2)).await.unwrap();
        assert_eq!(one.mode(), Mode::Permit);
        assert!(manager.try_acquire(with(2)).await.unwrap_err().is_contended());
        let _three = manager.try_acquire(with(3)).await.unwrap();
        drop(one);
        assert!(manager.try_acquire(with(2)).await.unwrap_err().is_contended());
        let _four = manager.try_acquire(with(3)).await.unwrap();
        assert!(manager.try_acquire("export").await.unwrap_err().is_contended(), "alone");
    }

    #[tokio::test(start_paused = true)]
    async fn released_permit_wakes_the_next_waiter() {
        let manager = LockManager::in_memory();
        let request = || LockRequest::new("export").permits(1);
        let held = manager.acquire(request()).await.unwrap();
        let begun = tokio::time::Instant::now();
        let ((), next) = tokio::join!(
            async {
                tokio::time::sleep(SECOND / 10).await;
                drop(held);
            },
            manager.acquire(request().wait(SECOND * 60)),
        );
        assert!(next.unwrap().is_held());
        // Without the wake-up, a poll would have found the permit later.
        assert!(begun.elapsed() < SECOND / 2, "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn permit_wait_times_out_and_names_the_key() {
        let manager = LockManager::in_memory();
        let request = || LockRequest::new("export").permits(1);
        let _held = manager.acquire(request()).await.unwrap();
        let error = manager.acquire(request().wait(SECOND)).await.unwrap_err();
        assert!(matches!(&error, LockError::TimedOut { key, .. } if key.as_str() == "export"), "{error}");
        let _alone = manager.acquire("other").await.unwrap();
        let error = manager.acquire(LockRequest::new("other").permits(2).wait(SECOND)).await.unwrap_err();
        assert!(matches!(&error, LockError::TimedOut { key, .. } if key.as_str() == "other"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn nested_call_fails_if_only_its_caller_can_release_the_permit() {
        let manager = LockManager::in_memory();
        let request = |permits| LockRequest::new("export").permits(permits).wait(SECOND);
        let nested = |permits| manager.with_lock(request(permits), async |_| Ok::<_, LockError>(()));
        assert!(manager.with_lock(request(2), async |_| nested(2).await).await.is_ok());
        // A body with access to its guard may release the permit meanwhile. The call waits, and a warning is logged.
        let error = manager.with_lock(request(1), async |_| nested(1).await).await.unwrap_err();
        assert!(matches!(error, LockError::TimedOut { .. }), "{error}");
        // A body without access to its guard cannot release the permit.
        let held = manager.acquire(request(1)).await.unwrap();
        let error = hold(&held, nested(1)).await.unwrap().unwrap_err();
        assert!(matches!(error, LockError::WouldDeadlock { .. }), "{error}");
        assert!(hold(&held, nested(2)).await.unwrap().is_ok());
        drop(held);
        let entering = || manager.with_lock(request(1).reentrant(), async |_| Ok::<_, LockError>(()));
        assert!(manager.with_lock(request(1), async |_| entering().await).await.is_ok());
    }
}
