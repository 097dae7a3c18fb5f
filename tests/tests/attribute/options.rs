//! Effect of each option.
#![allow(deprecated, reason = "one key for all: what is tested is something else")]

use crate::is_free;
use redlock_runtime::{FromLockError, LockError, LockManager, LossCause, Wait, distributed_lock};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

const LEASE: Duration = Duration::from_secs(2);

/// A method for each way to write a time. The body never ends, so the lease or the wait does.
struct Times {
    lease: Duration,
}

macro_rules! never_ends {
    // One more level for each method, because all of them use the same names.
    ($names:tt: $($name:ident($($time:tt)*);)*) => {
        $(never_ends!(@one $names $name($($time)*));)*
    };
    (@one ($self:ident, $seconds:ident, $lease:ident) $name:ident($($time:tt)*)) => {
        #[distributed_lock(key = "time", $($time)*)]
        async fn $name(&$self, $seconds: u64, $lease: Duration) -> Result<(), LockError> {
            let _ = ($seconds, $lease);
            std::future::pending().await
        }
    };
}

impl Times {
    const LEASE: Duration = Duration::from_secs(3);

    const fn lease(&self) -> Duration {
        self.lease
    }

    never_ends! { (self, seconds, lease):
        ttl_seconds(ttl = 30, renew = false);
        ttl_quoted(ttl = "1m30s", renew = false);
        ttl_with_unit(ttl = 500ms, renew = false);
        ttl_constant(ttl = LEASE, renew = false);
        ttl_associated(ttl = Self::LEASE, renew = false);
        ttl_expression(ttl = Duration::from_secs(seconds), renew = false);
        ttl_argument(ttl = lease, renew = false);
        ttl_method(ttl = self.lease(), renew = false);
        max_hold_seconds(max_hold = 40);
        max_hold_with_unit(ttl = 500ms, max_hold = 250ms, renew = true);
        max_hold_constant(max_hold = LEASE);
        max_hold_expression(max_hold = Duration::from_secs(seconds));
        wait_seconds(wait = 4);
        wait_quoted(wait = "1m");
        wait_constant(wait = LEASE);
        wait_expression(wait = Duration::from_secs(seconds));
        wait_argument(wait = lease);
        wait_none(wait = none);
        wait_zero(wait = 0);
        wait_value(wait = Wait::None);
        wait_forever(wait = forever);
    }
}

#[tokio::test(start_paused = true)]
async fn ttl_option_sets_the_lease() {
    let manager = LockManager::in_memory();
    let t = Times { lease: LEASE * 3 };
    macro_rules! lasts {
        ($($name:ident: $expected:expr),*) => {$(
            let started = Instant::now();
            let error = manager.scope(t.$name(7, LEASE * 2)).await.unwrap_err();
            let (elapsed, expected) = (started.elapsed(), Duration::from_millis($expected));
            assert!(matches!(error, LockError::Lost { .. }), "{}: {error}", stringify!($name));
            // Drift is subtracted.
            assert!(elapsed <= expected && elapsed >= expected.mul_f64(0.97), "{}: {elapsed:?}", stringify!($name));
        )*};
    }
    lasts!(
        ttl_seconds: 30_000, ttl_quoted: 90_000, ttl_with_unit: 500, ttl_constant: 2000, ttl_associated: 3000,
        ttl_expression: 7000, ttl_argument: 4000, ttl_method: 6000
    );
}

#[tokio::test(start_paused = true)]
async fn max_hold_limits_the_body() {
    let manager = LockManager::in_memory();
    let t = Times { lease: LEASE };
    macro_rules! lasts {
        ($($name:ident: $expected:expr),*) => {$(
            let started = Instant::now();
            let error = manager.scope(t.$name(7, LEASE)).await.unwrap_err();
            let (elapsed, expected) = (started.elapsed(), Duration::from_millis($expected));
            let is_limit = matches!(error, LockError::Lost { cause: LossCause::MaxHold, .. });
            assert!(is_limit, "{}: {error}", stringify!($name));
            assert!(elapsed.abs_diff(expected) <= Duration::from_millis(1), "{}: {elapsed:?}", stringify!($name));
        )*};
    }
    lasts!(max_hold_seconds: 40_000, max_hold_with_unit: 250, max_hold_constant: 2000, max_hold_expression: 7000);
}

#[distributed_lock(key = "window", min_hold = 1h, ttl = 1, wait = none)]
async fn once_per_hour() -> Result<(), LockError> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn min_hold_keeps_the_key_locked() {
    let manager = LockManager::in_memory();
    for _ in 0..2 {
        manager.scope(once_per_hour()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(3590)).await;
        assert!(manager.scope(once_per_hour()).await.unwrap_err().is_contended());
        tokio::time::sleep(Duration::from_secs(11)).await;
    }
}

#[distributed_lock(key = "report", once_per = 15m, on_contended = skip)]
async fn once_per_quarter() -> Result<Option<u32>, LockError> {
    Ok(Some(7))
}

#[tokio::test(start_paused = true)]
async fn once_per_runs_once_in_each_window() {
    let manager = LockManager::in_memory();
    for _ in 0..3 {
        let mut runs = 0;
        // Holds for any starting time. Between the last calls of two rounds, more than one window passes, so a window begins in between.
        // Between the first and the last call of one round, less than one window passes.
        for _ in 0..16 {
            runs += u32::from(manager.scope(once_per_quarter()).await.unwrap().is_some());
            tokio::time::sleep(Duration::from_secs(59)).await;
        }
        assert!((1..=2).contains(&runs), "{runs}");
    }
}

#[distributed_lock(key = "fails", once_per = "1d", window_start = "18h", on_failure = reopen)]
async fn fails_unless(succeeds: bool) -> Result<(), LockError> {
    if succeeds { Ok(()) } else { Err(LockError::Closed) }
}

#[tokio::test(start_paused = true)]
async fn failed_body_returns_its_window() {
    let manager = LockManager::in_memory();
    for succeeds in [false, false, true] {
        assert_eq!(manager.scope(fails_unless(succeeds)).await.is_ok(), succeeds);
    }
    let error = manager.scope(fails_unless(true)).await.unwrap_err();
    assert!(matches!(error, LockError::WindowTaken { .. }), "{error}");
}

#[distributed_lock(key = "renewed", ttl = 100ms)]
async fn takes_an_hour() -> Result<(), LockError> {
    tokio::time::sleep(Duration::from_secs(3600)).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn body_may_run_longer_than_the_ttl() {
    LockManager::in_memory().scope(takes_an_hour()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn wait_option_limits_the_call() {
    let manager = LockManager::in_memory();
    let day = Duration::from_secs(24 * 3600);
    let guard = manager.acquire(redlock_runtime::LockRequest::new("time").ttl(day)).await.unwrap();
    let t = Times { lease: LEASE * 3 };
    macro_rules! waits {
        ($($name:ident: $expected:expr),*) => {$(
            let started = Instant::now();
            let error = manager.scope(t.$name(7, LEASE * 2)).await.unwrap_err();
            let (elapsed, expected) = (started.elapsed(), Duration::from_secs($expected));
            assert!(error.is_contended(), "{}: {error}", stringify!($name));
            assert_eq!(matches!(error, LockError::Contended { .. }), expected.is_zero(), "{}", stringify!($name));
            assert!(elapsed <= expected && elapsed >= expected.mul_f64(0.9), "{}: {elapsed:?}", stringify!($name));
        )*};
    }
    waits!(
        wait_seconds: 4, wait_quoted: 60, wait_constant: 2, wait_expression: 7, wait_argument: 4, wait_none: 0,
        wait_zero: 0, wait_value: 0
    );
    assert!(timeout(LEASE * 300, manager.scope(t.wait_forever(0, LEASE))).await.is_err());
    drop(guard);
}

/// Shared state as in web frameworks.
struct State {
    locks: Arc<LockManager>,
}

impl State {
    fn locks(&self) -> &LockManager {
        &self.locks
    }

    #[distributed_lock(key = "field", manager = self.locks)]
    async fn field(&self) -> Result<(bool, bool), LockError> {
        Ok((is_free(&self.locks, "field").await, is_free(&LockManager::current()?, "field").await))
    }

    #[distributed_lock(key = "method", manager = self.locks())]
    async fn method(&self) -> Result<(bool, bool), LockError> {
        Ok((is_free(&self.locks, "method").await, is_free(&LockManager::current()?, "method").await))
    }
}

#[distributed_lock(key = "argument", manager = state.locks)]
async fn argument(state: &State) -> Result<(bool, bool), LockError> {
    Ok((is_free(&state.locks, "argument").await, is_free(&LockManager::current()?, "argument").await))
}

#[distributed_lock(key = "temporary", manager = (*locks).clone())]
async fn temporary(locks: Arc<LockManager>) -> Result<(bool, bool), LockError> {
    Ok((is_free(&locks, "temporary").await, is_free(&LockManager::current()?, "temporary").await))
}

#[distributed_lock(key = "future", manager = state.locks)]
fn future(state: &State) -> impl Future<Output = Result<(bool, bool), LockError>> {
    let locks = Arc::clone(&state.locks);
    async move { Ok((is_free(&locks, "future").await, is_free(&LockManager::current()?, "future").await)) }
}

#[tokio::test]
async fn manager_option_accepts_any_expression() {
    let default = LockManager::in_memory();
    let state = State { locks: Arc::new(LockManager::in_memory()) };
    let calls = async {
        [
            state.field().await,
            state.method().await,
            argument(&state).await,
            temporary(Arc::clone(&state.locks)).await,
            future(&state).await,
        ]
    };
    for (index, result) in default.scope(calls).await.into_iter().enumerate() {
        assert_eq!(result.unwrap(), (false, true), "call {index}");
    }
}

/// The default manager is looked up when the call begins, which is the first poll of a future.
#[distributed_lock(key = "lazy")]
fn lazy() -> impl Future<Output = Result<bool, LockError>> {
    async { Ok(is_free(&LockManager::current()?, "lazy").await) }
}

#[tokio::test]
async fn default_manager_is_chosen_at_the_first_poll() {
    assert!(!LockManager::in_memory().scope(lazy()).await.unwrap());
}

#[distributed_lock(key = "handled", wait = none, on_error = |error| if error.is_contended() { "busy" } else { "down" })]
async fn closure() -> &'static str {
    "done"
}

fn describe(error: LockError) -> Option<LockError> {
    Some(error).filter(LockError::is_contended)
}

#[distributed_lock(key = "handled", wait = none, on_error = describe)]
async fn path() -> Option<LockError> {
    None
}

#[distributed_lock(key = "handled", ttl = 100ms, renew = false, on_error = |error| matches!(error, LockError::Lost { .. }))]
async fn lost() -> bool {
    std::future::pending().await
}

#[tokio::test(start_paused = true)]
async fn on_error_provides_the_output() {
    let manager = LockManager::in_memory();
    assert_eq!(manager.scope(closure()).await, "done");
    assert!(manager.scope(path()).await.is_none());
    assert!(manager.scope(lost()).await);
    let _guard = manager.acquire("handled").await.unwrap();
    assert_eq!(manager.scope(closure()).await, "busy");
    assert!(manager.scope(path()).await.is_some());
    assert_eq!(closure().await, "down");
}

/// A return type of the user's crate.
#[derive(Debug, PartialEq)]
enum Answer {
    Done,
    Locked,
}

impl FromLockError for Answer {
    fn from_lock_error(_: LockError) -> Self {
        Self::Locked
    }
}

#[distributed_lock(key = "answer", wait = none)]
async fn answer() -> Answer {
    Answer::Done
}

#[tokio::test]
async fn return_type_may_convert_the_error_itself() {
    let manager = LockManager::in_memory();
    assert_eq!(manager.scope(answer()).await, Answer::Done);
    let _guard = manager.acquire("answer").await.unwrap();
    assert_eq!(manager.scope(answer()).await, Answer::Locked);
}

#[distributed_lock(key = "session:{id}", linger = 2s, fencing, guard = lock)]
async fn append(id: u32) -> Result<u64, LockError> {
    Ok(lock.fencing_token().as_u64())
}

#[distributed_lock(key = "session:{id}", linger = 0)]
async fn close(id: u32) -> Result<(), LockError> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn linger_keeps_the_lock_for_the_next_call() {
    let manager = LockManager::builder().linger(Duration::from_secs(1)).in_memory().unwrap();
    let mut numbers = Vec::new();
    for _ in 0..5 {
        numbers.push(manager.scope(append(7)).await.unwrap());
        tokio::time::sleep(Duration::from_millis(1900)).await;
    }
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    assert_eq!(manager.stats().linger.reused, 3);
    for _ in 0..3 {
        manager.scope(close(8)).await.unwrap();
    }
    assert_eq!(manager.stats().linger.started, 4, "a zero counts more than what the manager says");
}
