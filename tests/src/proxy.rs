//! TCP proxy that delays, drops, holds, forgets, cuts and refuses on demand.

mod connection;
mod flow;
mod traffic;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::{PATIENCE, RedisServer, eventually, port};

use connection::Shared;
pub use flow::Flow;
pub use traffic::{Direction, Traffic};

/// Number of ports that are tried. A try fails only if another process takes the port first.
const TRIES: usize = 10;

/// Faulty network in front of one server, on a separate loopback port.
///
/// Forwards everything at first. An order applies at once to all connections, present and future, and to bytes in transit:
/// the proxy decides on a chunk when the chunk is about to be delivered.
/// The proxy lives on the tokio runtime that started it. Dropping it resets its connections and frees the port.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    credentials: String,
    shared: Arc<Shared>,
    accepting: Mutex<Option<JoinHandle<()>>>,
}

impl Proxy {
    /// Starts a proxy for `target`.
    pub async fn start(target: SocketAddr) -> Self {
        for _ in 0..TRIES {
            let address = port::loopback(port::free());
            let Ok(listener) = TcpListener::bind(address).await else {
                continue;
            };
            let shared = Arc::new(Shared::new(target));
            let accepting = Mutex::new(Some(tokio::spawn(Arc::clone(&shared).accept(listener))));
            return Self { address, credentials: String::new(), shared, accepting };
        }
        panic!("{TRIES} free ports in a row were taken by others")
    }

    /// Starts a proxy for the plain port of `server`. The URL contains the server's credentials.
    pub async fn to(server: &RedisServer) -> Self {
        let mut proxy = Self::start(port::loopback(server.port())).await;
        proxy.credentials = server.credentials();
        proxy
    }

    /// Returns the address for clients.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns `redis://127.0.0.1:port/` of the proxy.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}{}/", self.credentials, self.address)
    }

    /// Sets the treatment of bytes from the client to the server.
    pub fn requests(&self, flow: Flow) {
        self.shared.requests.send_replace(flow);
    }

    /// Sets the treatment of bytes from the server to the client.
    pub fn replies(&self, flow: Flow) {
        self.shared.replies.send_replace(flow);
    }

    /// Forwards both directions again. Held bytes are delivered now.
    pub fn pass(&self) {
        self.requests(Flow::Pass);
        self.replies(Flow::Pass);
    }

    /// Delivers each byte the given time after its arrival. Throughput and order do not change.
    pub fn delay(&self, requests: Duration, replies: Duration) {
        self.requests(Flow::Delay(requests));
        self.replies(Flow::Delay(replies));
    }

    /// Drops the replies: the server still executes the requests. The other direction does not change.
    ///
    /// A connection is unusable after it has lost bytes. Call [`cut`](Self::cut) before the proxy forwards again.
    pub fn drop_replies(&self) {
        self.replies(Flow::Drop);
    }

    /// Drops the requests. The other direction does not change. Call [`cut`](Self::cut) before the proxy forwards again.
    pub fn drop_requests(&self) {
        self.requests(Flow::Drop);
    }

    /// Holds all bytes in both directions. Nothing is lost: [`pass`](Self::pass) delivers them.
    pub fn hold(&self) {
        self.requests(Flow::Hold);
        self.replies(Flow::Hold);
    }

    /// Resets every live connection (RST on both sides), and drops undelivered bytes. Returns after the connections are gone.
    /// New connections are accepted as before.
    pub async fn cut(&self) {
        for connection in self.shared.cut() {
            let _ = connection.await;
        }
    }

    /// Forgets all present connections without closing them: bytes that either side sends are acknowledged and lost.
    /// New connections work as before.
    pub fn forget(&self) {
        self.shared.forgets.send_replace(());
    }

    /// Connects new clients to the plain port of `server` from now on. Present connections stay.
    pub fn redirect_new_connections(&self, server: &RedisServer) {
        self.shared.target.send_replace(port::loopback(server.port()));
    }

    /// Connects to the plain port of `server` from now on, like an address that moves in a fail-over.
    /// Resets every live connection, as [`cut`](Self::cut) does.
    pub async fn redirect_all_connections(&self, server: &RedisServer) {
        self.redirect_new_connections(server);
        self.cut().await;
    }

    /// With `true`, new connections fail with "connection refused", and live connections stay. With `false`, the proxy listens again.
    pub async fn refuse(&self, refuse: bool) {
        let accepting = self.accepting().take();
        match (accepting, refuse) {
            (Some(task), true) => self.stop_accepting(task).await,
            (None, false) => {
                let listener = TcpListener::bind(self.address).await;
                let listener = listener.expect("the proxy's port is still free");
                *self.accepting() = Some(tokio::spawn(Arc::clone(&self.shared).accept(listener)));
            }
            (unchanged, _) => *self.accepting() = unchanged,
        }
    }

    /// Stops listening, and waits until the port is closed.
    /// The wait is needed: if another thread forks a server now, the child inherits our sockets, and the port listens until the child has
    /// closed them.
    async fn stop_accepting(&self, task: JoinHandle<()>) {
        task.abort();
        let _ = task.await;
        eventually(PATIENCE, "the proxy's port refuses", || async {
            match TcpStream::connect(self.address).await {
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(()),
                other => Err(other),
            }
        })
        .await;
    }

    /// Returns the traffic up to now.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        *self.shared.traffic.borrow()
    }

    /// Waits until the traffic satisfies `reached`, without polling.
    ///
    /// # Panics
    /// After [`PATIENCE`], with `what` and the traffic.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(proxy: redlock_tests::Proxy) {
    /// proxy.drop_replies();
    /// // .. send a command ..
    /// proxy.wait_until("a reply was lost", |traffic| traffic.replies.dropped > 0).await;
    /// # }
    /// ```
    pub async fn wait_until(&self, what: &str, reached: impl FnMut(&Traffic) -> bool) -> Traffic {
        let mut traffic = self.shared.traffic.subscribe();
        let waiting = tokio::time::timeout(PATIENCE, traffic.wait_for(reached));
        match waiting.await {
            Ok(Ok(reached)) => *reached,
            Ok(Err(_)) | Err(_) => panic!("not within {PATIENCE:?}: {what}; seen: {:?}", self.traffic()),
        }
    }

    fn accepting(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.accepting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(task) = self.accepting().take() {
            task.abort();
        }
        self.shared.cut();
    }
}
