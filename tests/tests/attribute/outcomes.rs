//! Return values if the lock is contended, lost or released, and the options that set them.
#![allow(deprecated, reason = "one key for all: what is tested is something else")]

use crate::is_free;
use redlock_runtime::{FencingToken, LockError, LockGuard, LockManager, distributed_lock};
use redlock_tests::{Flow, PATIENCE, Proxy, RedisServer, eventually};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

#[distributed_lock(key = "skip", wait = none, on_contended = skip, on_error = |error| unreachable!("{error}"))]
async fn skip_option() -> Option<u8> {
    Some(1)
}

#[distributed_lock(key = "skip", wait = none, on_contended = skip, on_error = |error| unreachable!("{error}"))]
async fn skip_unit(ran: &mut bool) {
    *ran = true;
}

#[distributed_lock(key = "skip", wait = none, on_contended = skip)]
async fn skip_result_of_option() -> Result<Option<u8>, LockError> {
    Ok(Some(1))
}

#[distributed_lock(key = "skip", wait = none, on_contended = skip)]
async fn skip_result_of_unit(ran: &mut bool) -> Result<(), LockError> {
    *ran = true;
    Ok(())
}

#[distributed_lock(key = "skip", wait = 10ms, on_contended = skip)]
fn skip_future() -> impl Future<Output = Result<Option<u8>, LockError>> {
    async { Ok(Some(1)) }
}

#[tokio::test]
async fn contended_call_is_skipped() {
    let manager = LockManager::in_memory();
    for is_taken in [false, true] {
        let guard = if is_taken { Some(manager.acquire("skip").await.unwrap()) } else { None };
        let expected = (!is_taken).then_some(1);
        let (mut first, mut second) = (false, false);
        assert_eq!(manager.scope(skip_option()).await, expected);
        manager.scope(skip_unit(&mut first)).await;
        assert_eq!(manager.scope(skip_result_of_option()).await.unwrap(), expected);
        manager.scope(skip_result_of_unit(&mut second)).await.unwrap();
        assert_eq!(manager.scope(skip_future()).await.unwrap(), expected);
        assert_eq!((first, second), (!is_taken, !is_taken));
        drop(guard);
    }
}

#[tokio::test]
async fn other_errors_than_contention_are_not_skipped() {
    // Without an installed manager, the error does not concern other holders.
    assert!(matches!(skip_result_of_option().await, Err(LockError::NotInstalled)));
    let manager = LockManager::in_memory();
    manager.shutdown().await;
    assert!(matches!(manager.scope(skip_result_of_option()).await, Err(LockError::Closed)));
}

#[derive(Debug, PartialEq)]
enum Answer {
    Done,
    Busy(String),
    Failed,
}

#[allow(clippy::needless_pass_by_value, reason = "what a handler is given")]
fn busy(error: LockError) -> Answer {
    Answer::Busy(error.to_string())
}

#[distributed_lock(key = "handled", wait = none, ttl = 100ms, renew = false, on_contended = busy, on_error = |_| Answer::Failed)]
async fn by_path(forever: bool) -> Answer {
    if forever { std::future::pending().await } else { Answer::Done }
}

#[distributed_lock(key = "handled", wait = none, on_contended = |error| if error.is_contended() { Ok(name.len()) } else { Err(error) })]
async fn by_closure(name: &str) -> Result<usize, LockError> {
    assert!(!name.is_empty());
    Ok(0)
}

#[distributed_lock(key = "handled", wait = none, on_contended = error)]
async fn by_default() -> Result<(), LockError> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn contention_handler_provides_the_output() {
    let manager = LockManager::in_memory();
    assert_eq!(manager.scope(by_path(false)).await, Answer::Done);
    assert_eq!(manager.scope(by_path(true)).await, Answer::Failed, "lost");
    assert_eq!(by_path(false).await, Answer::Failed, "not installed");
    let _guard = manager.acquire("handled").await.unwrap();
    let Answer::Busy(message) = manager.scope(by_path(false)).await else { panic!("not busy") };
    assert!(message.contains("\"handled\""), "{message}");
    assert_eq!(manager.scope(by_closure("abc")).await.unwrap(), 3);
    assert!(manager.scope(by_default()).await.unwrap_err().is_contended());
}

#[distributed_lock(key = "guard:{id}", ttl = 20, guard = lock)]
async fn guarded(id: u64, manager: &LockManager) -> Result<(String, Duration), LockError> {
    let typed: &LockGuard = lock;
    assert!(typed.is_held() && !is_free(manager, lock.key().as_str()).await);
    lock.extend().await?;
    Ok((lock.key().to_string(), lock.ttl()))
}

#[distributed_lock(key = "guard:{id}", guard = lock)]
fn guarded_block(id: u64) -> impl Future<Output = Result<String, LockError>> {
    async { Ok(lock.key().to_string()) }
}

#[tokio::test]
async fn guard_is_available_in_the_body() {
    let manager = LockManager::in_memory();
    let (key, ttl) = manager.scope(guarded(7, &manager)).await.unwrap();
    assert_eq!((key.as_str(), ttl), ("guard:7", Duration::from_secs(20)));
    assert_eq!(manager.scope(guarded_block(8)).await.unwrap(), "guard:8");
    assert!(is_free(&manager, "guard:7").await && is_free(&manager, "guard:8").await);
}

#[distributed_lock(key = "fenced:{id}", guard = lock, fencing)]
async fn fenced(id: u64) -> Result<FencingToken, LockError> {
    lock.ensure_held()?;
    Ok(lock.fencing_token())
}

#[distributed_lock(key = "fenced:{id}", guard = lock, fencing, release = confirmed)]
async fn fenced_and_confirmed(id: u64) -> Result<FencingToken, LockError> {
    Ok(lock.fencing_token())
}

#[tokio::test]
async fn fencing_token_in_the_body_increases() {
    let manager = LockManager::in_memory();
    let first = manager.scope(fenced(7)).await.unwrap();
    let second = manager.scope(fenced_and_confirmed(7)).await.unwrap();
    let third = manager.scope(fenced(7)).await.unwrap();
    assert!(first < second && second < third, "{first} {second} {third}");
}

#[distributed_lock(key = "lost", ttl = 100ms, guard = lock, on_lost = continue, renew = false)]
async fn goes_on() -> Result<(bool, bool), LockError> {
    let before = lock.is_held();
    sleep(Duration::from_secs(1)).await;
    let stats = LockManager::current()?.stats().releases;
    assert_eq!(stats.expired, 1, "it is known as soon as the lock is lost");
    Ok((before, lock.is_held()))
}

#[distributed_lock(key = "lost", ttl = 100ms, on_lost = continue, renew = false)]
async fn in_time() -> Result<(), LockError> {
    sleep(Duration::from_millis(10)).await;
    Ok(())
}

#[distributed_lock(key = "lost", ttl = 100ms, guard = lock, on_lost = continue, renew = false)]
async fn gives_back() -> Result<(), LockError> {
    lock.release().await?;
    sleep(Duration::from_secs(1)).await;
    Ok(())
}

#[distributed_lock(key = "lost", ttl = 100ms, on_lost = cancel, renew = false)]
async fn stops() -> Result<(), LockError> {
    sleep(Duration::from_secs(1)).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn body_with_on_lost_continue_survives_the_loss() {
    let manager = LockManager::in_memory();
    assert_eq!(manager.scope(goes_on()).await.unwrap(), (true, false));
    assert_eq!(manager.stats().releases.expired, 1, "once");
    manager.scope(in_time()).await.unwrap();
    manager.scope(gives_back()).await.unwrap();
    assert_eq!(manager.stats().releases.expired, 1, "these have lost nothing");
    let started = Instant::now();
    assert!(matches!(manager.scope(stops()).await, Err(LockError::Lost { .. })));
    assert!(started.elapsed() < Duration::from_millis(100));
}

#[distributed_lock(key = "stock:{id}", wait = none)]
async fn reserve(id: u64) -> Result<u64, LockError> {
    Ok(id)
}

#[distributed_lock(key = "order:{id}", wait = none, on_contended = skip)]
async fn capture(id: u64, has_begun: &AtomicBool) -> Result<Option<u64>, LockError> {
    has_begun.store(true, Ordering::Relaxed);
    reserve(id).await.map(Some)
}

#[tokio::test]
async fn error_of_a_nested_locked_call_names_the_inner_key() {
    let (manager, has_begun) = (LockManager::in_memory(), AtomicBool::new(false));
    let order = manager.acquire("order:7").await.unwrap();
    assert_eq!(manager.scope(capture(7, &has_begun)).await.unwrap(), None, "skipped");
    assert!(!has_begun.load(Ordering::Relaxed));
    drop(order);
    let _stock = manager.acquire("stock:7").await.unwrap();
    let error = manager.scope(capture(7, &has_begun)).await.expect_err("what the body returns is not skipped");
    assert!(has_begun.load(Ordering::Relaxed));
    assert!(error.is_contended(), "{error:?}");
    assert_eq!(error.key(), Some(&"stock:7".into()));
}

#[distributed_lock(key = "release", manager = manager, release = confirmed)]
async fn confirmed(manager: &LockManager, proxy: &Proxy, flow: Flow, entered: &Notify) -> Result<u8, LockError> {
    proxy.replies(flow);
    entered.notify_one();
    Ok(7)
}

#[distributed_lock(key = "release", manager = manager, release = background)]
async fn in_background(manager: &LockManager, proxy: &Proxy) -> Result<u8, LockError> {
    proxy.replies(Flow::Hold);
    Ok(7)
}

async fn manager(proxy: &Proxy, node_timeout: Duration) -> LockManager {
    let manager = LockManager::builder().node(proxy.url()).node_timeout(node_timeout).build().unwrap();
    manager.ready().await.unwrap();
    manager
}

#[tokio::test]
async fn confirmed_release_waits_for_the_reply() {
    let server = RedisServer::start().await;
    let proxy = Proxy::to(&server).await;
    let manager = manager(&proxy, PATIENCE).await;
    let entered = Notify::new();
    let mut call = pin!(confirmed(&manager, &proxy, Flow::Hold, &entered));
    let released = async {
        entered.notified().await;
        eventually(PATIENCE, "the key is gone", async || {
            let keys = server.inspect().keys().await;
            if keys.is_empty() { Ok(()) } else { Err(keys) }
        })
        .await;
    };
    tokio::select! {
        result = &mut call => panic!("{result:?} before the answer"),
        () = released => {}
    }
    proxy.pass();
    assert_eq!(call.await.unwrap(), 7);
    assert_eq!(in_background(&manager, &proxy).await.unwrap(), 7);
}

#[tokio::test]
async fn unconfirmed_release_does_not_hide_the_result() {
    let server = RedisServer::start().await;
    let proxy = Proxy::to(&server).await;
    let manager = manager(&proxy, Duration::from_millis(500)).await;
    assert_eq!(confirmed(&manager, &proxy, Flow::Drop, &Notify::new()).await.unwrap(), 7);
}
