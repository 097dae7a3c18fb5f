//! Locks that different functions take in different orders.
#![allow(deprecated, reason = "one key for all: what is tested is something else")]

use redlock_runtime::{LockError, LockGuard, LockManager, LockRequest, OrderCheck, distributed_lock};
use redlock_tests::{Warnings, subscribe};

const STOCK_LINE: u32 = line!() + 2;

#[distributed_lock(key = "stock:{sku}")]
async fn reserve(sku: u64) -> Result<(), LockError> {
    let _ = sku;
    Ok(())
}

const ORDER_LINE: u32 = line!() + 2;

#[distributed_lock(key = "order:{id}")]
async fn order_with_stock(id: u64, sku: u64) -> Result<(), LockError> {
    let _ = id;
    reserve(sku).await
}

#[distributed_lock(key = "stock:{sku}")]
async fn stock_with_order(sku: u64, order_id: u64) -> Result<(), LockError> {
    let _ = sku;
    cancel(order_id).await
}

#[distributed_lock(key = "order:{order_id}")]
async fn cancel(order_id: u64) -> Result<(), LockError> {
    let _ = order_id;
    Ok(())
}

#[distributed_lock(key = "stock:{sku}")]
async fn stock_with_order_if_free(sku: u64, order_id: u64) -> Result<(), LockError> {
    let _ = sku;
    cancel_if_free(order_id).await
}

#[distributed_lock(key = "order:{order_id}", wait = none)]
async fn cancel_if_free(order_id: u64) -> Result<(), LockError> {
    let _ = order_id;
    Ok(())
}

#[distributed_lock(key = "stock:{sku}")]
async fn stock_with_order_unchecked(sku: u64, order_id: u64) -> Result<(), LockError> {
    let _ = sku;
    cancel_unchecked(order_id).await
}

#[distributed_lock(key = "order:{order_id}", order_check = off)]
async fn cancel_unchecked(order_id: u64) -> Result<(), LockError> {
    let _ = order_id;
    Ok(())
}

#[distributed_lock(key("warehouse", constant))]
async fn in_the_warehouse(is_order_first: bool) -> Result<(), LockError> {
    if is_order_first { order_with_stock(1, 2).await } else { stock_with_order(3, 4).await }
}

#[distributed_lock(key = "account:{from}")]
async fn transfer(from: u64, to: u64) -> Result<(), LockError> {
    let _ = from;
    credit(to).await
}

#[distributed_lock(key = "account:{id}")]
async fn credit(id: u64) -> Result<(), LockError> {
    let _ = id;
    Ok(())
}

fn manager(check: OrderCheck) -> LockManager {
    LockManager::builder().order_check(check).in_memory().unwrap()
}

#[tokio::test]
async fn opposite_lock_order_is_denied_with_all_lines() {
    let manager = manager(OrderCheck::Deny);
    manager.scope(order_with_stock(1, 2)).await.unwrap();
    // Uses other keys of the same kinds, in other functions. A repetition fails as well.
    for _ in 0..2 {
        let error = manager.scope(stock_with_order(3, 4)).await.unwrap_err();
        let LockError::WouldDeadlock { key, held, .. } = &error else { panic!("{error}") };
        assert_eq!((key.as_str(), held.key().as_str()), ("order:4", "stock:3"));
        let text = error.to_string();
        for line in [held.acquire_line().line(), held.request_line().line(), ORDER_LINE, STOCK_LINE] {
            assert!(text.contains(&format!("lock_order.rs:{line}")), "{line} in {text}");
        }
    }
    manager.scope(order_with_stock(5, 6)).await.unwrap();
}

#[tokio::test]
async fn calls_that_cannot_deadlock_pass_the_order_check() {
    let manager = manager(OrderCheck::Deny);
    manager.scope(order_with_stock(1, 2)).await.unwrap();
    manager.scope(stock_with_order_if_free(3, 4)).await.unwrap();
    manager.scope(stock_with_order_unchecked(3, 4)).await.unwrap();
    // Neither do these under a common lock.
    let other = self::manager(OrderCheck::Deny);
    other.scope(in_the_warehouse(true)).await.unwrap();
    other.scope(in_the_warehouse(false)).await.unwrap();
    assert!(other.scope(stock_with_order(5, 6)).await.is_err(), "outside of it");
}

#[tokio::test]
async fn locks_of_one_template_are_ordered_by_key() {
    let manager = manager(OrderCheck::Deny);
    for (from, to) in [(1, 2), (2, 9), (9, 10)] {
        manager.scope(transfer(from, to)).await.unwrap();
    }
    let error = manager.scope(transfer(5, 3)).await.unwrap_err();
    assert!(matches!(error, LockError::WouldDeadlock { .. }), "{error}");
}

async fn second(manager: &LockManager) -> Result<(), LockError> {
    manager.acquire("b").await.map(drop)
}

#[tokio::test]
async fn manual_calls_are_distinguished_by_their_lines() {
    let manager = manager(OrderCheck::Deny);
    let first = async |body: u32| {
        let nested = async |_: &LockGuard| if body > 0 { second(&manager).await } else { Ok(()) };
        manager.with_lock(format!("a:{body}"), nested).await
    };
    first(1).await.unwrap();
    first(2).await.unwrap();
    let body = async |_: &LockGuard| first(0).await;
    // This line takes "b" as well, and is another line.
    manager.with_lock("b", body).await.unwrap();
    // The request switches the check off.
    let unchecked = LockRequest::new("c").without_order_check();
    manager.with_lock("d", async |_| manager.acquire(unchecked).await.map(drop)).await.unwrap();
}

#[tokio::test]
async fn opposite_lock_order_is_one_warning_with_all_lines() {
    for (check, expected) in [(OrderCheck::Warn, 1), (OrderCheck::Off, 0)] {
        let warnings = Warnings::default();
        let _subscribed = subscribe(warnings.clone());
        let manager = manager(check);
        for _ in 0..3 {
            manager.scope(order_with_stock(1, 2)).await.unwrap();
            manager.scope(stock_with_order(3, 4)).await.unwrap();
        }
        let warnings = warnings.take();
        assert_eq!(warnings.len(), expected, "{warnings:#?}");
        for line in [ORDER_LINE, STOCK_LINE] {
            assert!(warnings.iter().all(|text| text.contains(&format!("lock_order.rs:{line}"))), "{warnings:#?}");
        }
    }
}
