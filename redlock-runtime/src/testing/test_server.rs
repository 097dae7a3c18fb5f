//! What can befall one server.

use super::server::Server;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// One of the [`TestServers`](super::TestServers), and what can befall it.
///
/// It stays in trouble until [`up`](Self::up). Clones are the same server.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// use redlock_runtime::{LockError, testing::TestServers};
///
/// let servers = TestServers::new(3);
/// let manager = servers.manager();
/// servers.node(0).down();
/// drop(manager.acquire("order:7").await.unwrap());
/// servers.node(1).refuse("LOADING Redis is loading the dataset in memory");
/// assert!(matches!(manager.try_acquire("order:7").await, Err(LockError::NoQuorum { .. })));
/// servers.node(1).up();
/// drop(manager.acquire("order:7").await.unwrap());
/// # }
/// ```
#[derive(Clone)]
pub struct TestServer(pub(super) Arc<Server>);

impl TestServer {
    /// Nobody can connect to it, and all connections break. It keeps what it knows, and leases go on running out there.
    pub fn down(&self) {
        self.0.cut();
    }

    /// Ends all its troubles: it is up, fast, executes commands and refuses none. What was asked of a frozen one is done now.
    /// Managers that are [cut off](super::TestServers::cut_off) stay so.
    pub fn up(&self) {
        self.0.recover();
    }

    /// Commands and answers take so long together, from now on.
    pub fn slow(&self, round_trip: Duration) {
        self.0.slow(round_trip);
    }

    /// It does nothing, as a process that was stopped: connections stay, and nobody gets an answer.
    pub fn freeze(&self) {
        self.0.freeze();
    }

    /// It starts again and knows nothing of any lock. Where there are several servers it does not count for a while; see
    /// [`AfterRestart`](crate::AfterRestart) and [`max_ttl`](crate::LockManagerBuilder::max_ttl). It is neither frozen, slow
    /// nor refusing any more; one that is down stays down.
    pub fn forget(&self) {
        self.0.forget();
    }

    /// It answers every command with this error, such as `LOADING Redis is loading the dataset in memory` or
    /// `NOPERM this user has no permissions`, executes none, and passes no message on. By the text, calls find out whether it passes.
    pub fn refuse(&self, answer: &str) {
        self.0.refuse(answer);
    }
}

impl fmt::Debug for TestServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TestServer").field(&self.0.label).finish()
    }
}
