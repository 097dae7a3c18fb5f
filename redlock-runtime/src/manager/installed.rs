//! The manager that annotated functions use when they name none.

use super::LockManager;
use crate::error::LockError;
use pin_project_lite::pin_project;
use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};
use tokio::task::futures::TaskLocalFuture;

static INSTALLED: OnceLock<LockManager> = OnceLock::new();

/// Returns the manager of calls outside of a scope.
fn installed() -> Option<LockManager> {
    #[cfg(feature = "testing")]
    if let Some(replaced) = super::replaced::replaced() {
        return Some(replaced);
    }
    INSTALLED.get().cloned()
}

tokio::task_local! {
    static SCOPED: LockManager;
}

impl LockManager {
    /// Makes this the manager of all annotated functions without the option `manager`, until the process ends.
    ///
    /// The manager can be used on every runtime. The runtime on which it was built drives its connections: build it on a runtime that
    /// lives as long as the manager.
    ///
    /// # Errors
    /// [`LockError::Configuration`] if a manager is installed already. Tests with separate managers use [`scope`](Self::scope).
    pub fn install(&self) -> Result<(), LockError> {
        INSTALLED.set(self.clone()).map_err(|_| {
            LockError::configuration(
                "a lock manager is installed already: install one at the start of main and nowhere else",
            )
        })
    }

    /// Runs `future` with this manager in place of the installed one.
    ///
    /// It applies to the task that polls `future`, and to tasks in a [scope](crate::Inherited::scope) of a lock that they
    /// [inherit](crate::LockGuard::inherit). Other spawned tasks do not use this manager.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// LockManager::in_memory()
    ///     .scope(async {
    ///         let guard = LockManager::current()?.acquire("order:7").await?;
    ///         guard.release().await
    ///     })
    ///     .await
    /// # }
    /// ```
    pub fn scope<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        SCOPED.scope(self.clone(), future)
    }

    /// Returns the manager that annotated functions use here: that of the [`scope`](Self::scope), or the installed one.
    ///
    /// # Errors
    /// [`LockError::NotInstalled`] if there is neither.
    pub fn current() -> Result<Self, LockError> {
        scoped_manager().or_else(installed).ok_or(LockError::NotInstalled)
    }
}

/// Returns the manager of the innermost [`scope`](LockManager::scope) of this task.
pub(super) fn scoped_manager() -> Option<LockManager> {
    SCOPED.try_with(Clone::clone).ok()
}

pin_project! {
    /// Future that runs in the scoped manager of another task, if that task has one.
    #[project = InManagerProjection]
    pub(super) enum InManager<F> {
        Other { #[pin] future: TaskLocalFuture<LockManager, F> },
        Own { #[pin] future: F },
    }
}

impl<F: Future> InManager<F> {
    pub(super) fn new(manager: Option<LockManager>, future: F) -> Self {
        match manager {
            Some(manager) => Self::Other { future: SCOPED.scope(manager, future) },
            None => Self::Own { future },
        }
    }
}

impl<F: Future> Future for InManager<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        match self.project() {
            InManagerProjection::Other { future } => future.poll(cx),
            InManagerProjection::Own { future } => future.poll(cx),
        }
    }
}
