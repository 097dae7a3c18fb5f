//! Starts an acquisition.

use super::Settings;
use crate::client::acquire;
use crate::manager::installed;
use crate::{FencedGuard, LockError, LockGuard, LockKey, LockManager, LockRequest};
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
    let (manager, request) = (manager.cloned(), request(key, settings));
    Box::pin(async move {
        let manager = manager.map_or_else(installed::current, Ok)?;
        acquire::acquire(&manager.local, request).await.map(|obtained| LockGuard::new(obtained.turn))
    })
}

/// The future of one fenced acquisition.
pub type AcquireFenced = Pin<Box<dyn Future<Output = Result<FencedGuard, LockError>> + Send>>;

/// As [`acquire`], for `fencing`.
#[must_use]
pub fn acquire_fenced(manager: Option<&LockManager>, key: fmt::Arguments<'_>, settings: Settings) -> AcquireFenced {
    let (manager, request) = (manager.cloned(), LockRequest { is_fenced: true, ..request(key, settings) });
    Box::pin(async move {
        let manager = manager.map_or_else(installed::current, Ok)?;
        acquire::acquire(&manager.local, request).await.and_then(FencedGuard::new)
    })
}

fn request(key: fmt::Arguments<'_>, settings: Settings) -> LockRequest {
    LockRequest {
        key: LockKey::from_template(key.to_string()),
        ttl: settings.ttl,
        wait: settings.wait,
        hold: settings.hold,
        is_fenced: false,
    }
}
