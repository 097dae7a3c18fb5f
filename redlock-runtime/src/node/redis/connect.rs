//! Creation of one connection for commands: socket and handshake.

use super::answer::wakeup;
use super::close_reason::hang_up_error;
use super::connections::Connections;
use super::endpoint::Endpoint;
use super::io_task::{Connection, IoTask};
use super::live_connection::LiveConnection;
use super::prepare::prepare;
use super::progress::{Progress, Step};
use super::reach::{Failure, cut, reach, stranger};
use super::socket::{self, Control, Opened};
use super::verification::Doubt;
use crate::error::NodeError;
use crate::node::server_facts::ServerFacts;
use crate::protocol::command::{Deliver, Wakeup};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ErrorKind, ProtocolVersion, PushInfo, PushKind, RedisConnectionInfo};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

/// Makes a connection that is ready for commands, and the task that drives it, within the time limit of `endpoint`.
///
/// # Errors
/// [`NodeError::Unreachable`], [`NodeError::Tls`] or [`NodeError::Refused`] for a failure of the socket or the handshake, and the errors of
/// [`prepare`]. They name the step and the address that failed.
pub(super) async fn connect(
    endpoint: &Endpoint,
    connections: &Connections,
) -> Result<(Arc<LiveConnection>, IoTask), NodeError> {
    let progress = &connections.progress;
    let connected = progress.limited(endpoint.connect_timeout(), connect_in_steps(endpoint, connections)).await;
    connected.map_err(|error| endpoint.told(progress.refused(error), &progress.at()))
}

async fn connect_in_steps(
    endpoint: &Endpoint,
    connections: &Connections,
) -> Result<(Arc<LiveConnection>, IoTask), NodeError> {
    let Connections { server, environment, progress, .. } = connections;
    server.connecting();
    let doubt = Doubt::default();
    let pushes = Pushes {
        deliver: Arc::clone(&environment.deliver),
        doubt: doubt.clone(),
        server: Arc::clone(server),
        are_proofs: environment.replicas.is_none(),
    };
    let (connection, protocol) = match greet(endpoint, Some(&pushes), progress).await {
        Err(failure) if failure.is_hang_up() => return Err(hang_up_error(endpoint, &progress.at()).await),
        greeted => greeted?,
    };
    progress.goes_on(Step::Preparation);
    let control = Arc::clone(&connection.control);
    let prepared = prepare(connection, (protocol == ProtocolVersion::RESP3, doubt), connections).await;
    let (live, io_task) = prepared.map_err(|error| {
        let error = cut(&control).unwrap_or(error);
        match control.peer.get() {
            Some(peer) if error == NodeError::Replica && endpoint.is_name() => replica_of_name(*peer),
            _ => error,
        }
    })?;
    if let Some(peer) = control.peer.get() {
        live.connected_to(*peer);
    }
    if let Some(located) = control.located.get() {
        live.located_at(located.clone());
    }
    Ok((live, io_task))
}

/// Returns the error for a name that leads to a replica, at the address `peer`.
fn replica_of_name(peer: SocketAddr) -> NodeError {
    let text = format!(
        "its name leads to {peer}, which is a replica and takes no locks: write a name that leads to the master alone, such as \
         that of the primary endpoint"
    );
    NodeError::Unsupported(text.into())
}

/// Does the handshake, in RESP3 if the server supports it. Without `pushes`, push messages of the server are dropped.
pub(super) async fn greet(
    endpoint: &Endpoint,
    pushes: Option<&Pushes>,
    progress: &Progress,
) -> Result<(Connection, ProtocolVersion), Failure> {
    let opened = reach(endpoint, progress).await.map_err(Failure::Known)?;
    // Only after the socket is open: the program is not asked for credentials while the server is unreachable.
    progress.goes_on(Step::Credentials);
    let login = endpoint.login().await.map_err(Failure::Known)?;
    progress.goes_on(Step::Login);
    let at = progress.at();
    match handshake(opened, login.clone().set_protocol(ProtocolVersion::RESP3), pushes, &at).await {
        // Servers before 6.0 and some proxies do not know HELLO. They are tried once more in RESP2. After a wrong password this would be
        // useless.
        Err(Failure::Handshake(error)) if !error.is_io_error() && error.kind() != ErrorKind::AuthenticationFailed => {
            let connection = match reach(endpoint, progress).await {
                Ok(opened) => {
                    progress.goes_on(Step::Login);
                    handshake(opened, login.set_protocol(ProtocolVersion::RESP2), None, &at).await
                }
                Err(error) => Err(Failure::Known(error)),
            };
            // A server that hangs up has given its reason before: that it is full, for instance.
            Ok((connection.map_err(|second| second.or(error))?, ProtocolVersion::RESP2))
        }
        connection => Ok((connection?, ProtocolVersion::RESP3)),
    }
}

/// Makes a connection for a few queries, without push messages, to a server with a fixed address.
///
/// # Errors
/// Those of [`connect`].
pub(super) async fn connect_plainly(endpoint: &Endpoint, progress: &Progress) -> Result<Connection, NodeError> {
    match shake_hands_plainly(endpoint, None, progress).await {
        Err(failure) if failure.is_hang_up() => Err(hang_up_error(endpoint, &progress.at()).await),
        connected => Ok(connected?),
    }
}

/// Makes such a connection to the address `at`, which belongs to the name of `endpoint`.
///
/// # Errors
/// Those of [`connect`].
pub(super) async fn connect_plainly_at(
    endpoint: &Endpoint,
    at: SocketAddr,
    progress: &Progress,
) -> Result<Connection, NodeError> {
    Ok(shake_hands_plainly(endpoint, Some(at), progress).await?)
}

async fn shake_hands_plainly(
    endpoint: &Endpoint,
    at: Option<SocketAddr>,
    progress: &Progress,
) -> Result<Connection, Failure> {
    let opened = socket::open(endpoint, at, progress).await.map_err(Failure::Known)?;
    progress.goes_on(Step::Credentials);
    let login = endpoint.login().await.map_err(Failure::Known)?;
    progress.goes_on(Step::Login);
    handshake(opened, login.set_protocol(ProtocolVersion::RESP2), None, &progress.at()).await
}

/// Logs in at the server at the address `at`. `pushes` handle the push messages of a server that supports RESP3.
async fn handshake(
    Opened { socket, control }: Opened,
    login: RedisConnectionInfo,
    pushes: Option<&Pushes>,
    at: &str,
) -> Result<Connection, Failure> {
    let config = AsyncConnectionConfig::new()
        // No timeout of the client crate: each operation has a separate deadline. A command must keep its place in the order even if no
        // caller waits for it any more.
        .set_response_timeout(None)
        .set_connection_timeout(None)
        // Releases are sent from `Drop`, which cannot wait for a place in a queue. The admission of commands limits their number.
        .set_pipeline_buffer_size(usize::MAX >> 4);
    let config = match (login.protocol(), pushes) {
        (ProtocolVersion::RESP3, Some(pushes)) => config.set_push_sender(pushes.clone().receiver(Arc::clone(&control))),
        _ => config,
    };
    let connected = MultiplexedConnection::new_with_config(&login, socket, config).await;
    if let Some(cut) = cut(&control) {
        return Err(Failure::Known(cut));
    }
    let (commands, driver) = connected
        .map_err(|error| stranger(control.received.first(), at).map_or(Failure::Handshake(error), Failure::Known))?;
    control.received.on_complete();
    Ok(Connection { commands, driver: Box::pin(driver), control })
}

/// Handler of the push messages of a server.
#[derive(Clone)]
pub(super) struct Pushes {
    deliver: Deliver,
    doubt: Doubt,
    server: Arc<ServerFacts>,
    /// `true` if a claim may be a proof: replicas that have to confirm a lease do not confirm claims.
    are_proofs: bool,
}

impl Pushes {
    /// Returns the receiver. It records that the server discards data, and delivers the wake-ups with their proofs.
    fn receiver(self, control: Arc<Control>) -> impl Fn(PushInfo) -> Result<(), Infallible> + Send + Sync + 'static {
        move |push| {
            // The client crate also reports the end of the connection as a push; its cause must stay known.
            if push.kind != PushKind::Disconnection {
                control.received.on_complete();
            }
            if push.kind == PushKind::Invalidate {
                self.doubt.raise();
            }
            if let Some(Wakeup { subject, notice }) = wakeup(&push) {
                let is_trusted = self.are_proofs && (!self.server.is_distrusted() || self.doubt.is_excluded());
                let notice = if is_trusted { self.server.proven(notice) } else { notice };
                (self.deliver)(Wakeup { subject, notice });
            }
            Ok(())
        }
    }
}
