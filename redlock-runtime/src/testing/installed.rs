//! A manager in the place of the installed one, for as long as a test takes.

use crate::manager::{LockManager, replace};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::{self, ThreadId};

/// The thread whose test has replaced the manager, if one has.
static TURN: (Mutex<Option<ThreadId>>, Condvar) = (Mutex::new(None), Condvar::new());

/// Puts `manager` in the place of the installed one until the guard is dropped: for handlers that run in spawned tasks, which a
/// [`scope`](LockManager::scope) does not reach.
///
/// There is one place in a process. Tests that use it take turns: this blocks the thread until no other test has it, so that they
/// may run in parallel to all others. A scope comes before it, and it comes before what [`LockManager::install`] has installed, which
/// is there again afterwards.
///
/// What a test has spawned, and goes on after it, meets the manager of the next one, or none: join it first.
///
/// # Panics
/// When the same thread has replaced it already: the guard of that one is still there, and this would wait for ever.
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
#[must_use = "the manager is replaced until this is dropped"]
pub fn install(manager: &LockManager) -> Installed {
    let (turn, is_over) = &TURN;
    let us = thread::current().id();
    // A test that has panicked has nothing half done here.
    let mut owner = turn.lock().unwrap_or_else(PoisonError::into_inner);
    let is_ours = *owner == Some(us);
    if is_ours {
        drop(owner);
        panic!("this test has replaced the installed manager already: drop that guard first");
    }
    while owner.is_some() {
        owner = is_over.wait(owner).unwrap_or_else(PoisonError::into_inner);
    }
    *owner = Some(us);
    replace(Some(manager.clone()));
    Installed { _private: () }
}

/// A manager is in the place of the installed one until this is dropped; see [`install`].
#[derive(Debug)]
pub struct Installed {
    _private: (),
}

impl Drop for Installed {
    fn drop(&mut self) {
        let (turn, is_over) = &TURN;
        let replaced = replace(None);
        *turn.lock().unwrap_or_else(PoisonError::into_inner) = None;
        is_over.notify_one();
        // Under no mutex.
        drop(replaced);
    }
}
