//! Timers for callers on any executor.
//!
//! A tokio timer belongs to the runtime in whose context it is created, and panics without a runtime. But the futures
//! of this library can be polled by any executor, such as `futures::executor::block_on`. Timers of such callers belong
//! to the library's thread, which is started on demand and never stops.

use crate::node::BackgroundThread;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::{Instant, Sleep, Timeout};

/// Variant of [`tokio::time::sleep`] for any executor.
pub(crate) fn sleep(duration: Duration) -> Sleep {
    in_context(|| tokio::time::sleep(duration))
}

/// Variant of [`tokio::time::sleep_until`] for any executor.
pub(crate) fn sleep_until(deadline: Instant) -> Sleep {
    in_context(|| tokio::time::sleep_until(deadline))
}

/// Variant of [`tokio::time::timeout`] for any executor.
pub(crate) fn timeout<F: Future>(duration: Duration, future: F) -> Timeout<F> {
    in_context(|| tokio::time::timeout(duration, future))
}

/// Returns the runtime of the caller, or else that of the library's thread. `None` if the system gives no thread.
pub(crate) fn runtime() -> Option<Handle> {
    Handle::try_current().ok().or_else(|| fallback().cloned())
}

/// Makes a timer in the context of a runtime.
fn in_context<T>(make: impl FnOnce() -> T) -> T {
    if Handle::try_current().is_ok() {
        return make();
    }
    let _context = fallback().map(Handle::enter);
    make()
}

/// The library's thread, kept for callers without a runtime.
fn fallback() -> Option<&'static Handle> {
    static KEPT: OnceLock<Option<Arc<BackgroundThread>>> = OnceLock::new();
    let kept = KEPT.get_or_init(|| BackgroundThread::shared().ok());
    kept.as_deref().map(BackgroundThread::handle)
}
