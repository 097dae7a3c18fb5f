//! Installed manager of one test.

use crate::manager::{LockManager, replace, restore};
use tokio::runtime::{Handle, Id};

/// Installs `manager` for the runtime of the test, until the guard is dropped. Use it for handlers that run in spawned tasks, which a
/// [`scope`](LockManager::scope) does not reach.
///
/// The manager is used by the test and by all tasks of its runtime. `#[tokio::test]` and [`explore`](super::explore) create one runtime
/// for each test and each seed, so tests can run in parallel. A scope takes precedence over this manager, and this manager takes
/// precedence over [`LockManager::install`].
///
/// A thread of `std::thread::spawn` has no runtime and does not use the manager.
///
/// # Panics
/// Outside of a tokio runtime, and if a manager is already installed for this runtime.
///
/// # Examples
/// ```
/// # #[cfg(feature = "macros")]
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use redlock_runtime::testing::{self, TestServers};
/// use redlock_runtime::{LockError, distributed_lock};
///
/// #[distributed_lock(key = "order:{id}")]
/// async fn capture(id: u64) -> Result<u64, LockError> {
///     Ok(id)
/// }
///
/// let servers = TestServers::new(1);
/// let _installed = testing::install(&servers.manager());
/// assert_eq!(tokio::spawn(capture(7)).await.unwrap().unwrap(), 7);
/// # }
/// # #[cfg(not(feature = "macros"))] fn main() {}
/// ```
#[must_use = "the manager is replaced until this is dropped: write `let _installed = ..`, because `let _ = ..` drops it at once"]
#[track_caller]
pub fn install(manager: &LockManager) -> Installed {
    let Ok(handle) = Handle::try_current() else {
        panic!("a manager is installed for the runtime of a test, and this is outside of one");
    };
    let runtime = handle.id();
    assert!(
        replace(runtime, manager.clone()),
        "this test has replaced the installed manager already: drop that guard first"
    );
    Installed { runtime }
}

/// Guard of [`install`]. Dropping it uninstalls the manager.
#[derive(Debug)]
pub struct Installed {
    runtime: Id,
}

impl Drop for Installed {
    fn drop(&mut self) {
        // Dropped here, under no lock.
        drop(restore(self.runtime));
    }
}
