#![deny(warnings)]
#![allow(dead_code, unreachable_pub, reason = "also a module of the attribute tests")]
//! Lists of keys and paths, in every form of function.

use async_trait::async_trait;
use redlock_runtime::{LockError, LockManager, distributed_lock, distributed_lock_defaults};
use std::pin::Pin;

#[distributed_lock(key = ["account:{from}", "account:{to}"])]
pub async fn transfer(from: u64, to: &str) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key([shared("limits:{tenant}"), exclusive("order:{first}"), "stock"], first = lines.len() + 1,), mode = shared)]
pub async fn capture<T: std::fmt::Display + Send + Sync>(tenant: T, lines: &[u64]) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(path = "/{tenant}/100%/{{literal}}-x/{dir:/}/v{major:02}-{minor}")]
pub async fn read(tenant: &str, dir: String, major: u32, minor: &str) -> Result<String, LockError> {
    Ok(dir)
}

#[distributed_lock(path = ["/{tenant}/{from}", shared("/{tenant}/{to}")], guard = lock)]
pub async fn rename(tenant: u64, from: &str, to: &str) -> Result<usize, LockError> {
    Ok(lock.keys().count())
}

#[distributed_lock(path = "/{tenant}", fencing, guard = lock)]
pub async fn number(tenant: u64) -> Result<u64, LockError> {
    Ok(lock.fencing_token().as_u64())
}

#[distributed_lock(path = "/{tenant}/{folder}", fencing, guard = lock)]
pub async fn number_below(tenant: u64, folder: &str) -> Result<u64, LockError> {
    Ok(lock.fencing_token().as_u64())
}

#[distributed_lock(key = ["account:{from}", "account:{to}", shared("limits")], fencing, guard = lock)]
pub async fn number_together(from: u64, to: u64) -> Result<u64, LockError> {
    Ok(lock.fencing_token().as_u64())
}

#[distributed_lock(key = [shared("a")])]
pub async fn one() -> Result<(), LockError> {
    Ok(())
}

pub struct Bank {
    pub locks: LockManager,
    pub tenant: String,
}

#[distributed_lock_defaults(manager = self.locks, ttl = 10)]
impl Bank {
    #[distributed_lock(key = ["{self.tenant}:{from}", "{self.tenant}:{to}"], reentrant, wait = none, on_contended = skip)]
    pub async fn transfer(&self, from: u64, to: u64) -> Result<(), LockError> {
        Ok(())
    }

    #[distributed_lock(path = "/{self.tenant}/{id}")]
    pub fn future(&self, id: u64) -> impl Future<Output = Result<u64, LockError>> + Send {
        async move { Ok(id) }
    }

    #[distributed_lock(key = ["a:{id}", "b:{id}"])]
    pub fn boxed(&self, id: u64) -> Pin<Box<dyn Future<Output = Result<u64, LockError>> + Send>> {
        Box::pin(async move { Ok(id) })
    }
}

#[async_trait]
pub trait Files {
    async fn remove(&self, dir: String) -> Result<(), LockError>;
}

#[async_trait]
impl Files for Bank {
    #[distributed_lock(path = "/{self.tenant}/{dir:/}", manager = self.locks)]
    async fn remove(&self, dir: String) -> Result<(), LockError> {
        drop(dir);
        Ok(())
    }
}

pub trait Accounts {
    fn locks(&self) -> &LockManager;

    #[distributed_lock(key = ["account:{from}", "account:{to}"], manager = self.locks())]
    fn swap(&self, from: u64, to: u64) -> impl Future<Output = Result<(), LockError>> + Send {
        async move {
            let _ = (from, to);
            Ok(())
        }
    }
}

/// Names that the expansion uses, with another meaning.
pub async fn hidden(key: u64, path: u64) -> Result<(), LockError> {
    #[distributed_lock(key = ["{key}", "{path}:p"])]
    async fn inner(key: u64, path: u64) -> Result<(), LockError> {
        let _ = (key, path);
        Ok(())
    }
    inner(key, path).await
}

fn assert_send<T: Send>(_: T) {}

pub fn futures(bank: &'static Bank) {
    assert_send(transfer(1, "b"));
    assert_send(capture(1, &[2]));
    assert_send(rename(1, "a", "b"));
    assert_send(bank.transfer(1, 2));
}
