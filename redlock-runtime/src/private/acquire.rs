//! Starts an acquisition.

use super::Settings;
use crate::manager::installed;
use crate::{LockError, LockGuard, LockKey, LockManager, LockRequest};
use std::fmt;
use std::future::Future;
use std::pin::Pin;

/// The future of one acquisition: boxed and not generic, so that it adds one pointer to the caller's future.
pub type Acquire = Pin<Box<dyn Future<Output = Result<LockGuard, LockError>> + Send>>;

/// Acquires `key` with `manager`, or with the manager that is installed at the first poll.
///
/// Not an `async fn`: the key is formatted before the future exists, because `fmt::Arguments` held across an await
/// would make the caller's future `!Send`.
#[must_use]
pub fn acquire(manager: Option<&LockManager>, key: fmt::Arguments<'_>, settings: Settings) -> Acquire {
    let request = LockRequest {
        key: LockKey::from_template(key.to_string()),
        ttl: settings.ttl,
        wait: settings.wait,
        hold: settings.hold,
    };
    let manager = manager.cloned();
    Box::pin(async move {
        let manager = manager.map_or_else(installed::current, Ok)?;
        crate::acquire::acquire(&manager.core, request).await.map(LockGuard::new)
    })
}
