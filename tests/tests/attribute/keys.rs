//! Keys that calls lock.
#![allow(deprecated, reason = "functions that call themselves with the same key, to be told which it is")]

use crate::is_free;
use redlock_runtime::{LockError, LockManager, distributed_lock};
use std::collections::HashMap;
use std::fmt;

/// Returns the key of a call, from the error of a second call in its body.
fn key_of<T: fmt::Debug>(result: Result<T, LockError>) -> String {
    match result {
        Err(LockError::Contended { key, .. }) => key.as_str().to_owned(),
        other => panic!("not contended: {other:?}"),
    }
}

struct Path<T>(T);

struct Order {
    lines: (Line, u8),
    r#type: &'static str,
}

struct Line {
    sku: String,
}

#[distributed_lock(key = "{left}:{right}", wait = none)]
async fn pair(left: &str, right: &str, nested: bool) -> Result<String, LockError> {
    if nested { Ok(key_of(Box::pin(pair(left, right, false)).await)) } else { Ok(String::new()) }
}

#[distributed_lock(key = "a{x}é{{{y}}}{{{x}/{z}", wait = none)]
async fn triple(x: &str, y: &str, z: &str, nested: bool) -> Result<String, LockError> {
    if nested { Ok(key_of(Box::pin(triple(x, y, z, false)).await)) } else { Ok(String::new()) }
}

#[distributed_lock(key = "{type}/{order.lines.0.sku}:{order.lines.1}:{order.type}:{id}", wait = none)]
async fn fields(order: &Order, r#type: u8, Path(id): Path<u64>, nested: bool) -> Result<String, LockError> {
    if nested {
        return Ok(key_of(Box::pin(fields(order, r#type, Path(id), false)).await));
    }
    Ok(String::new())
}

/// Values that break other libraries: separators, braces, escapes, control characters, nothing, a lot.
fn hostile() -> Vec<String> {
    let short = ["", ":", "::", "%", "%3A", "%25", "a", "a:", ":a", "{", "}", "/", "é", "\0", "\n", "3A", "名"];
    short.into_iter().map(str::to_owned).chain(["x".repeat(400)]).collect()
}

#[tokio::test]
async fn ordinary_values_are_readable_in_keys() {
    let manager = LockManager::in_memory();
    let order = Order { lines: (Line { sku: "a/b".into() }, 2), r#type: "new" };
    let keys = async { (pair("7", "a:b", true).await.unwrap(), fields(&order, 1, Path(9), true).await.unwrap()) };
    let (pair, fields) = manager.scope(keys).await;
    assert_eq!(pair, "7:a:b");
    assert_eq!(fields, "1/a/b:2:new:9");
}

#[tokio::test]
async fn different_arguments_never_lock_the_same_key() {
    let manager = LockManager::in_memory();
    let calls = async {
        let mut pairs = HashMap::new();
        for left in hostile() {
            for right in hostile() {
                let key = pair(&left, &right, true).await.unwrap();
                let arguments = (left.clone(), right);
                assert_eq!(pairs.insert(key, arguments.clone()), None, "{arguments:?}");
            }
        }
        let mut triples = HashMap::new();
        let values = ["", "é", "{", "}", "/", "%", "%2F", "a", "}{"];
        for (x, y, z) in values
            .iter()
            .flat_map(|x| values.iter().map(move |y| (x, y)))
            .flat_map(|(x, y)| values.iter().map(move |z| (*x, *y, *z)))
        {
            let key = triple(x, y, z, true).await.unwrap();
            assert_eq!(triples.insert(key, (x, y, z)), None, "{x:?} {y:?} {z:?}");
        }
    };
    manager.scope(calls).await;
}

#[tokio::test]
async fn key_is_formatted_once_before_the_body() {
    struct Counted(std::cell::Cell<u32>);

    impl fmt::Display for Counted {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.set(self.0.get() + 1);
            write!(f, "{}", self.0.get())
        }
    }

    #[distributed_lock(key = "counted:{counted}")]
    async fn call(counted: Counted, manager: LockManager) -> Result<Counted, LockError> {
        assert_eq!(counted.0.get(), 1);
        assert!(!is_free(&manager, "counted:1").await);
        Ok(counted)
    }

    let manager = LockManager::in_memory();
    let counted = manager.scope(call(Counted(0.into()), manager.clone())).await.unwrap();
    assert_eq!(counted.0.get(), 1);
    assert!(is_free(&manager, "counted:1").await);
}
