//! The manager that annotated functions use when they name none.

use super::LockManager;
use crate::error::LockError;
use std::future::Future;
use std::sync::OnceLock;

static INSTALLED: OnceLock<LockManager> = OnceLock::new();

tokio::task_local! {
    static SCOPED: LockManager;
}

pub(super) fn install(manager: LockManager) -> Result<(), LockError> {
    INSTALLED.set(manager).map_err(|_| {
        LockError::configuration(
            "a lock manager is installed already: install one at the start of main and nowhere else",
        )
    })
}

pub(super) fn scope<F: Future>(manager: LockManager, future: F) -> impl Future<Output = F::Output> {
    SCOPED.scope(manager, future)
}

pub(crate) fn current() -> Result<LockManager, LockError> {
    SCOPED.try_with(Clone::clone).ok().or_else(|| INSTALLED.get().cloned()).ok_or(LockError::NotInstalled)
}
