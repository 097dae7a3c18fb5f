//! Confirmed release, for `release = confirmed`: the call ends when the nodes have confirmed the release.

use crate::LockGuard;
use crate::observe::events;
use std::future::Future;
use std::pin::Pin;

/// Releases the lock and waits for the answer.
///
/// The body has ended, and its result is what the caller needs. So a failed release is only logged. The future is boxed, so that it
/// adds one pointer to the caller's future.
#[must_use]
pub fn release_confirmed(guard: impl Into<LockGuard>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    confirmed(guard.into())
}

fn confirmed(guard: LockGuard) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let released = guard.release();
    Box::pin(async move {
        if let Err(error) = released.await {
            let shared = guard.held().acquisition().shared();
            events::release_unconfirmed(shared.told(guard.key()), error.told(shared.policy.redaction));
        }
    })
}
