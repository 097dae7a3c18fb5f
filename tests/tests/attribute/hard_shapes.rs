//! Rare and valid functions run their bodies under the lock.

use crate::is_free;
use crate::ui_hard_shapes::{self, Config, Order, OrderId, Pair, Service};
use redlock_runtime::{LockError, LockManager, distributed_lock};
use std::sync::LazyLock;
use std::time::Duration;

struct Deployment;

impl Config for Deployment {
    const TTL: Duration = Duration::from_secs(7);
    const WAIT: Duration = Duration::from_millis(1);
    const NAME: &'static str = "deployment";

    fn locks() -> LockManager {
        static LOCKS: LazyLock<LockManager> = LazyLock::new(LockManager::in_memory);
        LOCKS.clone()
    }
}

#[tokio::test]
async fn option_accepts_a_constant_of_an_impl_type_parameter() {
    assert_eq!(Service::<Deployment>::of_the_parameter(1).await.unwrap(), Deployment::TTL);
    assert_eq!(Service::<Deployment>::of_the_type(1).await.unwrap(), Deployment::TTL);
    assert_eq!(Service::<Deployment>::qualified(1).await.unwrap(), Deployment::TTL);
}

/// Runs a call in whose body `key` must be locked, without other locks.
async fn runs<T>(call: impl Future<Output = Result<T, LockError>>) -> T {
    LockManager::in_memory().scope(call).await.unwrap()
}

#[tokio::test]
async fn lint_attributes_on_arguments_are_accepted() {
    let (text, pair) = ("four".to_owned(), ("six___".to_owned(), String::new()));
    let call = ui_hard_shapes::lint_levels(
        0,
        String::new(),
        String::new(),
        1,
        pair,
        "abc".into(),
        Pair::default(),
        &text,
        &text,
    );
    assert_eq!(runs(call).await, 6 + 3 + 4 + 1);
}

#[tokio::test]
async fn patterns_may_borrow_mutably() {
    assert_eq!(runs(ui_hard_shapes::borrowed_mutably(1, vec![2], Pair::default(), (3, 4))).await, 3 + 7 + 4 + 5);
}

#[tokio::test]
async fn impl_trait_inside_dyn_trait_is_accepted() {
    let items = runs(ui_hard_shapes::nested_impl(3)).await.map(|item| item.to_string());
    assert_eq!(items.collect::<String>(), "012");
}

#[tokio::test]
async fn custom_key_parts_are_part_of_the_key() {
    let manager = LockManager::in_memory();
    let _guard = manager.acquire("o-1:o-2:o-1").await.unwrap();
    let call = |other| ui_hard_shapes::own_parts(&&OrderId(1), OrderId(other));
    assert_eq!(manager.scope(call(3)).await.unwrap(), 4);
    assert!(manager.scope(call(2)).await.unwrap_err().is_contended());
}

#[tokio::test]
async fn method_in_a_key_accepts_a_named_part_as_argument() {
    let manager = LockManager::in_memory();
    let _guard = manager.acquire("23:1:10").await.unwrap();
    let call = |first| manager.scope(ui_hard_shapes::inputs(Order(vec![10, 20, 30]), first, "abc".into()));
    assert!(call(0).await.unwrap_err().is_contended());
    assert_eq!(call(1).await.unwrap(), 3 + 1 + 3);
}

#[tokio::test]
async fn guard_is_visible_in_a_block_after_a_macro() {
    assert!(runs(ui_hard_shapes::after_a_macro(1)).await);
    assert!(runs(ui_hard_shapes::unboxed_after_a_macro(1)).await);
}

#[tokio::test]
async fn function_body_may_start_with_items() {
    assert_eq!(runs(ui_hard_shapes::items_first(1)).await, 4);
    assert_eq!(runs(ui_hard_shapes::items_first_boxed(2)).await, 3);
}

#[tokio::test]
async fn argument_used_only_by_the_inner_key_is_accepted() {
    assert_eq!(runs(ui_hard_shapes::stacked("a".into(), "b".into())).await, "upper:a");
}

#[tokio::test]
async fn arguments_are_accepted_in_any_order() {
    let manager = LockManager::in_memory();
    let second = Duration::from_secs(1);
    let call =
        ui_hard_shapes::in_any_order(String::new(), (1, String::new()), 2, 3, &manager, (4, "abc".into()), second);
    assert_eq!(call.await.unwrap(), 1 + 4 + 5 + 3);
}

/// A macro's `id` is not the caller's, although both have the same name.
macro_rules! with_an_argument {
    ($name:ident, $key:literal, $id:ident) => {
        #[distributed_lock(key = $key)]
        async fn $name(id: u64, $id: u64) -> Result<bool, LockError> {
            let _ = id;
            Ok(is_free(&LockManager::current()?, "order:7").await)
        }
    };
}

with_an_argument!(another_name, "order:{order_id}", order_id);

#[tokio::test]
async fn macro_hygiene_separates_equal_argument_names() {
    assert!(!runs(another_name(1, 7)).await);
}
