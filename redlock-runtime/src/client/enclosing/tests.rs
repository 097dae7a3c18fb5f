//! Tests of calls in the bodies of other calls. Defect 21 of peers: reentrancy by thread or by task, which mistakes
//! unrelated calls for callers, and callers for unrelated calls.

use crate::private::{hold, hold_through};
use crate::{HeldLock, LockError, LockGuard, LockManager, LockRequest, LossCause, Wait};
use std::future::{Future, pending, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::time::{Instant, advance};

const KEY: &str = "order:7";
const WAIT: Duration = Duration::from_secs(2);

fn request() -> LockRequest {
    LockRequest::new(KEY).ttl(Duration::from_secs(10)).wait(WAIT)
}

/// Outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Became {
    Entered,
    Contended,
    TimedOut,
    WouldDeadlock,
    WindowTaken,
    Lost,
}
use Became::{Contended, Entered, TimedOut, WindowTaken, WouldDeadlock};

fn became<T>(outcome: Result<T, LockError>) -> Became {
    match outcome {
        Ok(_) => Entered,
        Err(LockError::Contended { .. }) => Contended,
        Err(LockError::TimedOut { .. }) => TimedOut,
        Err(LockError::WouldDeadlock { .. }) => WouldDeadlock,
        Err(LockError::WindowTaken { .. }) => WindowTaken,
        Err(LockError::Lost { .. }) => Became::Lost,
        Err(other) => panic!("{other}"),
    }
}

/// Makes a call for `request`. Returns its outcome, and `true` if it was immediate.
async fn call(manager: &LockManager, request: LockRequest) -> (Became, bool) {
    let started = Instant::now();
    let outcome = became(manager.acquire(request).await);
    (outcome, started.elapsed().is_zero())
}

/// Makes a call in a body that has `outer`, and may see its guard.
async fn call_in_body(
    manager: &LockManager,
    outer: LockRequest,
    shows_guard: bool,
    inner: LockRequest,
) -> (Became, bool) {
    if shows_guard {
        let nested = async |_: &LockGuard| Ok::<_, LockError>(call(manager, inner).await);
        return manager.with_lock(outer, nested).await.unwrap();
    }
    let guard = manager.acquire(outer).await.unwrap();
    hold(&guard, call(manager, inner)).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn nested_call_outcome_depends_on_lock_wait_and_guard() {
    let window = || LockRequest::new("report").once_per(Duration::from_secs(900));
    let other = || LockRequest::new("order:8");
    // Lock of the body, whether it sees the guard, and request of the call; then the outcome, and whether it is
    // immediate.
    let table = [
        (request(), false, request(), (WouldDeadlock, true)),
        (request(), false, request().wait(Wait::Forever), (WouldDeadlock, true)),
        (request(), false, request().wait(Wait::None), (Contended, true)),
        (request(), true, request(), (TimedOut, false)),
        (request(), true, request().wait(Wait::None), (Contended, true)),
        (request(), false, other(), (Entered, true)),
        (window(), false, window(), (WindowTaken, true)),
        (window(), true, window(), (WindowTaken, false)),
        (window(), true, LockRequest::new("report"), (Entered, true)),
    ];
    for (outer, shows_guard, inner, expected) in table {
        let shown = format!("{inner:?} in {outer:?}, {shows_guard}");
        assert_eq!(call_in_body(&LockManager::in_memory(), outer, shows_guard, inner).await, expected, "{shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_enclosing_body_without_its_guard_makes_a_nested_call_deadlock() {
    let manager = LockManager::in_memory();
    let forever = async || {
        let waiting = call(&manager, request().wait(Wait::Forever));
        tokio::time::timeout(10 * WAIT, waiting).await.expect("it does not wait")
    };
    let guard = manager.acquire(request()).await.unwrap();
    // Through a scope of the guard, or a reentrant call that sees its own guard.
    assert_eq!(hold(&guard, guard.scope(forever())).await.unwrap(), (WouldDeadlock, true));
    assert_eq!(guard.scope(hold(&guard, forever())).await.unwrap(), (WouldDeadlock, true));
    let middle = async |_: &LockGuard| Ok::<_, LockError>(forever().await);
    let outer = hold(&guard, manager.with_lock(request().reentrant(), middle));
    assert_eq!(outer.await.unwrap().unwrap(), (WouldDeadlock, true));
}

#[tokio::test(start_paused = true)]
async fn deadlock_error_names_both_lines() {
    let manager = LockManager::builder().namespace("shop").in_memory().unwrap();
    let guard = manager.acquire(request()).await.unwrap();
    let error = hold(&guard, manager.acquire(request().fencing())).await.unwrap().unwrap_err();
    let LockError::WouldDeadlock { key, held } = &error else { panic!("{error}") };
    let here = line!();
    let lines = |held: &HeldLock| [held.acquire_line(), held.request_line()].map(|at| here - at.line());
    assert_eq!(lines(held), [3, 2], "{error}");
    assert!(held.request_line().file().ends_with("enclosing/tests.rs"), "{error}");
    assert_eq!((key.as_str(), held.key().as_str(), error.key()), (KEY, KEY, Some(key)));
    assert!(!error.is_transient() && !error.is_contended() && error.retry_after().is_none());
    let (text, lines) = (error.to_string(), [held.acquire_line(), held.request_line()].map(|at| at.to_string()));
    assert!(lines.iter().all(|line| text.contains(line)) && !text.contains('\n'), "{text}");
}

#[tokio::test(start_paused = true)]
async fn nested_call_deadlocks_under_fenced_and_attached_locks() {
    let manager = LockManager::in_memory();
    let nested = async || manager.with_lock(request().fencing(), async |_| Ok(())).await;
    let fenced = manager.acquire(request().fencing()).await.unwrap();
    assert_eq!(became(hold(&fenced, nested()).await.unwrap()), WouldDeadlock);
    drop(fenced);
    let left = manager.acquire(request()).await.unwrap().detach();
    let attached = manager.attach(left).await.unwrap();
    assert_eq!(became(hold(&attached, nested()).await.unwrap()), WouldDeadlock);
    assert_eq!(became(hold_through(&attached, nested()).await.unwrap()), WouldDeadlock);
}

#[tokio::test(start_paused = true)]
async fn deadlock_with_an_outer_body_is_detected_through_an_inner_body() {
    let manager = LockManager::in_memory();
    let innermost = async |_: &LockGuard| Ok::<_, LockError>(call(&manager, request()).await);
    let guard = manager.acquire(request()).await.unwrap();
    let outer = hold(&guard, manager.with_lock("order:8", innermost));
    assert_eq!(outer.await.unwrap().unwrap(), (WouldDeadlock, true));
}

#[tokio::test(start_paused = true)]
async fn joined_branches_do_not_deadlock_each_other() {
    // If the task were the owner, the second branch would be refused as a deadlock.
    let manager = LockManager::in_memory();
    let branch = async || {
        let body = async |_: &LockGuard| {
            tokio::task::yield_now().await;
            Ok::<_, LockError>(())
        };
        manager.with_lock(request(), body).await
    };
    let (first, second) = tokio::join!(branch(), branch());
    assert_eq!([became(first), became(second)], [Entered; 2]);
}

#[tokio::test(start_paused = true)]
async fn spawned_task_waits_for_the_lock_of_its_parent() {
    let manager = LockManager::in_memory();
    let spawned = manager.with_lock(request(), async |_| {
        let manager = manager.clone();
        let spawned = tokio::spawn(async move { became(manager.acquire(request()).await) });
        tokio::task::yield_now().await;
        Ok::<_, LockError>(spawned)
    });
    assert_eq!(spawned.await.unwrap().await.unwrap(), Entered);
}

#[tokio::test(start_paused = true)]
async fn other_task_on_the_same_thread_waits_for_the_lock() {
    // If the thread were the owner, it would enter.
    let manager = LockManager::in_memory();
    let mut body = pin!(manager.with_lock(request(), async |_| pending::<Result<(), LockError>>().await));
    assert!(poll_fn(|cx| Poll::Ready(body.as_mut().poll(cx).is_pending())).await);
    assert_eq!(call(&manager, request()).await, (TimedOut, false));
}

#[test]
fn body_keeps_its_locks_when_it_moves_to_another_thread() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let polled = |body: &mut Pin<Box<dyn Future<Output = Became> + Send>>| {
        let _runtime = runtime.enter();
        body.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    };
    let manager = runtime.block_on(async { LockManager::in_memory() });
    let ours = manager.clone();
    let mut body: Pin<Box<dyn Future<Output = Became> + Send>> = Box::pin(async move {
        let nested = async {
            let mut polls = 0;
            poll_fn(|_| {
                polls += 1;
                if polls == 1 { Poll::Pending } else { Poll::Ready(()) }
            })
            .await;
            ours.acquire(request()).await
        };
        let guard = ours.acquire(request()).await.unwrap();
        became(hold(&guard, nested).await.unwrap())
    });
    assert!(polled(&mut body).is_pending());
    // No frame is left on the thread that polled it first.
    let mut stranger: Pin<Box<dyn Future<Output = Became> + Send>> =
        Box::pin(async move { became(manager.acquire(request()).await) });
    assert!(polled(&mut stranger).is_pending());
    let outcome = std::thread::scope(|scope| scope.spawn(|| polled(&mut body)).join().unwrap());
    assert_eq!(outcome, Poll::Ready(WouldDeadlock));
}

#[tokio::test(start_paused = true)]
async fn panicking_body_leaves_no_frame() {
    let manager = LockManager::in_memory();
    let guard = manager.acquire(request()).await.unwrap();
    let mut body = Box::pin(hold(&guard, async { panic!("planned") }));
    let panicked = poll_fn(|cx| {
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| body.as_mut().poll(cx).is_pending()));
        Poll::Ready(polled.is_err())
    });
    assert!(panicked.await);
    // The lock is still held, and a waiting call does not wait for a body that waits for it.
    assert_eq!(call(&manager, request()).await, (TimedOut, false));
}

#[tokio::test(start_paused = true)]
async fn released_lock_does_not_block_a_nested_call() {
    let manager = LockManager::in_memory();
    let body = async |guard: &LockGuard| {
        guard.release().await?;
        Ok::<_, LockError>(call(&manager, request()).await)
    };
    assert_eq!(manager.with_lock(request(), body).await.unwrap(), (Entered, true));
}

#[tokio::test(start_paused = true)]
async fn lost_lock_does_not_block_a_nested_call() {
    let manager = LockManager::in_memory();
    let guard = manager.acquire(request().without_renewal()).await.unwrap();
    let body = hold_through(&guard, async {
        advance(Duration::from_secs(20)).await;
        call(&manager, request()).await
    });
    assert_eq!(body.await.unwrap(), (Entered, true));
    let error = guard.ensure_held().unwrap_err();
    assert!(matches!(error, LockError::Lost { cause: LossCause::Expired | LossCause::Taken, .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn queued_nested_call_fails_when_its_caller_regains_the_lock() {
    for is_reentrant in [false, true] {
        let call_request = request().wait(Wait::Forever);
        let call_request = if is_reentrant { call_request.reentrant() } else { call_request };
        let manager = LockManager::in_memory();
        let guard = manager.acquire(request().without_renewal()).await.unwrap();
        // This call would supersede the lock that is over, but it is not polled.
        let mut first = pin!(manager.acquire(request()));
        assert!(poll_fn(|cx| Poll::Ready(first.as_mut().poll(cx).is_pending())).await);
        let body = hold_through(&guard, async {
            // The lease is over, and the key still exists.
            advance(Duration::from_millis(9950)).await;
            assert!(!guard.is_held());
            let mut waiting = pin!(call(&manager, call_request));
            assert!(poll_fn(|cx| Poll::Ready(waiting.as_mut().poll(cx).is_pending())).await);
            guard.extend().await.expect("as by the late answer to a renewal");
            assert!(guard.is_held());
            tokio::time::timeout(WAIT, waiting).await.expect("it does not wait for its caller")
        });
        assert_eq!(body.await.unwrap(), (WouldDeadlock, false));
    }
}

#[tokio::test(start_paused = true)]
async fn body_with_its_guard_can_release_while_a_nested_call_waits() {
    let manager = LockManager::in_memory();
    for is_through in [false, true] {
        let guard = manager.acquire(request()).await.unwrap();
        let body = async {
            let gives_back = async {
                tokio::time::sleep(WAIT / 2).await;
                guard.release().await
            };
            let (nested, released) = tokio::join!(call(&manager, request()), gives_back);
            released.map(|()| nested)
        };
        let outcome = if is_through {
            hold_through(&guard, body).with_guard().await
        } else {
            hold(&guard, body).with_guard().await
        };
        assert_eq!(outcome.unwrap().unwrap(), (Entered, false));
    }
}

#[tokio::test(start_paused = true)]
async fn guard_scope_admits_reentrant_calls_and_other_calls_wait() {
    let manager = LockManager::in_memory();
    let guard = manager.acquire(request()).await.unwrap();
    assert_eq!(guard.scope(call(&manager, request().reentrant())).await, (Entered, true));
    assert_eq!(guard.scope(call(&manager, request())).await, (TimedOut, false));
    // Outside, no frame is seen.
    assert_eq!(call(&manager, request().reentrant()).await, (TimedOut, false));
}

#[tokio::test(start_paused = true)]
async fn only_a_task_that_inherited_the_lock_enters_it() {
    // Redisson #5221 and #6878: the owner is a thread, so a call on another thread waits for its own caller.
    let manager = LockManager::in_memory();
    let guard = manager.acquire(request()).await.unwrap();
    let task = |lock: Option<crate::Inherited>| {
        let manager = manager.clone();
        tokio::spawn(async move {
            let nested = call(&manager, request().reentrant());
            if let Some(lock) = lock { lock.scope(nested).await.unwrap() } else { nested.await }
        })
    };
    assert_eq!(task(None).await.unwrap(), (TimedOut, false));
    assert_eq!(task(Some(guard.inherit())).await.unwrap(), (Entered, true));
    let shown = format!("{:?}", guard.inherit());
    assert!(shown.contains(KEY), "{shown}");
    // A view is inherited like the lock itself.
    let nested = async |_: &LockGuard| {
        let view = manager.acquire(request().reentrant()).await?;
        Ok::<_, LockError>(task(Some(view.inherit())).await.unwrap())
    };
    drop(guard);
    assert_eq!(manager.with_lock(request(), nested).await.unwrap(), (Entered, true));
}

/// Ends a guard; returns it if it still exists.
type Ends = fn(LockGuard) -> Option<LockGuard>;

#[tokio::test(start_paused = true)]
async fn scope_of_an_inherited_lock_fails_after_the_lock_ended() {
    let manager = LockManager::builder().linger(WAIT).in_memory().unwrap();
    let table: [(Ends, LossCause); 5] = [
        (
            |guard| {
                drop(guard);
                None
            },
            LossCause::Released,
        ),
        (
            |guard| {
                drop(guard.release());
                Some(guard)
            },
            LossCause::Released,
        ),
        (
            |guard| {
                drop(guard.detach());
                None
            },
            LossCause::Released,
        ),
        (Some, LossCause::Expired),
        // The guard of a body that was dropped because of the loss.
        (|_| None, LossCause::Expired),
    ];
    for (end, cause) in table {
        let guard = manager.acquire(request().without_renewal()).await.unwrap();
        let inherited = guard.inherit();
        assert!(inherited.is_held() && inherited.ensure_held().is_ok());
        if cause == LossCause::Expired {
            advance(Duration::from_secs(20)).await;
        }
        let kept = end(guard);
        let is_polled = AtomicBool::new(false);
        let scope = inherited.clone().scope(async { is_polled.store(true, Ordering::Relaxed) });
        for error in [scope.await.unwrap_err(), inherited.ensure_held().unwrap_err(), inherited.lost().await] {
            assert!(matches!(&error, LockError::Lost { cause: found, .. } if *found == cause), "{error}");
        }
        assert!(!is_polled.into_inner() && !inherited.is_held());
        drop(kept);
        advance(Duration::from_secs(20)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn task_with_an_inherited_lock_stops_when_the_lock_is_released() {
    // Without a command to the nodes, when the lock stays here.
    let manager = LockManager::builder().linger(10 * WAIT).in_memory().unwrap();
    for _ in 0..5 {
        let guard = manager.acquire(request()).await.unwrap();
        let (entered, ours) = (Arc::new(tokio::sync::Notify::new()), manager.clone());
        let task = tokio::spawn(guard.inherit().scope({
            let entered = Arc::clone(&entered);
            async move {
                let body = async |_: &LockGuard| {
                    entered.notify_one();
                    pending::<Result<(), LockError>>().await
                };
                ours.with_lock(request().reentrant(), body).await
            }
        }));
        entered.notified().await;
        drop(guard);
        let error = tokio::time::timeout(WAIT, task).await.expect("it is woken").unwrap().unwrap_err();
        assert!(matches!(error, LockError::Lost { cause: LossCause::Released, .. }), "{error}");
    }
    assert!(manager.stats().linger.reused > 0);
}

#[tokio::test(start_paused = true)]
async fn lock_of_another_manager_does_not_block_a_nested_call() {
    let (ours, theirs) = (LockManager::in_memory(), LockManager::in_memory());
    let body = async |_: &LockGuard| Ok::<_, LockError>(call(&theirs, request()).await);
    assert_eq!(ours.with_lock(request(), body).await.unwrap(), (Entered, true));
}

#[tokio::test(start_paused = true)]
async fn foreign_future_polled_by_a_body_counts_as_a_nested_call() {
    let manager = Arc::new(LockManager::in_memory());
    let mut foreign = Box::pin(manager.acquire(request()));
    let guard = manager.acquire(request()).await.unwrap();
    assert_eq!(became(hold(&guard, foreign.as_mut()).await.unwrap()), WouldDeadlock);
}
