//! The servers of one test, and the managers that share them.

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
use crate::stats::{Journal, Notebook};
use crate::time::clock::Clock;
use fastrand::Rng;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

/// Servers in the memory of a test, which several managers share: what two processes and a Redis are outside of it.
///
/// They know the same commands as a Redis server, and follow tokio's clock: under `start_paused`, a lease of 30 seconds runs out
/// in no time, and otherwise in 30 seconds. A command to a server that is well is executed before the call that sends it goes on,
/// so that a guard that was dropped has given its lock back; what a server says unasked comes as soon as the test awaits
/// something.
///
/// Clones are the same servers. They, their managers and their log go with the last of them.
///
/// # Panics
/// It is for tests: where a test asks for something that cannot be, such as a lock that is taken, it panics and says so.
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
/// servers.hold("order:7").await; // somebody else
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
    /// How many managers there are.
    managers: AtomicUsize,
    /// Who has what [`TestServers::hold`] has taken.
    somebody: OnceLock<LockManager>,
    taken: Mutex<BTreeMap<String, Vec<LockGuard>>>,
    random: Mutex<Rng>,
    /// What gets the servers into trouble.
    trouble: Mutex<Vec<AbortHandle>>,
    /// Whether they are those of a run of `explore`.
    is_explored: bool,
}

impl TestServers {
    /// So many servers, which are well.
    ///
    /// One server is trusted after a restart, and several are not for a while, as outside of tests: see
    /// [`AfterRestart`](crate::AfterRestart).
    ///
    /// # Panics
    /// For no servers.
    #[must_use]
    #[track_caller]
    pub fn new(servers: usize) -> Self {
        Self::with(servers, Clock::tokio(), (false, 0))
    }

    /// The same with another clock, whether they are those of a run of `explore`, and chance that begins with `seed`.
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

    /// A manager with these servers: one more process, as far as the servers can tell.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    #[track_caller]
    pub fn manager(&self) -> LockManager {
        self.manager_with(LockManager::builder())
    }

    /// The same with the settings of `builder`, which has no nodes.
    ///
    /// # Panics
    /// Outside of a tokio runtime, and for settings that [`build`](LockManagerBuilder::build) refuses.
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
        match self.make(builder, id, Some(Notebook { journal: Arc::clone(&self.0.journal), manager })) {
            Ok(manager) => manager,
            Err(error) => panic!("no manager can be made of this: {error}"),
        }
    }

    fn make(
        &self,
        builder: LockManagerBuilder,
        id: ManagerId,
        notebook: Option<Notebook>,
    ) -> Result<LockManager, LockError> {
        let Inner { name, clock, servers, .. } = &*self.0;
        let node = |server: Arc<Server>| {
            move |environment| -> Arc<dyn Node> { Arc::new(TestNode::connect(&server, environment)) }
        };
        let nodes = servers.iter().cloned().map(node).collect();
        builder.build_of_nodes(Made { id, clock: *clock, servers_are: name, is_replayed: true, notebook }, nodes)
    }

    /// The server with that number, from 0, and what can befall it.
    ///
    /// # Panics
    /// When there are fewer servers.
    #[track_caller]
    #[must_use]
    pub fn node(&self, number: usize) -> TestServer {
        match self.0.servers.get(number) {
            Some(server) => TestServer(Arc::clone(server)),
            None => panic!("there are {} servers, and the first one has the number 0", self.0.servers.len()),
        }
    }

    /// Every server, in the order of their numbers.
    pub fn nodes(&self) -> impl Iterator<Item = TestServer> {
        self.0.servers.iter().map(|server| TestServer(Arc::clone(server)))
    }

    /// What becomes of the calls of all managers with these servers, from the beginning.
    #[must_use]
    pub fn log(&self) -> Log {
        Log(Arc::clone(&self.0.journal))
    }

    /// The connections of this manager to all servers break, and it cannot connect: its process is cut off from the network, and
    /// others are not. Its leases go on running out at the servers. It stays so until [`reconnect`](Self::reconnect).
    ///
    /// # Panics
    /// For a manager of other servers.
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

    /// A manager that was [cut off](Self::cut_off) is connected again, to those servers that are up.
    ///
    /// # Panics
    /// For a manager of other servers.
    #[track_caller]
    pub fn reconnect(&self, manager: &LockManager) {
        let channel = channel(&manager.shared().id.to_string());
        let is_ours = self.is_ours(manager) && self.0.servers.iter().all(|server| server.let_in(&channel));
        assert!(is_ours, "the manager has other servers than these");
    }

    fn is_ours(&self, manager: &LockManager) -> bool {
        manager.shared().servers_are.as_deref() == Some(&self.0.name)
    }

    /// Waits for a time that chance decides, up to `most`: in a run of [`explore`](super::explore), the seed does, and otherwise it
    /// is the same in every run.
    ///
    /// # Cancel safety
    /// Nothing is left behind.
    pub async fn random_pause(&self, most: Duration) {
        let micros = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
        let pause = self.random().u64(0..=micros);
        tokio::time::sleep(Duration::from_micros(pause)).await;
    }

    /// No trouble begins any more in this run of [`explore`](super::explore), and all that there is ends: to see that the program
    /// gets on again. Servers that have restarted without their data do not count for a while yet.
    pub fn calm(&self) {
        let trouble = std::mem::take(&mut *self.0.trouble.lock().unwrap_or_else(PoisonError::into_inner));
        trouble.iter().for_each(AbortHandle::abort);
        for server in &self.0.servers {
            server.recover();
            for channel in server.channels() {
                server.let_in(&channel);
            }
        }
    }

    /// That gets the servers into trouble until it is calm.
    pub(super) fn get_into(&self, trouble: Vec<AbortHandle>) {
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
