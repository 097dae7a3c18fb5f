//! The functions that must compile run their bodies under the lock.

use crate::is_free;
use crate::ui_async_trait::Capture;
use crate::ui_frameworks::{self, Payments};
use crate::{ui_futures, ui_inferred, ui_macro_rules, ui_more_shapes, ui_shapes};
use async_trait::async_trait;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use redlock_runtime::{LockError, LockManager, distributed_lock};
use std::pin::Pin;
use std::sync::Arc;

#[tokio::test]
async fn locked_body_shapes_run() {
    let calls = async {
        let order = || ui_shapes::Order { r#type: "new", customer: ("tenant".to_owned(), 1) };
        let path = ui_shapes::Path(1);
        let patterns =
            ui_shapes::patterns(path, "ab".into(), 2, 3, order(), (4, 5), [6, 0, 0, 7], &8, "a".into(), "b".into());
        assert_eq!(patterns.await?, 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 2 + 6);
        assert_eq!(ui_shapes::fields(order()).await?.customer.1, 1);
        let pairs: Vec<_> = ui_shapes::generics::<_, 5>("a", 7, vec![1, 2]).await?.collect();
        assert_eq!(pairs, [("a", 1), ("a", 2)]);
        assert_eq!(ui_shapes::coerced().await?.to_string(), "7");
        assert_eq!(ui_shapes::recursive(3).await?, 0);

        assert_eq!(ui_futures::unnamed(1).await?, 1);
        assert_eq!(ui_futures::with_preparation("a").await?, "a");
        assert_eq!(ui_futures::boxed(2).await?, 2);
        ui_inferred::alias(&3).await?;
        assert_eq!(ui_futures::forwarded(3).await?, 4);
        assert_eq!((ui_futures::chosen(0).await?, ui_futures::chosen(5).await?), (0, 5));
        assert!(ui_futures::handled(0).await);

        assert_eq!(ui_macro_rules::first(1).await?, 1);
        assert_eq!(ui_macro_rules::second(2).await?, 2);
        assert_eq!(ui_macro_rules::third(3).await?, 3);
        assert_eq!(ui_macro_rules::fourth(4, (1,)).await?, 5);
        Ok::<_, LockError>(())
    };
    LockManager::in_memory().scope(calls).await.unwrap();
}

/// Reports if the key is locked inside the body, for each form of a function.
#[async_trait]
trait Inside {
    async fn is_free(&mut self, id: (u64, u64)) -> Result<bool, LockError>;

    #[distributed_lock(key = "default:{id}")]
    async fn default(&self, id: u64) -> Result<bool, LockError> {
        Ok(is_free(&LockManager::current()?, &format!("default:{id}")).await)
    }
}

struct Tenant(&'static str);

#[async_trait]
impl Inside for Tenant {
    #[distributed_lock(key = "{self.0}:{id}")]
    async fn is_free(&mut self, (id, _): (u64, u64)) -> Result<bool, LockError> {
        self.0 = "changed";
        Ok(is_free(&LockManager::current()?, &format!("tenant:{id}")).await)
    }
}

#[distributed_lock(key = "block:{id}")]
fn block(id: u64) -> impl Future<Output = Result<bool, LockError>> {
    async move { Ok(is_free(&LockManager::current()?, &format!("block:{id}")).await) }
}

#[distributed_lock(key = "made:{id}")]
fn made(id: u64) -> impl Future<Output = Result<bool, LockError>> {
    let check = async move |key: String| Ok(is_free(&LockManager::current()?, &key).await);
    check(format!("made:{id}"))
}

#[tokio::test]
async fn key_is_locked_during_the_body() {
    let manager = LockManager::in_memory();
    let calls = async {
        let mut tenant = Tenant("tenant");
        [tenant.is_free((7, 0)).await, tenant.default(8).await, block(9).await, made(10).await]
    };
    for (index, result) in manager.scope(calls).await.into_iter().enumerate() {
        assert!(!result.unwrap(), "form {index}");
    }
    for key in ["tenant:7", "default:8", "block:9", "made:10"] {
        assert!(is_free(&manager, key).await, "{key}");
    }
}

#[tokio::test]
async fn method_of_an_async_trait_object_holds_the_lock() {
    struct Own;

    #[async_trait]
    impl Capture for Own {
        #[distributed_lock(key = "order:{id}")]
        async fn capture(&self, (id, name): (u64, String), other: &str) -> Result<u64, LockError> {
            assert!(!is_free(&LockManager::current()?, &format!("order:{id}")).await);
            Ok(id + name.len() as u64 + other.len() as u64)
        }
    }

    let object: Box<dyn Capture> = Box::new(Own);
    let manager = LockManager::in_memory();
    assert_eq!(manager.scope(object.capture((7, "a".into()), "bc")).await.unwrap(), 10);
    manager.scope(object.with_body(7)).await.unwrap();
}

/// The attributes of a runtime are below the lock, because they make the function block.
#[distributed_lock(key = "test", manager = LockManager::in_memory(), on_error = |error| unreachable!("{error}"))]
#[tokio::test]
async fn attribute_works_on_a_tokio_test() {
    tokio::task::yield_now().await;
}

macro_rules! ensure {
    ($condition:expr, $otherwise:expr) => {
        if !$condition {
            return Box::pin(async { $otherwise });
        }
    };
}

type Boxed<'a> = Pin<Box<dyn Future<Output = Result<bool, LockError>> + Send + 'a>>;

#[distributed_lock(key = "early:{id}")]
fn early(id: u64) -> Boxed<'static> {
    if id == 0 {
        return Box::pin(async { Ok(is_free(&LockManager::current()?, "early:0").await) });
    }
    Box::pin(async move { Ok(is_free(&LockManager::current()?, &format!("early:{id}")).await) })
}

impl Tenant {
    /// A macro may hide a `return`, and the future may borrow from captures of the surrounding closure.
    #[distributed_lock(key = "{self.0}:hidden")]
    fn hidden(&mut self, is_rightful: bool) -> Boxed<'_> {
        ensure!(is_rightful, Ok(is_free(&LockManager::current()?, "tenant:hidden").await));
        self.0 = "changed";
        Box::pin(async move { Ok(self.0 == "changed" && is_free(&LockManager::current()?, "tenant:hidden").await) })
    }
}

#[tokio::test]
async fn every_returned_future_runs_under_the_lock() {
    let manager = LockManager::in_memory();
    for id in [0, 1] {
        assert!(!manager.scope(early(id)).await.unwrap(), "{id}");
    }
    for is_rightful in [false, true] {
        assert!(!manager.scope(Tenant("tenant").hidden(is_rightful)).await.unwrap(), "{is_rightful}");
    }
}

#[tokio::test]
async fn locked_framework_handlers_run() {
    let locks = Arc::new(LockManager::in_memory());
    let app = ui_frameworks::App { locks: Arc::clone(&locks) };
    let state = || State(app.clone());
    assert_eq!(ui_frameworks::capture(state(), Path(7), "a".into()).await.unwrap(), "7a");
    assert_eq!(ui_frameworks::debug_above(state(), Path((7, String::new()))).await.unwrap(), "7");
    assert_eq!(ui_frameworks::debug_below(state(), Path(7)).await.unwrap(), "order:7");
    let service = ui_frameworks::Service { locks: (*locks).clone() };
    assert_eq!(service.cancel(tonic::Request::new(7)).await.unwrap().into_inner(), 7);
    let instrumented = async {
        let function = ui_frameworks::instrumented_above(1, ("ab".into(), 0)).await?;
        Ok::<_, LockError>((function(), ui_frameworks::instrumented_below(2, "abc").await?))
    };
    assert_eq!(locks.scope(instrumented).await.unwrap(), (3, 5));

    let _guard = locks.acquire("order:7").await.unwrap();
    assert_eq!(ui_frameworks::capture(state(), Path(7), "a".into()).await.unwrap_err().0, StatusCode::CONFLICT);
    assert_eq!(ui_frameworks::response(state(), Path(7)).await.status(), StatusCode::CONFLICT);
    assert_eq!(service.capture(tonic::Request::new(7)).await.unwrap_err().code(), tonic::Code::Aborted);
}

/// Two attributes take two locks, the lower one first.
#[distributed_lock(key = "upper:{id}", guard = upper)]
#[distributed_lock(key = "lower:{id}", guard = lower)]
async fn two(id: u64, manager: &LockManager) -> Result<(String, String), LockError> {
    assert!(!is_free(manager, "upper:7").await && !is_free(manager, "lower:7").await);
    Ok((upper.key().to_string(), lower.key().to_string()))
}

#[tokio::test]
async fn two_attributes_acquire_two_locks() {
    let manager = LockManager::in_memory();
    let keys = manager.scope(two(7, &manager)).await.unwrap();
    assert_eq!(keys, ("upper:7".to_owned(), "lower:7".to_owned()));
    assert!(is_free(&manager, "upper:7").await && is_free(&manager, "lower:7").await);
}

#[tokio::test]
async fn more_locked_body_shapes_run() {
    let id = 9_u64;
    let calls = async {
        assert_eq!(ui_more_shapes::inside(id).await?, 2 * id + 2 - id);
        assert_eq!(ui_more_shapes::callback(id, &[1, 2], <[u8]>::len).await?, 2);
        assert_eq!(ui_more_shapes::conditional(0).await?, 0);
        Ok::<_, LockError>(())
    };
    LockManager::in_memory().scope(calls).await.unwrap();
}
