//! Faults of one server.

use super::server::Server;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// One of the [`TestServers`](super::TestServers), with methods that cause faults.
///
/// A fault lasts until [`up`](Self::up). Clones are the same server.
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
    /// Breaks all connections to the server and accepts no new ones. The server keeps its data, and leases continue to expire.
    pub fn down(&self) {
        self.0.cut();
    }

    /// Ends all faults of the server. A frozen server executes the pending commands now. Managers that were
    /// [cut off](super::TestServers::cut_off) stay cut off.
    pub fn up(&self) {
        self.0.recover();
    }

    /// Sets the round-trip time of commands from now on.
    pub fn slow(&self, round_trip: Duration) {
        self.0.slow(round_trip);
    }

    /// Freezes the server, like a stopped process: connections stay open, and no command is answered.
    pub fn freeze(&self) {
        self.0.freeze();
    }

    /// Restarts the server without its data. If there are several servers, it abstains for a while: see
    /// [`AfterRestart`](crate::tuning::AfterRestart) and [`max_ttl`](crate::tuning::Tuning::max_ttl). The server is not frozen, slow or
    /// refusing any more. A server that is down stays down.
    pub fn forget(&self) {
        self.0.forget();
    }

    /// Answers every command with this error, such as `LOADING Redis is loading the dataset in memory` or
    /// `NOPERM this user has no permissions`. The server executes no command and sends no messages. Calls classify the error by its text
    /// as temporary or permanent.
    pub fn refuse(&self, answer: &str) {
        self.0.refuse(answer);
    }
}

impl fmt::Debug for TestServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TestServer").field(&self.0.label).finish()
    }
}
