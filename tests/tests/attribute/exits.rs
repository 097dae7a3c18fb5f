//! Every exit of a body releases the lock.
#![allow(deprecated, reason = "one key for all: what is tested is something else")]

use crate::is_free;
use redlock_runtime::{LockError, LockManager, distributed_lock};
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task;

#[derive(Clone, Copy, Debug)]
enum Exit {
    Value,
    Return,
    QuestionMark,
    Error,
    Panic,
    Never,
}

#[derive(Debug)]
enum MyError {
    Lock(LockError),
    Mine,
}

impl From<LockError> for MyError {
    fn from(error: LockError) -> Self {
        Self::Lock(error)
    }
}

#[distributed_lock(key = "exit", wait = none)]
async fn leave(exit: Exit, entered: Option<oneshot::Sender<()>>) -> Result<u8, MyError> {
    if let Some(entered) = entered {
        entered.send(()).unwrap();
    }
    task::yield_now().await;
    match exit {
        Exit::Value => {}
        Exit::Return => return Ok(2),
        Exit::QuestionMark => Err(MyError::Mine)?,
        Exit::Error => return Err(MyError::Mine),
        Exit::Panic => panic!("the body"),
        Exit::Never => std::future::pending().await,
    }
    Ok(1)
}

#[tokio::test]
async fn values_and_errors_pass_through() {
    let manager = LockManager::in_memory();
    for (exit, expected) in
        [(Exit::Value, Some(1)), (Exit::Return, Some(2)), (Exit::QuestionMark, None), (Exit::Error, None)]
    {
        let result = manager.scope(leave(exit, None)).await;
        assert_eq!(result.ok(), expected, "{exit:?}");
        assert!(is_free(&manager, "exit").await, "{exit:?}");
    }
}

#[tokio::test]
async fn panic_releases_the_lock() {
    let manager = LockManager::in_memory();
    let scoped = manager.clone();
    let panicked = task::spawn(async move { scoped.scope(leave(Exit::Panic, None)).await }).await;
    assert!(panicked.unwrap_err().is_panic());
    assert!(is_free(&manager, "exit").await);
}

#[tokio::test]
async fn dropped_call_releases_the_lock() {
    let manager = LockManager::in_memory();
    let (entered, is_inside) = oneshot::channel();
    let mut call = Box::pin(manager.scope(leave(Exit::Never, Some(entered))));
    tokio::select! {
        _ = &mut call => unreachable!(),
        inside = is_inside => inside.unwrap(),
    }
    assert!(!is_free(&manager, "exit").await);
    drop(call);
    assert!(is_free(&manager, "exit").await);
}

#[tokio::test]
async fn unpolled_call_acquires_no_lock() {
    let manager = LockManager::in_memory();
    drop(manager.scope(leave(Exit::Value, None)));
    assert!(is_free(&manager, "exit").await);
}

#[tokio::test]
async fn contended_call_does_not_run_its_body() {
    let manager = LockManager::in_memory();
    let guard = manager.acquire("exit").await.unwrap();
    let (entered, mut is_inside) = oneshot::channel();
    let error = manager.scope(leave(Exit::Value, Some(entered))).await.unwrap_err();
    assert!(matches!(error, MyError::Lock(LockError::Contended { .. })), "{error:?}");
    assert!(is_inside.try_recv().is_err());
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn lock_loss_stops_the_body() {
    #[distributed_lock(key = "short", ttl = 100ms, renew = false)]
    async fn slow() -> Result<(), LockError> {
        tokio::time::sleep(Duration::from_secs(3600)).await;
        Ok(())
    }

    let manager = LockManager::in_memory();
    let error = manager.scope(slow()).await.unwrap_err();
    assert!(matches!(error, LockError::Lost { .. }), "{error:?}");
}

#[tokio::test]
async fn call_without_a_manager_does_not_run_its_body() {
    let ran = AssertUnwindSafe(leave(Exit::Panic, None));
    let error = ran.0.await.unwrap_err();
    assert!(matches!(error, MyError::Lock(LockError::NotInstalled)), "{error:?}");
}
