//! A TCP proxy that delays, drops, holds, forgets, cuts and refuses on demand.

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

/// Ports tried before giving up; each try fails only if another process was faster.
const TRIES: usize = 10;

/// A faulty network in front of one server, on a loopback port of its own.
///
/// Passes everything on until told otherwise. An order applies at once to all connections, present and future, and to
/// bytes on their way: whether a chunk passes is decided when it is about to be delivered. Lives on the tokio runtime
/// it was started on; dropping it resets its connections and frees the port.
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

    /// Starts a proxy for the plain port of `server`; the URL carries the server's credentials.
    pub async fn to(server: &RedisServer) -> Self {
        let mut proxy = Self::start(port::loopback(server.port())).await;
        proxy.credentials = server.credentials();
        proxy
    }

    /// Where clients connect.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `redis://127.0.0.1:port/` of the proxy.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}{}/", self.credentials, self.address)
    }

    /// Decides the fate of bytes from the client to the server.
    pub fn requests(&self, flow: Flow) {
        self.shared.requests.send_replace(flow);
    }

    /// Decides the fate of bytes from the server to the client.
    pub fn replies(&self, flow: Flow) {
        self.shared.replies.send_replace(flow);
    }

    /// Both directions pass again; what was held is delivered now.
    pub fn pass(&self) {
        self.requests(Flow::Pass);
        self.replies(Flow::Pass);
    }

    /// Delivers each byte that much after it came in. Throughput and order stay.
    pub fn delay(&self, requests: Duration, replies: Duration) {
        self.requests(Flow::Delay(requests));
        self.replies(Flow::Delay(replies));
    }

    /// The server executes the requests and the replies are lost. The other direction stays as it is.
    ///
    /// No connection goes on after losing bytes in its midst: [`cut`](Self::cut) it before passing again.
    pub fn drop_replies(&self) {
        self.replies(Flow::Drop);
    }

    /// The requests never arrive. The other direction stays as it is; [`cut`](Self::cut) before passing again.
    pub fn drop_requests(&self) {
        self.requests(Flow::Drop);
    }

    /// Nothing gets through in either direction, and nothing is lost: [`pass`](Self::pass) delivers it.
    pub fn hold(&self) {
        self.requests(Flow::Hold);
        self.replies(Flow::Hold);
    }

    /// Resets every live connection (RST on both sides), undelivered bytes included; returns when they are gone.
    /// New connections are accepted as before.
    pub async fn cut(&self) {
        for connection in self.shared.cut() {
            let _ = connection.await;
        }
    }

    /// Forgets all connections that there are, without closing them: what either side sends on them is acknowledged and lost. New connections
    /// work as before.
    pub fn forget(&self) {
        self.shared.forgets.send_replace(());
    }

    /// New connections lead to the plain port of `server` from now on. The present ones stay.
    pub fn lead_new_to(&self, server: &RedisServer) {
        self.shared.target.send_replace(port::loopback(server.port()));
    }

    /// Leads to the plain port of `server` from now on, as an address does that moves in a fail-over: resets every live
    /// connection, as [`cut`](Self::cut) does.
    pub async fn lead_to(&self, server: &RedisServer) {
        self.lead_new_to(server);
        self.cut().await;
    }

    /// `true`: connecting fails with "connection refused" from now on; live connections stay. `false`: listens again.
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

    /// Another thread that forks a server just now copies our sockets: the port listens on until that child has
    /// closed its copy, so the end is awaited and not assumed.
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

    /// What has gone through so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        *self.shared.traffic.borrow()
    }

    /// Waits until the traffic satisfies `reached`, without polling.
    ///
    /// # Panics
    /// After [`PATIENCE`], naming `what` and the traffic there was.
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
