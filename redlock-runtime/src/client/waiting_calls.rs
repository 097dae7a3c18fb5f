//! Number of calls of one manager that wait for each key, for the limit
//! [`max_waiting`](crate::LockManagerBuilder::max_waiting). Without a limit, nothing is counted.

use crate::lock::LockKey;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counters of the keys with waiting calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitingCalls(Arc<Mutex<HashMap<Arc<str>, usize>>>);

impl WaitingCalls {
    /// Counts a call that waits for `key`. Returns `None` if `limit` calls wait for it already.
    pub(crate) fn begin(&self, key: &LockKey, limit: usize) -> Option<WaitingCall> {
        let name = key.shared_name();
        let mut counters = self.counters();
        let counter = counters.entry(Arc::clone(&name)).or_default();
        if *counter >= limit {
            return None;
        }
        *counter += 1;
        drop(counters);
        Some(WaitingCall { calls: self.clone(), name })
    }

    fn counters(&self) -> MutexGuard<'_, HashMap<Arc<str>, usize>> {
        // Code under this mutex cannot panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One counted call. It is no longer counted after this value is dropped.
#[derive(Debug)]
pub(crate) struct WaitingCall {
    calls: WaitingCalls,
    name: Arc<str>,
}

impl Drop for WaitingCall {
    fn drop(&mut self) {
        let mut counters = self.calls.counters();
        let Some(counter) = counters.get_mut(&self.name) else { return };
        *counter -= 1;
        if *counter == 0 {
            counters.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{LockError, LockManager, LockRequest};
    use std::time::Duration;
    use tokio::task::JoinSet;

    /// Number of calls for the same locks, beside their holder.
    const CALLS: usize = 10;
    const LIMIT: usize = 2;
    type Request = fn() -> LockRequest;

    /// In virtual time.
    const PATIENCE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn calls_beyond_max_waiting_fail_at_once_and_the_others_are_served() {
        // One more call waits for permits: it waits in the admission lock on behalf of the others.
        let table: [(&str, Request, Request, usize); 4] = [
            ("exclusive", || LockRequest::new("a"), || LockRequest::new("a"), LIMIT),
            ("permits", || LockRequest::new("a").permits(1), || LockRequest::new("a").permits(1), LIMIT + 1),
            ("several keys", || LockRequest::all(["a", "b"]), || LockRequest::all(["a", "b"]), LIMIT),
            ("readers", || LockRequest::new("a"), || LockRequest::shared("a"), LIMIT),
        ];
        for (kind, of_holder, request, served) in table {
            let manager = LockManager::builder().max_waiting(LIMIT).in_memory().unwrap();
            let holder = manager.acquire(of_holder()).await.unwrap();
            let mut calls = JoinSet::new();
            for _ in 0..CALLS {
                let manager = manager.clone();
                calls.spawn(async move { manager.acquire(request().wait(PATIENCE)).await.map(drop) });
            }
            for _ in 0..CALLS - served {
                let error = calls.join_next().await.unwrap().unwrap().unwrap_err();
                let LockError::TooManyWaiting { ref key, limit: LIMIT } = error else { panic!("{kind}: {error}") };
                assert_eq!(key.is_several(), kind == "several keys");
                assert!(error.is_contended() && error.to_string().contains("the limit is 2"), "{error}");
            }
            let error = manager.try_acquire(request()).await.unwrap_err();
            assert!(matches!(error, LockError::Contended { .. }), "{kind}: a call that does not wait: {error}");
            drop(holder);
            while let Some(served) = calls.join_next().await {
                served.unwrap().unwrap_or_else(|error| panic!("{kind}: {error}"));
            }
            assert!(manager.shared().waiting_calls.counters().is_empty(), "{kind}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn cancelled_calls_are_not_counted() {
        let manager = LockManager::builder().max_waiting(1).in_memory().unwrap();
        let _holder = manager.acquire("a").await.unwrap();
        let call = || {
            let manager = manager.clone();
            tokio::spawn(async move { manager.acquire(LockRequest::new("a").wait(PATIENCE)).await })
        };
        let first = call();
        let second = call().await.unwrap().unwrap_err();
        assert!(matches!(second, LockError::TooManyWaiting { .. }), "{second}");
        first.abort();
        assert!(first.await.unwrap_err().is_cancelled());
        assert!(manager.shared().waiting_calls.counters().is_empty());
    }

    #[tokio::test]
    async fn limit_of_zero_is_refused() {
        let error = LockManager::builder().max_waiting(0).in_memory().unwrap_err();
        assert!(error.to_string().contains("max_waiting"), "{error}");
    }
}
