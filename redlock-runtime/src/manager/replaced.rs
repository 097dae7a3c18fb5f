//! Managers that tests use in place of the installed one, one per runtime.

use super::LockManager;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};
use tokio::runtime::{Handle, Id};

/// `true` once a manager was replaced. Programs without such tests never lock `REPLACED`.
static IS_USED: AtomicBool = AtomicBool::new(false);

/// Replacements by runtime, so that concurrent tests do not affect each other.
static REPLACED: RwLock<Vec<(Id, LockManager)>> = RwLock::new(Vec::new());

/// Replaces the installed manager for all tasks of `runtime`. Returns `false` if the runtime already has a replacement.
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

/// Removes and returns the replacement.
pub(crate) fn restore(runtime: Id) -> Option<LockManager> {
    let mut replaced = REPLACED.write().unwrap_or_else(PoisonError::into_inner);
    let position = replaced.iter().position(|(present, _)| *present == runtime)?;
    Some(replaced.swap_remove(position).1)
}

/// Returns the replacement in the current runtime.
pub(super) fn replaced() -> Option<LockManager> {
    if !IS_USED.load(Ordering::Acquire) {
        return None;
    }
    let runtime = Handle::try_current().ok()?.id();
    let replaced = REPLACED.read().unwrap_or_else(PoisonError::into_inner);
    replaced.iter().find(|(present, _)| *present == runtime).map(|(_, manager)| manager.clone())
}
