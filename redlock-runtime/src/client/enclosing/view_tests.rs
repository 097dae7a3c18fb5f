//! Tests of nested calls that enter the lock of their caller. Defect 21 of peers: the shorter lease of an inner lock
//! shortens the outer one, and its release ends the renewal of the outer lock.

use super::ReentrantEntry;
use crate::private::{Settings, Site, acquire as acquire_settings, hold, hold_through, locked};
use crate::{LockError, LockGuard, LockManager, LockRequest, LossCause, Wait};
use std::cell::Cell;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, advance, sleep, timeout};

const KEY: &str = "order:7";
const SECOND: Duration = Duration::from_secs(1);

fn outer() -> LockRequest {
    LockRequest::new(KEY).ttl(10 * SECOND).wait(2 * SECOND)
}

fn inner() -> LockRequest {
    outer().reentrant()
}

#[track_caller]
fn lost(error: &LockError) -> (Duration, &LossCause) {
    match error {
        LockError::Lost { held_for, cause, .. } => (*held_for, cause),
        other => panic!("a lost lock expected: {other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn reentrant_call_enters_at_once_and_keeps_the_outer_lock() {
    let manager = LockManager::in_memory();
    let body = async |guard: &LockGuard| {
        for _ in 0..3 {
            let view = manager.try_acquire(inner()).await?;
            assert_eq!((view.token(), view.key(), view.ttl()), (guard.token(), guard.key(), guard.ttl()));
            assert!(view.is_held());
            // By its own release, and by its drop.
            view.release().await?;
            assert!(!view.is_held() && guard.is_held());
            assert_eq!(lost(&view.ensure_held().unwrap_err()).1, &LossCause::Released);
            drop(view);
            drop(manager.acquire(inner()).await?);
        }
        assert!(guard.is_held());
        Ok::<_, LockError>(())
    };
    manager.with_lock(outer(), body).await.unwrap();
    drop(manager.try_acquire(KEY).await.expect("the outer call has given it back"));
}

#[tokio::test(start_paused = true)]
async fn reentrant_call_without_an_outer_holder_acquires_normally() {
    let manager = LockManager::in_memory();
    let guard = manager.acquire(inner()).await.unwrap();
    let error = manager.acquire(inner()).await.unwrap_err();
    assert!(matches!(error, LockError::TimedOut { .. }), "{error}");
    drop(guard);
    let released = async |guard: &LockGuard| {
        guard.release().await?;
        manager.acquire(inner()).await?.release().await
    };
    manager.with_lock(outer(), released).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn inner_ttl_does_not_shorten_the_outer_lease() {
    // Redisson #1110 and #3484: the outer lock got the lease of the inner one.
    let manager = LockManager::in_memory();
    let short = inner().ttl(SECOND).without_renewal();
    let body = async |guard: &LockGuard| {
        let before = guard.remaining();
        let nested = async |view: &LockGuard| {
            assert_eq!(view.ttl(), 10 * SECOND);
            sleep(5 * SECOND).await;
            view.ensure_held()
        };
        manager.with_lock(short, nested).await?;
        assert!(guard.remaining() + 6 * SECOND > before, "{:?} of {before:?}", guard.remaining());
        guard.ensure_held()
    };
    manager.with_lock(outer().without_renewal(), body).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn max_hold_of_a_nested_call_ends_only_that_call() {
    let manager = LockManager::in_memory();
    let body = async |guard: &LockGuard| {
        sleep(SECOND).await;
        let started = Instant::now();
        let never_ends = async |_: &LockGuard| pending::<Result<(), LockError>>().await;
        let error = manager.with_lock(inner().max_hold(SECOND), never_ends).await.unwrap_err();
        assert_eq!(lost(&error), (SECOND, &LossCause::MaxHold));
        assert!(started.elapsed() < SECOND * 2);
        // The same for a call inside it.
        let nested = async |_: &LockGuard| manager.with_lock(inner(), never_ends).await;
        let error = manager.with_lock(inner().max_hold(SECOND), nested).await.unwrap_err();
        assert_eq!(lost(&error).1, &LossCause::MaxHold);
        guard.ensure_held()
    };
    manager.with_lock(outer(), body).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn nested_call_after_the_max_hold_of_its_caller_fails_without_waiting() {
    let manager = LockManager::in_memory();
    let started = Instant::now();
    let late = async {
        sleep(2 * SECOND).await;
        manager.acquire(inner().wait(Wait::Forever)).await
    };
    let told = |error: LockError| assert_eq!(lost(&error), (SECOND, &LossCause::MaxHold));
    let body = async |guard: &LockGuard| {
        let view = manager.acquire(inner().max_hold(SECOND)).await?;
        told(timeout(9 * SECOND, hold_through(&view, late)).await.expect("it does not wait")?.unwrap_err());
        assert!(started.elapsed() < 3 * SECOND);
        // In a scope, and in the body of a nested call that was entered before.
        told(view.scope(manager.acquire(inner())).await.unwrap_err());
        drop(view);
        let view = manager.acquire(inner().max_hold(SECOND)).await?;
        let deeper = view.scope(async {
            let deepest = manager.acquire(inner()).await?;
            sleep(2 * SECOND).await;
            deepest.scope(manager.acquire(inner())).await
        });
        told(deeper.await.unwrap_err());
        // A released view blocks no other call.
        view.release().await.unwrap_err();
        drop(view.scope(manager.acquire(inner())).await?);
        guard.ensure_held()
    };
    manager.with_lock(outer(), body).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn loss_of_the_outer_lock_reaches_the_nested_call_with_its_cause() {
    let manager = LockManager::in_memory();
    // Options of the outer call, and the cause of its loss.
    let table = [(outer().without_renewal(), LossCause::Expired), (outer().max_hold(SECOND), LossCause::MaxHold)];
    for (request, expected) in table {
        let guard = manager.acquire(request).await.unwrap();
        let body = hold_through(&guard, async {
            advance(SECOND / 2).await;
            let view = manager.acquire(inner()).await.unwrap();
            (view.lost().await, view)
        });
        let (error, view) = body.await.unwrap();
        let (held_for, cause) = lost(&error);
        assert_eq!(cause, &expected);
        assert!(held_for < 10 * SECOND, "{held_for:?}");
        assert!(!view.is_held() && view.extend().await.is_err());
        drop((view, guard));
    }
}

#[tokio::test(start_paused = true)]
async fn release_of_the_outer_lock_stops_the_nested_body() {
    let manager = LockManager::in_memory();
    let guard = manager.acquire(outer()).await.unwrap();
    let never_ends = async |_: &LockGuard| pending::<Result<(), LockError>>().await;
    let body = hold(&guard, async {
        let gives_back = async {
            sleep(SECOND).await;
            guard.release().await
        };
        tokio::join!(manager.with_lock(inner(), never_ends), gives_back)
    });
    let (nested, given_back) = timeout(SECOND * 2, body.with_guard()).await.expect("it is stopped").unwrap();
    given_back.unwrap();
    assert_eq!(lost(&nested.unwrap_err()), (SECOND, &LossCause::Released));
}

#[tokio::test(start_paused = true)]
async fn sibling_nested_calls_exclude_each_other_unless_one_encloses_the_other() {
    let manager = LockManager::in_memory();
    let inside = Cell::new(0);
    let alone = async |_: &LockGuard| {
        inside.set(inside.get() + 1);
        assert_eq!(inside.get(), 1, "two bodies side by side");
        sleep(SECOND / 4).await;
        inside.set(inside.get() - 1);
        Ok::<_, LockError>(())
    };
    let pay = async || manager.with_lock(inner(), alone).await;
    let side_by_side = async |_: &LockGuard| {
        let (first, second, third) = tokio::join!(pay(), pay(), pay());
        first.and(second).and(third)
    };
    manager.with_lock(outer(), side_by_side).await.unwrap();
    // The same in the body of a nested call, and beside it.
    let deeper = async |_: &LockGuard| {
        let (nested, beside) = tokio::join!(manager.with_lock(inner(), side_by_side), pay());
        nested.and(beside)
    };
    manager.with_lock(outer(), deeper).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn nested_call_behind_another_one_respects_its_wait_limit() {
    let manager = LockManager::in_memory();
    let body = async |_: &LockGuard| {
        let _first = manager.acquire(inner()).await?;
        let at_once = manager.acquire(inner().wait(Wait::None)).await.unwrap_err();
        assert!(matches!(at_once, LockError::Contended { .. }), "{at_once}");
        let started = Instant::now();
        let later = manager.acquire(inner()).await.unwrap_err();
        assert!(matches!(later, LockError::TimedOut { .. }) && started.elapsed() >= 2 * SECOND, "{later}");
        Ok::<_, LockError>(())
    };
    manager.with_lock(outer(), body).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn waiting_nested_call_fails_when_the_outer_lock_ends() {
    let manager = LockManager::in_memory();
    for is_given_back in [true, false] {
        let guard = manager.acquire(outer().without_renewal()).await.unwrap();
        let body = hold_through(&guard, async {
            let _first = manager.acquire(inner()).await.unwrap();
            let gives_back = async {
                sleep(SECOND).await;
                if is_given_back { guard.release().await } else { Ok(()) }
            };
            tokio::join!(manager.acquire(inner().wait(Wait::Forever)), gives_back)
        });
        let (waited, given_back) = body.with_guard().await.unwrap();
        given_back.unwrap();
        let error = waited.unwrap_err();
        let expected = if is_given_back { LossCause::Released } else { LossCause::Expired };
        assert_eq!(lost(&error).1, &expected);
    }
}

#[tokio::test(start_paused = true)]
async fn cancelled_nested_call_leaves_its_queue_place() {
    let manager = LockManager::in_memory();
    let body = async |_: &LockGuard| {
        let first = manager.acquire(inner()).await?;
        for _ in 0..3 {
            assert!(timeout(SECOND, manager.acquire(inner())).await.is_err());
        }
        drop(first);
        manager.try_acquire(inner()).await.map(drop)
    };
    manager.with_lock(outer(), body).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn nested_call_has_the_fencing_token_of_its_caller() {
    let manager = LockManager::builder().linger(2 * SECOND).in_memory().unwrap();
    let mut before = None;
    // Often enough for the lock to become idle, and for its number to continue.
    for _ in 0..6 {
        let nested = async || manager.acquire(inner().fencing()).await.map(|guard| guard.fencing_token());
        let fenced = async |guard: &crate::FencedGuard| {
            assert_eq!(nested().await?, guard.fencing_token());
            let view = manager.acquire(inner().fencing()).await?;
            assert_eq!(hold(&view, nested()).await??, guard.fencing_token());
            Ok::<_, LockError>(guard.fencing_token())
        };
        let number = manager.with_lock(outer().fencing(), fenced).await.unwrap();
        assert!(before < Some(number));
        before = Some(number);
        // Not the token of an earlier call, if this call is not fenced.
        let plain = async |_: &LockGuard| nested().await;
        let error = manager.with_lock(outer(), plain).await.unwrap_err();
        assert!(matches!(error, LockError::Configuration { .. }), "{error}");
        assert!(error.to_string().contains("add `fencing` to the outer call"), "{error}");
    }
    assert!(manager.stats().linger.reused > 0);
}

#[tokio::test(start_paused = true)]
async fn min_hold_of_a_nested_call_applies_to_the_outer_lock() {
    let manager = LockManager::builder().linger(SECOND).in_memory().unwrap();
    // Requests of the outer and the inner call, and the time for which the key stays taken.
    let table = [(None, Some(4), 4), (Some(6), Some(4), 6), (Some(4), Some(6), 6), (Some(4), None, 4)];
    for (of_outer, of_inner, expected) in table {
        let with = |request: LockRequest, least: Option<u32>| match least {
            Some(least) => request.min_hold(least * SECOND),
            None => request,
        };
        let nested = async |_: &LockGuard| manager.acquire(with(inner(), of_inner)).await.map(drop);
        manager.with_lock(with(outer(), of_outer), nested).await.unwrap();
        sleep(expected * SECOND * 9 / 10).await;
        assert!(manager.try_acquire(KEY).await.is_err(), "{of_outer:?} {of_inner:?}");
        sleep(SECOND).await;
        manager.try_acquire(KEY).await.unwrap().release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn linger_option_of_the_outer_call_decides() {
    let manager = LockManager::in_memory();
    let nested = async |_: &LockGuard| manager.acquire(inner().linger(SECOND)).await.map(drop);
    for _ in 0..6 {
        manager.with_lock(outer(), nested).await.unwrap();
    }
    assert_eq!(manager.stats().linger.started, 0);
    for _ in 0..6 {
        manager.with_lock(outer().linger(SECOND), nested).await.unwrap();
    }
    assert!(manager.stats().linger.reused > 0);
}

#[tokio::test(start_paused = true)]
async fn detached_nested_guard_cannot_be_attached() {
    let manager = LockManager::in_memory();
    let body = async |guard: &LockGuard| {
        let left = manager.acquire(inner()).await?.detach();
        let other = manager.attach(left).await.unwrap_err();
        assert!(other.is_contended(), "{other}");
        guard.ensure_held()
    };
    manager.with_lock(outer(), body).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn extend_of_a_nested_guard_extends_the_outer_lease() {
    let manager = LockManager::in_memory();
    let body = async |guard: &LockGuard| {
        advance(8 * SECOND).await;
        manager.acquire(inner()).await?.extend().await?;
        assert!(guard.remaining() > 9 * SECOND, "{:?}", guard.remaining());
        Ok::<_, LockError>(())
    };
    manager.with_lock(outer().without_renewal(), body).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn nested_call_succeeds_during_shutdown() {
    let manager = LockManager::in_memory();
    let body = async |_: &LockGuard| {
        assert!(timeout(SECOND, manager.shutdown()).await.is_ok());
        manager.acquire(inner()).await.map(drop)
    };
    manager.with_lock(outer(), body).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn nested_calls_leave_no_loss_watchers_behind() {
    static SITE: Site = Site::new(KEY, "shop", "src/shop.rs", 7);
    let manager = LockManager::in_memory();
    let guard = manager.acquire(outer()).await.unwrap();
    let rests = async |_: &LockGuard| {
        sleep(SECOND).await;
        Ok::<_, LockError>(())
    };
    let attribute = || {
        let acquire = acquire_settings(Some(&manager), format_args!("{KEY}"), Settings::of(&SITE).reentrant());
        let body = async {
            sleep(SECOND).await;
            Ok(())
        };
        locked(acquire, body, Err)
    };
    let body = hold(&guard, async {
        for _ in 0..5 {
            manager.with_lock(inner(), rests).await?;
            manager.with_lock(inner().fencing(), async |_| Ok::<_, LockError>(())).await.unwrap_err();
            attribute().await?;
            let view = manager.acquire(inner()).await?;
            hold_through(&view, sleep(SECOND)).await?;
            assert!(timeout(SECOND / 2, view.lost()).await.is_err());
            // Queued behind the view, and dropped.
            assert!(timeout(SECOND / 2, manager.acquire(inner())).await.is_err());
            drop(view);
            assert!(timeout(SECOND / 2, manager.with_lock(inner(), rests)).await.is_err());
            assert!(timeout(SECOND / 2, attribute()).await.is_err());
            assert_eq!(guard.held().acquisition().watcher_count(), 1, "that of the outer body");
        }
        Ok::<_, LockError>(())
    });
    body.await.unwrap().unwrap();
    assert_eq!(guard.held().acquisition().watcher_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn ownership_of_an_ended_call_gives_no_access_to_the_next_holder() {
    let manager = LockManager::in_memory();
    let guard = manager.acquire(outer().fencing()).await.unwrap();
    let (tenure, number) = (guard.held().tenure(), guard.fencing_token());
    assert_eq!(tenure.fencing_token(), Some(number));
    let heir = async {
        tokio::task::yield_now().await;
        drop(guard);
    };
    let (heir, ()) = tokio::join!(manager.acquire(outer().fencing()), heir);
    let heir = heir.unwrap();
    assert_eq!(heir.token(), tenure.acquisition().token(), "the lock was passed on");
    assert!(tenure.fencing_token().is_none() && number < heir.fencing_token());
    let now = tenure.shared().clock.now();
    assert!(
        ReentrantEntry::try_enter(tenure.clone(), tenure.place(), None, now).is_err(),
        "that were the lock of the next one"
    );
    tenure.keep_until(now.after(100 * SECOND));
    drop(heir);
    drop(manager.try_acquire(outer()).await.expect("nobody has wanted it to be kept"));
}

#[tokio::test(start_paused = true)]
async fn released_guard_gives_no_access_to_the_lock_of_the_next_holder() {
    let manager = LockManager::in_memory();
    let guard = manager.acquire(outer()).await.unwrap();
    let gives_back = async {
        tokio::task::yield_now().await;
        guard.release().await
    };
    // It was not examined before.
    let (heir, released) = tokio::join!(manager.acquire(outer()), gives_back);
    let heir = released.and(heir).unwrap();
    let error = guard.scope(manager.acquire(inner())).await.unwrap_err();
    assert!(matches!(error, LockError::TimedOut { .. }), "{error}");
    let error = guard.inherit().scope(manager.acquire(inner())).await.unwrap_err();
    assert_eq!(lost(&error).1, &LossCause::Released);
    heir.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn hold_time_of_a_nested_guard_ends_with_its_release() {
    let manager = LockManager::in_memory();
    let body = async |guard: &LockGuard| {
        let view = manager.acquire(inner()).await?;
        let deeper = view.scope(manager.acquire(inner())).await?;
        sleep(SECOND).await;
        view.release().await?;
        sleep(2 * SECOND).await;
        for lost_view in [&view, &deeper] {
            assert_eq!(lost(&lost_view.ensure_held().unwrap_err()), (SECOND, &LossCause::Released));
        }
        guard.ensure_held()
    };
    manager.with_lock(outer(), body).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn release_of_a_lost_nested_guard_fails_only_once() {
    let manager = LockManager::in_memory();
    let guard = manager.acquire(outer().without_renewal()).await.unwrap();
    let body = hold_through(&guard, async {
        let view = manager.acquire(inner()).await?;
        advance(20 * SECOND).await;
        assert_eq!(lost(&view.release().await.unwrap_err()).1, &LossCause::Expired);
        view.release().await
    });
    body.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn loss_watcher_of_a_nested_guard_is_woken_by_its_release() {
    let manager = LockManager::in_memory();
    let body = async |_: &LockGuard| {
        let view = Arc::new(manager.acquire(inner()).await?);
        // Separate tasks examine the view again only after a wake-up.
        let loss = tokio::spawn({
            let view = Arc::clone(&view);
            async move { view.lost().await }
        });
        let risk = tokio::spawn({
            let view = Arc::clone(&view);
            async move { view.near_expiry().await }
        });
        sleep(SECOND).await;
        assert!(!loss.is_finished() && !risk.is_finished());
        view.release().await?;
        let told = timeout(SECOND, async { tokio::join!(loss, risk) }).await;
        let (error, near_expiry) = told.expect("both are woken");
        assert_eq!(lost(&error.unwrap()).1, &LossCause::Released);
        near_expiry.unwrap();
        Ok::<_, LockError>(())
    };
    manager.with_lock(outer(), body).await.unwrap();
}
