//! Nested calls for several keys and paths, and the errors that they return.

use redlock_runtime::{LockError, LockManager, LockPart, LockPath, LockRequest, Mode, distributed_lock};
use std::time::Duration;

/// Functions whose bodies have no access to their guards, and so cannot release them early.
macro_rules! outer {
    ($($name:ident: $option:ident = $what:tt $(, $mode:ident)?;)*) => {$(
        #[distributed_lock($option = $what $(, mode = $mode)?, manager = manager)]
        async fn $name(manager: &LockManager, inner: LockRequest) -> Result<Vec<String>, LockError> {
            let guard = manager.acquire(inner.wait(Duration::from_secs(5))).await?;
            Ok(guard.keys().map(ToString::to_string).collect())
        }
    )*};
}

outer! {
    a: key = ["a"];
    a_and_b: key = ["b", "a"];
    a_share_and_b: key = [shared("a"), "b"];
    tree: path = "/T";
    tree_shared: path = "/T", shared;
    leaf: path = "/T/x";
    leaf_shared: path = "/T/x", shared;
    two_leaves: path = ["/T/x", "/T/y"];
}

/// Returns the outcome of a call for `inner` in the body of an `outer` call.
macro_rules! nested {
    ($outer:ident, $inner:expr) => {
        $outer(&LockManager::in_memory(), $inner).await
    };
}

fn all(keys: &[&str]) -> LockRequest {
    LockRequest::all(keys.iter().copied())
}

fn path(path: &str) -> LockRequest {
    LockRequest::path(path)
}

#[tokio::test(start_paused = true)]
async fn reentrant_call_enters_a_caller_that_holds_all_of_its_keys() {
    for keys in [&["a"][..], &["b", "a"], &["a", "b"]] {
        assert_eq!(nested!(a_and_b, all(keys).reentrant()).unwrap(), ["a", "b"], "{keys:?}");
    }
    let shared = LockRequest::all([LockPart::shared("a"), LockPart::key("b")]);
    assert_eq!(nested!(a_share_and_b, shared.reentrant()).unwrap(), ["a", "b"]);
    assert_eq!(nested!(a_and_b, LockRequest::shared("b").reentrant()).unwrap(), ["a", "b"]);
    assert_eq!(nested!(tree, path("/T/x/y").reentrant()).unwrap(), ["/{T}"]);
    assert_eq!(nested!(two_leaves, path("/T/y/z").reentrant()).unwrap(), ["/{T}/x", "/{T}/y"]);
    let both = LockRequest::all([LockPath::from("/T/x"), LockPath::from("/T/y")]);
    assert_eq!(nested!(tree, both.reentrant()).unwrap(), ["/{T}"]);
}

#[tokio::test(start_paused = true)]
async fn keys_not_held_by_the_caller_are_acquired() {
    assert_eq!(nested!(a_and_b, all(&["c", "d"])).unwrap(), ["c", "d"]);
    assert_eq!(nested!(leaf, path("/T/y")).unwrap(), ["/{T}/y"]);
    assert_eq!(nested!(leaf_shared, path("/T/x").mode(Mode::Shared)).unwrap(), ["/{T}/x"]);
    assert_eq!(nested!(tree, LockRequest::new("/T/a")).unwrap(), ["/T/a"]);
}

fn assert_told(outcome: Result<Vec<String>, LockError>, part: &str, cure: &str) {
    let error = outcome.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, LockError::WouldDeadlock { .. }) && text.contains(part) && text.contains(cure), "{text}");
}

#[tokio::test(start_paused = true)]
async fn self_deadlock_error_names_the_conflicting_key() {
    let again = "would wait for its own caller";
    assert_told(nested!(a_and_b, all(&["a", "b"])), "needs \"a\", which is held by the call at", again);
    assert_told(nested!(a_and_b, all(&["b", "c"])), "\"b\" + \"c\" needs \"b\", which is held", again);
    assert_told(nested!(a_and_b, LockRequest::new("b")), "\"b\" is held by the call at", again);
    assert_told(
        nested!(a, all(&["a", "b"]).reentrant()),
        "needs \"a\", which is held",
        "needs more than the outer call \
                                                                                     holds",
    );
    assert_told(nested!(tree, path("/T/x")), "\"/{T}/x\" needs \"/{T}\", which is held", again);
    assert_told(
        nested!(leaf, path("/T")),
        "\"/{T}\" is above \"/{T}/x\", which is held",
        "lock the upper path in the \
                                                                                       outer call",
    );
    assert_told(
        nested!(leaf, path("/T").reentrant()),
        "\"/{T}\" is above \"/{T}/x\"",
        "lock the upper path in the outer \
                                                                                    call",
    );
    assert_told(nested!(tree_shared, path("/T/x").reentrant()), "needs \"/{T}\", which is shared", "`downgrade`");
    assert_told(nested!(leaf_shared, path("/T/x").reentrant()), "\"/{T}/x\" is shared by", "`downgrade`");
}

#[tokio::test(start_paused = true)]
async fn errors_name_all_keys_and_the_holder() {
    let manager = LockManager::in_memory();
    let (held, line) = (manager.acquire(all(&["b", "a"])).await.unwrap(), line!());
    let holder = format!("the call at {}:{line} in this process", file!());
    assert_eq!(held.key().to_string(), "\"a\" + \"b\"");
    let error = manager.try_acquire(all(&["b", "c"])).await.unwrap_err();
    assert_eq!(error.to_string(), format!("\"b\" + \"c\" is held by another owner: {holder}"));
    let error = manager.acquire(all(&["b", "c"]).wait(Duration::from_secs(2))).await.unwrap_err();
    let expected = format!("\"b\" + \"c\" was still held by another owner after a wait of 2.0s: {holder}");
    assert_eq!(error.to_string(), expected);
    let key = error.key().unwrap().clone();
    assert!(matches!(manager.acquire(key).await, Err(LockError::InvalidKey { .. })));
    let held_keys: Vec<_> = manager.held_locks()[0].keys.iter().map(ToString::to_string).collect();
    assert_eq!(held_keys, ["a", "b"]);
    drop(held);
    drop(manager.try_acquire(all(&["a", "b", "c"])).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn detached_multi_key_lock_is_attached_with_all_keys() {
    let manager = LockManager::in_memory();
    let request = || LockRequest::all([LockPart::shared("limits"), LockPart::path("/T/x y"), "a".into()]);
    let message = manager.acquire(request()).await.unwrap().detach().to_string();
    for key in ["a", "limits"] {
        assert!(manager.try_acquire(key).await.unwrap_err().is_contended(), "{key}");
    }
    assert!(manager.try_acquire(path("/T")).await.unwrap_err().is_contended());
    drop(manager.try_acquire(path("/T/z")).await.unwrap());
    let guard = manager.attach(message.parse().unwrap()).await.unwrap();
    assert_eq!(guard.keys().map(ToString::to_string).collect::<Vec<_>>(), ["/{T}/x y", "a", "limits"]);
    drop(manager.try_acquire(LockRequest::shared("limits")).await.unwrap());
    assert!(manager.try_acquire("a").await.unwrap_err().is_contended());
    guard.release().await.unwrap();
    drop(manager.try_acquire(request().mode(Mode::Exclusive)).await.unwrap());
    assert!(matches!(manager.attach(message.parse().unwrap()).await, Err(LockError::Lost { .. })));
}
