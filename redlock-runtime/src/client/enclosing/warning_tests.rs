//! Tests of the warnings about nested calls that wait for each other.

use crate::{LockError, LockGuard, LockManager, LockRequest};
use redlock_tests::{Warnings, subscribe};
use std::time::Duration;
use tokio::time::sleep;

const SECOND: Duration = Duration::from_secs(1);

fn inner() -> LockRequest {
    LockRequest::new("order:7").wait(5 * SECOND).reentrant()
}

#[tokio::test(start_paused = true)]
async fn warning_about_a_nested_call_behind_its_own_guard_names_both_lines() {
    let warnings = Warnings::default();
    let _subscribed = subscribe(warnings.clone());
    let manager = LockManager::in_memory();
    let body = async |_: &LockGuard| {
        drop(manager.acquire(inner()).await?);
        let (line, view) = (line!(), manager.acquire(inner()).await?);
        let error = manager.acquire(inner()).await.unwrap_err();
        assert!(matches!(error, LockError::TimedOut { .. }), "{error}");
        // In a scope, the waiting call is a call of the view.
        view.scope(manager.acquire(inner())).await.map(drop)?;
        Ok::<_, LockError>(line)
    };
    let line = manager.with_lock("order:7", body).await.unwrap();
    let warnings = warnings.take();
    assert_eq!(warnings.len(), 1, "{warnings:#?}");
    for line in [line, line + 1] {
        assert!(warnings.iter().all(|text| text.contains(&format!("warning_tests.rs:{line}"))), "{warnings:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn branches_that_take_turns_cause_no_warning() {
    let warnings = Warnings::default();
    let _subscribed = subscribe(warnings.clone());
    let manager = LockManager::in_memory();
    let rests = async |_: &LockGuard| {
        sleep(SECOND / 4).await;
        Ok::<_, LockError>(())
    };
    let branches = async |_: &LockGuard| {
        let branch = || manager.with_lock(inner(), rests);
        let (first, second, third) = tokio::join!(branch(), branch(), branch());
        first.and(second).and(third)
    };
    manager.with_lock("order:7", branches).await.unwrap();
    assert_eq!(warnings.take(), [""; 0]);
}
