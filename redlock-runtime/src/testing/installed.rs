//! A manager in the place of the installed one, for as long as a test takes.

use crate::manager::{LockManager, replace, restore};
use tokio::runtime::{Handle, Id};

/// Puts `manager` in the place of the installed one until the guard is dropped: for handlers that run in spawned tasks, which a
/// [`scope`](LockManager::scope) does not reach.
///
/// It is there for everything that runs in the runtime of the test: the test itself, the tasks that it spawns, and what they
/// spawn. `#[tokio::test]` and [`explore`](super::explore) make a runtime of its own for each test and each seed, so that tests
/// that run at the same time do not meet. A scope comes before it, and it comes before what [`LockManager::install`] has installed.
///
/// A thread of one's own, `std::thread::spawn`, is in no runtime and does not see it.
///
/// # Panics
/// Outside of a tokio runtime, and when there is one in the same runtime already.
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

/// A manager is in the place of the installed one until this is dropped; see [`install`].
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
