//! Calls for a window of time: they determine the present window by the clocks of the nodes, and acquire the lock of
//! its key.

use crate::client::acquire::{AcquireMetrics, AcquiredLock, acquire as acquire_key, is_taken, log_no_quorum, named};
use crate::client::gather::gather;
use crate::client::local_queue::LocalQueue;
use crate::client::node_handle::NodeHandle;
use crate::client::shared::Shared;
use crate::error::{LockError, NodeError, NodeFailure};
use crate::lock::{LockKey, Mode};
use crate::node::{BoxFuture, Status};
use crate::observe::events;
use crate::protocol::window::{Window, Windows, median};
use crate::request::Wait;
use crate::request::acquire_request::AcquireRequest;
use crate::request::lock_target::LockTarget;
use std::sync::Arc;
use std::time::Duration;

/// Time limit for a majority of the nodes to return the time. Also the default time to wait for the holder of the
/// window.
/// Smaller: a network delay loses a window. Larger: a call without work returns later, because a finished window looks
/// to other processes like a running one, whose key may still be released.
const PATIENCE: Duration = Duration::from_secs(1);

/// Acquires a lock, in the present window if the request has windows.
///
/// # Cancel safety
/// Like [`acquire_key`]: the questions before it leave nothing behind.
pub(crate) async fn acquire(local: &Arc<LocalQueue>, request: &AcquireRequest) -> Result<AcquiredLock, LockError> {
    match request.windows {
        None => acquire_key(local, request, None).await,
        // Boxed, so that the futures of calls without windows stay small.
        Some(windows) => Box::pin(acquire_window(local, request.clone(), windows)).await,
    }
}

async fn acquire_window(
    local: &Arc<LocalQueue>,
    mut request: AcquireRequest,
    windows: Windows,
) -> Result<AcquiredLock, LockError> {
    let shared = local.shared();
    let mut asked = AcquireMetrics::begin(shared, &request);
    let key = match check(shared, &request, windows) {
        Ok(key) => key,
        Err(error) => return asked.refuse(error),
    };
    let (place, label) = (request.place, request.label);
    // Read before the nodes are asked, so that it is not later than their times.
    let begun = shared.clock.now();
    let named = || named(shared, (&key, Mode::Exclusive), place, label);
    // The nodes determine the window, so that all processes agree on it.
    let time = match time(shared, &key).await {
        Ok(time) => time,
        Err(error) => {
            log_no_quorum(shared, named(), &error);
            return asked.refuse(error);
        }
    };
    let window = windows.at(time);
    // If the process was paused until after that time, the key of a finished window may have expired.
    asked.latest = Some(begun.after(window.limit()));
    let taken = || {
        events::window_skipped(named(), window.index, window.ends_in);
        LockError::WindowTaken { key: key.clone(), window: window.index, ends_in: window.ends_in }
    };
    // The key of the window stays taken after the body, until no clock can be in this window.
    request.what = LockTarget::Key(key.in_window(window.index));
    request.wait = Some(wait(request.wait, window));
    request.hold.window_rest = Some(window.rest());
    acquire_key(local, &request, Some(asked)).await.map_err(|error| if is_taken(&error) { taken() } else { error })
}

/// Returns the key of the windows.
///
/// # Errors
/// [`LockError::Configuration`] for options that cannot be combined with windows.
fn check(shared: &Shared, request: &AcquireRequest, windows: Windows) -> Result<LockKey, LockError> {
    windows.check()?;
    let parts = request.parts(&shared.namespace)?;
    let refused = if request.is_reentrant {
        "once_per runs once in each window, and reentrant would let a nested call run in it again: keep one"
    } else if request.hold.min_hold.is_some() {
        "once_per and min_hold are two ways to keep a key taken: keep one"
    } else if request.is_fenced {
        "once_per has a key for each window, and fencing tokens grow only within one key: leave out one of the two"
    } else if matches!(request.wait, Some(Wait::None | Wait::For(Duration::ZERO))) {
        "once_per needs a wait: of several calls that start at the same moment, each could find a node taken by \
         another one, and all would give up"
    } else {
        return Ok(parts.key());
    };
    Err(LockError::configuration(refused))
}

/// Returns the time to wait for the holder of the window: never longer than its key is certainly taken.
fn wait(wanted: Option<Wait>, window: Window) -> Wait {
    match wanted {
        None | Some(Wait::None) => Wait::For(PATIENCE.min(window.period() / 4)),
        Some(Wait::For(wait)) => Wait::For(wait.min(window.limit())),
        Some(Wait::Forever) => Wait::For(window.limit()),
    }
}

/// Returns the time since 1970: the median of the nodes that answer first, at least a majority.
///
/// # Errors
/// [`LockError::NoQuorum`] if fewer have answered in time.
async fn time(shared: &Shared, key: &LockKey) -> Result<Duration, LockError> {
    if shared.is_starting() {
        shared.started(Wait::None).await;
    }
    let needed = shared.quorum.needed;
    let clocks = shared.nodes.iter().map(|node| clock(node, key)).collect();
    let clocks = gather(clocks, PATIENCE, |clocks| times(clocks).count() >= needed).await;
    let mut told: Vec<_> = times(&clocks).collect();
    if told.len() >= needed
        && let Some(time) = median(&mut told)
    {
        return Ok(time);
    }
    // A timeout is not an error here: the causes report the missing node.
    let causes = shared.nodes.iter().zip(clocks).filter_map(|(node, clock)| failure(node, clock));
    Err(shared.no_quorum(Some(key), causes.collect()))
}

/// Returns the time of `node`, which is asked as soon as there is a connection.
fn clock<'n>(node: &'n NodeHandle, key: &'n LockKey) -> BoxFuture<'n, Result<Duration, NodeError>> {
    Box::pin(async move {
        node.node().wait_until_up(key).await;
        node.node().time().await
    })
}

fn times(clocks: &[Option<Result<Duration, NodeError>>]) -> impl Iterator<Item = Duration> {
    clocks.iter().flatten().filter_map(|time| time.as_ref().ok().copied())
}

/// Returns the reason that `node` has not returned its time, if it has not.
fn failure(node: &NodeHandle, clock: Option<Result<Duration, NodeError>>) -> Option<NodeFailure> {
    let error = match (clock, node.status()) {
        (Some(Ok(_)), _) => return None,
        (Some(Err(error)), _) | (None, Status::Down(error) | Status::Starting(error)) => error,
        (None, Status::Up) => NodeError::TimedOut(PATIENCE),
    };
    Some(NodeFailure { node: node.label().into(), error })
}

#[cfg(test)]
mod tests {
    use crate::{LockError, LockManager, LockRequest, OrderCheck, Wait};
    use std::collections::BTreeMap;
    use std::time::Duration;
    use tokio::time::{advance, sleep};

    const PERIOD: Duration = Duration::from_secs(900);

    fn request() -> LockRequest {
        LockRequest::new("report").once_per(PERIOD)
    }

    fn window_of(error: &LockError) -> i64 {
        match error {
            LockError::WindowTaken { key, window, .. } if key.as_str() == "report" => *window,
            other => panic!("a window that is taken expected: {other:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn each_window_runs_exactly_once() {
        let manager = LockManager::in_memory();
        let mut runs = BTreeMap::<String, u32>::new();
        for _ in 0..30 {
            match manager.acquire(request()).await {
                Ok(guard) => *runs.entry(guard.key().to_string()).or_default() += 1,
                Err(error) => assert!(runs.contains_key(&format!("report@{}", window_of(&error))), "{error}"),
            }
            advance(PERIOD / 10).await;
        }
        assert!((3..=4).contains(&runs.len()) && runs.values().all(|runs| *runs == 1), "{runs:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn reopened_window_is_run_by_the_next_caller() {
        let manager = LockManager::in_memory();
        let first = manager.acquire(request()).await.unwrap();
        let waiting = tokio::spawn({
            let manager = manager.clone();
            async move { manager.acquire(request()).await }
        });
        sleep(Duration::from_millis(10)).await;
        first.reopen_window();
        drop(first);
        let second = waiting.await.unwrap().unwrap();
        drop(second);
        window_of(&manager.acquire(request()).await.unwrap_err());
    }

    /// The documented time: a second, in virtual time, or the wait of the call.
    #[tokio::test(start_paused = true)]
    async fn call_for_a_completed_window_fails_only_after_its_wait() {
        let manager = LockManager::in_memory();
        drop(manager.acquire(request()).await.unwrap());
        for (request, wait) in
            [(request(), super::PATIENCE), (request().wait(Duration::from_millis(100)), Duration::from_millis(100))]
        {
            let begun = tokio::time::Instant::now();
            window_of(&manager.acquire(request).await.unwrap_err());
            let waited = begun.elapsed();
            assert!(waited >= wait && waited < wait * 2, "{waited:?} of {wait:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn reopen_window_has_no_effect_on_an_ordinary_lock() {
        let manager = LockManager::in_memory();
        let guard = manager.acquire(LockRequest::new("report").min_hold(PERIOD)).await.unwrap();
        guard.reopen_window();
        drop(guard);
        assert!(manager.try_acquire("report").await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn wait_forever_does_not_acquire_a_completed_window() {
        let manager = LockManager::in_memory();
        drop(manager.acquire(request()).await.unwrap());
        let error = manager.acquire(request().wait(Wait::Forever)).await.unwrap_err();
        window_of(&error);
        assert!(error.is_contended(), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn window_denied_by_the_order_check_stays_available() {
        let manager = LockManager::builder().order_check(OrderCheck::Deny).in_memory().unwrap();
        let window = async || manager.acquire(request()).await;
        let order = async || manager.acquire("order:7").await;
        let guard = window().await.unwrap();
        drop(guard.scope(order()).await.unwrap());
        drop(guard);
        advance(PERIOD).await;
        let guard = order().await.unwrap();
        let error = guard.scope(window()).await.unwrap_err();
        assert!(matches!(error, LockError::WouldDeadlock { .. }), "{error}");
    }

    #[tokio::test]
    async fn options_that_conflict_with_windows_are_refused() {
        let manager = LockManager::in_memory();
        let table = [
            (request().min_hold(PERIOD), "two ways"),
            (request().reentrant(), "run in it again"),
            (request().wait(Wait::None), "needs a wait"),
            (request().wait(Duration::ZERO), "needs a wait"),
            (LockRequest::new("report").once_per(Duration::ZERO), "too short"),
        ];
        for (request, expected) in table {
            let error = manager.acquire(request).await.unwrap_err();
            assert!(
                matches!(error, LockError::Configuration { .. }) && error.to_string().contains(expected),
                "{error}"
            );
        }
        let error = manager.acquire(request().fencing()).await.unwrap_err().to_string();
        assert!(error.contains("fencing"), "{error}");
        let error = manager.acquire(LockRequest::new("").once_per(PERIOD)).await.unwrap_err();
        assert!(matches!(error, LockError::InvalidKey { .. }), "{error}");
    }
}
