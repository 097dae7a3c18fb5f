//! The managers that tests have put in the place of the installed one, each in its own runtime.

use super::LockManager;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};
use tokio::runtime::{Handle, Id};

/// Whether there has ever been one: whoever has none pays for no mutex.
static IS_USED: AtomicBool = AtomicBool::new(false);

/// By the runtime whose tasks use it, so that tests that run at the same time do not meet.
static REPLACED: RwLock<Vec<(Id, LockManager)>> = RwLock::new(Vec::new());

/// Puts `manager` in the place of the installed one for everything that runs in `runtime`. `false` when another one is there.
pub(crate) fn replace(runtime: Id, manager: LockManager) -> bool {
    IS_USED.store(true, Ordering::Release);
    // No code that can panic runs under this lock.
    let mut replaced = REPLACED.write().unwrap_or_else(PoisonError::into_inner);
    if replaced.iter().any(|(present, _)| *present == runtime) {
        return false;
    }
    replaced.push((runtime, manager));
    true
}

/// The installed manager is in its place again. What was there is returned.
pub(crate) fn restore(runtime: Id) -> Option<LockManager> {
    let mut replaced = REPLACED.write().unwrap_or_else(PoisonError::into_inner);
    let position = replaced.iter().position(|(present, _)| *present == runtime)?;
    Some(replaced.swap_remove(position).1)
}

/// The manager in the place of the installed one, in the runtime that this is called in.
pub(super) fn replaced() -> Option<LockManager> {
    if !IS_USED.load(Ordering::Acquire) {
        return None;
    }
    let runtime = Handle::try_current().ok()?.id();
    let replaced = REPLACED.read().unwrap_or_else(PoisonError::into_inner);
    replaced.iter().find(|(present, _)| *present == runtime).map(|(_, manager)| manager.clone())
}
