//! Opens a connection to a server, up to the start of the Redis protocol.

use super::bounded::{Bounded, Received};
use super::dial::{dial, dial_at};
use super::endpoint::{Address, Endpoint, Located};
use super::migratable_socket::{DriverSlot, MigratableSocket, Transport};
use super::progress::Progress;
#[cfg(any(unix, feature = "tls"))]
use super::progress::Step;
use super::stream::Stream;
use crate::error::NodeError;
#[cfg(feature = "tls")]
use crate::text::excerpt;
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::net::TcpStream;

/// Approximate time after which a server is noticed that has vanished without closing its connections. Too small: a brief interruption of
/// the network breaks connections that would have survived. Too large: callers send useless commands for longer.
const SILENCE: Duration = Duration::from_secs(10);

/// TCP, TLS or a unix socket.
pub(super) type Socket = Box<dyn Stream>;

/// A socket, and its shared state, which other tasks read while it is in use.
pub(super) struct Opened {
    pub(super) socket: Socket,
    pub(super) control: Arc<Control>,
}

/// State that a socket shares with the tasks that drive its connection.
#[derive(Debug, Default)]
pub(super) struct Control {
    /// The side that the socket belongs to.
    pub(super) place: Arc<DriverSlot>,
    /// The received bytes.
    pub(super) received: Arc<Received>,
    /// `true` if commands were sent whose replies are missing.
    pub(super) awaits_answers: AtomicBool,
    /// Location of the server as it was reported, if the server has no fixed address.
    pub(super) located: OnceLock<Located>,
    /// The address at the other end, if it is a TCP connection.
    pub(super) peer: OnceLock<SocketAddr>,
}

/// Opens a socket to `endpoint`; to the address `at` of its name, if it is given.
///
/// # Errors
/// [`NodeError::Unreachable`] or [`NodeError::Tls`] with the step that has failed.
pub(super) async fn open(
    endpoint: &Endpoint,
    at: Option<SocketAddr>,
    progress: &Progress,
) -> Result<Opened, NodeError> {
    let control = Arc::<Control>::default();
    let migratable_socket = |transport| MigratableSocket::new(transport, Arc::clone(&control.place));
    let connected = async |host: &str, port| {
        let stream = tcp(host, port, (endpoint, at), progress).await?;
        let peer = stream.peer_addr().map_err(|error| progress.failed(&error))?;
        // It is set only here.
        let _ = control.peer.set(peer);
        Ok::<_, NodeError>(migratable_socket(Transport::Tcp(stream)))
    };
    let socket = match endpoint.address() {
        Address::Tcp { host, port } => bounded(connected(host, *port).await?, &control),
        #[cfg(feature = "tls")]
        Address::Tls { host, port } => {
            let transport = connected(host, *port).await?;
            progress.begins(Step::TlsHandshake, endpoint, endpoint.address());
            let encrypted = super::tls::client(host, endpoint.tls(), transport).await;
            bounded(encrypted.map_err(|error| tls_failure(&error, progress))?, &control)
        }
        #[cfg(unix)]
        Address::Unix(path) => {
            progress.begins(Step::Connect, endpoint, path.display());
            let stream = tokio::net::UnixStream::connect(path).await.map_err(|error| progress.failed(&error))?;
            bounded(migratable_socket(Transport::Unix(stream)), &control)
        }
    };
    Ok(Opened { socket, control })
}

/// Returns the error for a TLS handshake that has failed because of `error`.
#[cfg(feature = "tls")]
fn tls_failure(error: &io::Error, progress: &Progress) -> NodeError {
    match super::tls_failure::reason(error) {
        Some(reason) => NodeError::Tls(excerpt(reason).into()),
        None => progress.failed(error),
    }
}

fn bounded(stream: impl Stream + 'static, control: &Control) -> Socket {
    Box::new(Bounded::new(stream, Arc::clone(&control.received)))
}

/// Opens a TCP connection without send delay that notices a vanished peer.
async fn tcp(
    host: &str,
    port: u16,
    (endpoint, at): (&Endpoint, Option<SocketAddr>),
    progress: &Progress,
) -> Result<TcpStream, NodeError> {
    let stream = match at {
        Some(address) => dial_at(address, endpoint, progress).await?,
        None => dial(host, port, endpoint, progress).await?,
    };
    configure(&stream).map_err(|error| progress.failed(&error))?;
    Ok(stream)
}

fn configure(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(SILENCE / 2).with_interval(SILENCE / 10))?;
    // Keepalive probes only idle connections: this limit is for unacknowledged commands.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    socket.set_tcp_user_timeout(Some(SILENCE))?;
    Ok(())
}
