//! Servers of one test, and the managers that share them.

mod somebody;

use super::log::Log;
use super::node::TestNode;
use super::server::Server;
use super::test_server::TestServer;
use crate::error::LockError;
use crate::guard::LockGuard;
use crate::lock::owner_token::ManagerId;
use crate::manager::{LockManager, LockManagerBuilder, Made};
use crate::node::Node;
use crate::protocol::wakeup::channel;
use crate::stats::{CallLog, Journal};
use crate::time::clock::Clock;
use fastrand::Rng;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

/// In-memory servers of one test. Several managers can share them, like several processes share a Redis server.
///
/// - The servers execute the commands of this library like a Redis server.
/// - The servers use tokio's clock. With `start_paused`, a lease of 30 seconds expires at once; otherwise in 30 seconds.
/// - A healthy server executes a command before the call that sends it continues. So a dropped guard has released its lock.
/// - Wake-ups arrive when the test awaits.
///
/// Clones are the same servers. The servers, their managers and their log are freed with the last clone.
///
/// # Panics
/// If a test requests something impossible, such as holding a lock that is taken, the method panics with the reason.
///
/// # Examples
/// ```
/// # #[cfg(feature = "macros")]
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use redlock_runtime::testing::TestServers;
/// use redlock_runtime::{LockError, distributed_lock};
///
/// #[distributed_lock(key = "order:{id}", wait = 2)]
/// async fn capture(id: u64) -> Result<u64, LockError> {
///     Ok(id)
/// }
///
/// let servers = TestServers::new(3);
/// let (ours, theirs) = (servers.manager(), servers.manager());
///
/// servers.hold("order:7").await; // another owner
/// assert!(ours.scope(capture(7)).await.unwrap_err().is_contended());
/// servers.release("order:7");
/// servers.node(0).down();
/// assert_eq!(theirs.scope(capture(7)).await.unwrap(), 7);
/// assert_eq!(servers.log().acquired(), ["order:7"]);
/// # }
/// # #[cfg(not(feature = "macros"))] fn main() {}
/// ```
#[derive(Clone)]
pub struct TestServers(Arc<Inner>);

struct Inner {
    name: String,
    clock: Clock,
    servers: Vec<Arc<Server>>,
    journal: Arc<Journal>,
    /// Number of managers.
    managers: AtomicUsize,
    /// Owner of the locks of [`TestServers::hold`].
    somebody: OnceLock<LockManager>,
    taken: Mutex<BTreeMap<String, Vec<LockGuard>>>,
    random: Mutex<Rng>,
    /// Source of random faults.
    trouble: Mutex<Vec<AbortHandle>>,
    /// `true` in a run of `explore`.
    is_explored: bool,
}

impl TestServers {
    /// Creates the given number of healthy servers.
    ///
    /// A single server votes at once after a restart, and several servers abstain for a while, like real servers: see
    /// [`AfterRestart`](crate::tuning::AfterRestart).
    ///
    /// # Panics
    /// If the number is 0.
    #[must_use]
    #[track_caller]
    pub fn new(servers: usize) -> Self {
        Self::with(servers, Clock::tokio(), (false, 0))
    }

    /// Creates servers with another clock and a random `seed`, for a run of `explore` or not.
    #[track_caller]
    pub(super) fn with(servers: usize, clock: Clock, (is_explored, seed): (bool, u64)) -> Self {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        assert!(servers > 0, "locks need a server: write `TestServers::new(1)`, or more");
        let name = format!("test servers {}", MADE.fetch_add(1, Ordering::Relaxed));
        let server = |number| Arc::new(Server::new(format!("test-{number}:6379"), clock));
        Self(Arc::new(Inner {
            name,
            clock,
            servers: (1..=servers).map(server).collect(),
            journal: Arc::new(Journal::new(clock)),
            managers: AtomicUsize::new(0),
            somebody: OnceLock::new(),
            taken: Mutex::default(),
            random: Mutex::new(Rng::with_seed(seed)),
            trouble: Mutex::default(),
            is_explored,
        }))
    }

    /// Creates a manager with these servers. The servers treat each manager as another process.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    #[track_caller]
    pub fn manager(&self) -> LockManager {
        self.manager_with(LockManager::builder())
    }

    /// Creates a manager with these servers and the settings of `builder`, which must not have nodes.
    ///
    /// # Panics
    /// Outside of a tokio runtime, and for settings that [`build`](LockManagerBuilder::build) rejects.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
    /// use redlock_runtime::{LockManager, testing::TestServers};
    /// use std::time::Duration;
    ///
    /// let servers = TestServers::new(1);
    /// let manager = servers.manager_with(LockManager::builder().namespace("shop").linger(Duration::from_secs(2)));
    /// drop(manager.acquire("order:7").await.unwrap());
    /// servers.hold("shop:order:7").await;
    /// # }
    /// ```
    #[track_caller]
    #[must_use]
    pub fn manager_with(&self, builder: LockManagerBuilder) -> LockManager {
        assert!(Handle::try_current().is_ok(), "a manager needs a tokio runtime, and this is outside of one");
        let manager = self.0.managers.fetch_add(1, Ordering::Relaxed);
        let id = ManagerId::numbered(u128::try_from(manager).unwrap_or_default() + 1);
        match self.make(builder, id, Some(CallLog { journal: Arc::clone(&self.0.journal), manager })) {
            Ok(manager) => manager,
            Err(error) => panic!("no manager can be made of this: {error}"),
        }
    }

    fn make(
        &self,
        builder: LockManagerBuilder,
        id: ManagerId,
        notebook: Option<CallLog>,
    ) -> Result<LockManager, LockError> {
        let Inner { name, clock, servers, .. } = &*self.0;
        let node = |server: Arc<Server>| {
            move |environment| -> Arc<dyn Node> { Arc::new(TestNode::connect(&server, environment)) }
        };
        let nodes = servers.iter().cloned().map(node).collect();
        builder.build_with_nodes(Made { id, clock: *clock, servers_are: name, is_replayed: true, notebook }, nodes)
    }

    /// Returns the server with this number, from 0.
    ///
    /// # Panics
    /// If there are fewer servers.
    #[track_caller]
    #[must_use]
    pub fn node(&self, number: usize) -> TestServer {
        match self.0.servers.get(number) {
            Some(server) => TestServer(Arc::clone(server)),
            None => panic!("there are {} servers, and the first one has the number 0", self.0.servers.len()),
        }
    }

    /// Returns all servers, in the order of their numbers.
    pub fn nodes(&self) -> impl Iterator<Item = TestServer> {
        self.0.servers.iter().map(|server| TestServer(Arc::clone(server)))
    }

    /// Returns the log of the calls of all managers with these servers, from the beginning.
    #[must_use]
    pub fn log(&self) -> Log {
        Log(Arc::clone(&self.0.journal))
    }

    /// Cuts this manager off from all servers, until [`reconnect`](Self::reconnect). Other managers stay connected. The leases of the
    /// manager continue to expire at the servers.
    ///
    /// # Panics
    /// If the manager has other servers.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
    /// use redlock_runtime::{LockError, testing::TestServers};
    ///
    /// let servers = TestServers::new(3);
    /// let (ours, theirs) = (servers.manager(), servers.manager());
    /// servers.cut_off(&ours);
    /// assert!(matches!(ours.try_acquire("order:7").await, Err(LockError::NoQuorum { .. })));
    /// drop(theirs.acquire("order:7").await.unwrap());
    /// servers.reconnect(&ours);
    /// drop(ours.acquire("order:7").await.unwrap());
    /// # }
    /// ```
    #[track_caller]
    pub fn cut_off(&self, manager: &LockManager) {
        let channel = channel(&manager.shared().id.to_string());
        let is_ours = self.is_ours(manager) && self.0.servers.iter().all(|server| server.cut_off(&channel));
        assert!(is_ours, "the manager has other servers than these");
    }

    /// Reconnects a manager that was [cut off](Self::cut_off) to the servers that are up.
    ///
    /// # Panics
    /// If the manager has other servers.
    #[track_caller]
    pub fn reconnect(&self, manager: &LockManager) {
        let channel = channel(&manager.shared().id.to_string());
        let is_ours = self.is_ours(manager) && self.0.servers.iter().all(|server| server.reconnect_manager(&channel));
        assert!(is_ours, "the manager has other servers than these");
    }

    fn is_ours(&self, manager: &LockManager) -> bool {
        manager.shared().servers_are.as_deref() == Some(&self.0.name)
    }

    /// Sleeps for a random time, up to `most`. In a run of [`explore`](super::explore), the seed determines the time. Otherwise it is the
    /// same in each run.
    ///
    /// # Cancel safety
    /// Cancel safe: it only sleeps.
    pub async fn random_pause(&self, most: Duration) {
        let micros = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
        let pause = self.random().u64(0..=micros);
        tokio::time::sleep(Duration::from_micros(pause)).await;
    }

    /// Ends all faults in this run of [`explore`](super::explore), and starts no new ones. Use it to test that the program recovers.
    /// Servers that have restarted without their data still abstain for a while.
    pub fn calm(&self) {
        let trouble = std::mem::take(&mut *self.0.trouble.lock().unwrap_or_else(PoisonError::into_inner));
        trouble.iter().for_each(AbortHandle::abort);
        for server in &self.0.servers {
            server.recover();
            for channel in server.channels() {
                server.reconnect_manager(&channel);
            }
        }
    }

    /// Sets the source of random faults, until [`calm`](Self::calm).
    pub(super) fn set_fault_tasks(&self, trouble: Vec<AbortHandle>) {
        *self.0.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    pub(super) fn random(&self) -> MutexGuard<'_, Rng> {
        // No code that can panic runs under this mutex.
        self.0.random.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn servers(&self) -> &[Arc<Server>] {
        &self.0.servers
    }
}

impl fmt::Debug for TestServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestServers").field("servers", &self.0.servers.len()).finish_non_exhaustive()
    }
}
