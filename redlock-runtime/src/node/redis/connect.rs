//! Makes one connection for commands: socket and handshake.

use super::answer::wakeup;
use super::connections::Connections;
use super::courier::{Connection, Courier};
use super::endpoint::Endpoint;
use super::farewell::farewell;
use super::live_connection::LiveConnection;
use super::prepare::prepare;
use super::reach::{Failure, cut, reach};
use super::socket::{self, Control, Opened};
use super::verification::Doubt;
use crate::error::NodeError;
use crate::node::server_facts::ServerFacts;
use crate::protocol::command::{Deliver, Wakeup};
use crate::text::excerpt;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ErrorKind, ProtocolVersion, PushInfo, PushKind, RedisConnectionInfo};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

/// Makes a connection that is ready for commands, and the task that drives it.
///
/// # Errors
/// Those of the socket and of the handshake as [`NodeError::Unreachable`] or [`NodeError::Refused`], and those of
/// [`prepare`].
pub(super) async fn connect(
    endpoint: &Endpoint,
    connections: &Connections,
) -> Result<(Arc<LiveConnection>, Courier), NodeError> {
    let Connections { server, environment, .. } = connections;
    server.connecting();
    let doubt = Doubt::default();
    let pushes = Pushes {
        deliver: Arc::clone(&environment.deliver),
        doubt: doubt.clone(),
        server: Arc::clone(server),
        are_proofs: environment.replicas.is_none(),
    };
    let (connection, protocol) = match greet(endpoint, Some(&pushes)).await {
        Err(Failure::Handshake(error)) if error.is_io_error() => {
            // Who hangs up may have said why, and unasked: that is read without a question in between.
            let said = farewell(endpoint).await;
            return Err(
                said.map_or_else(|| Failure::Handshake(error).into(), |said| NodeError::Refused(excerpt(said).into()))
            );
        }
        greeted => greeted?,
    };
    let control = Arc::clone(&connection.control);
    let prepared = prepare(connection, (protocol == ProtocolVersion::RESP3, doubt), connections).await;
    let (live, courier) = prepared.map_err(|error| cut(&control).unwrap_or(error))?;
    if let Some(peer) = control.peer.get() {
        live.connected_to(*peer);
    }
    if let Some(located) = control.located.get() {
        live.located_at(located.clone());
    }
    Ok((live, courier))
}

/// Shakes hands, in RESP3 if the server speaks it. Without `pushes`, what the server says unasked is heard by nobody.
pub(super) async fn greet(
    endpoint: &Endpoint,
    pushes: Option<&Pushes>,
) -> Result<(Connection, ProtocolVersion), Failure> {
    let opened = reach(endpoint).await?;
    // Not before: nobody is asked for credentials that no server would take.
    let login = endpoint.login().await.map_err(Failure::Before)?;
    match handshake(opened, login.clone().set_protocol(ProtocolVersion::RESP3), pushes).await {
        // Servers before 6.0 and some proxies do not know HELLO, and are asked once more in RESP2. After a wrong
        // password that would be in vain.
        Err(Failure::Handshake(error)) if !error.is_io_error() && error.kind() != ErrorKind::AuthenticationFailed => {
            let connection = match reach(endpoint).await {
                Ok(opened) => handshake(opened, login.set_protocol(ProtocolVersion::RESP2), None).await,
                Err(failure) => Err(failure),
            };
            // A server that hangs up has said before why: that it is full, for instance.
            Ok((connection.map_err(|second| second.or(error))?, ProtocolVersion::RESP2))
        }
        connection => Ok((connection?, ProtocolVersion::RESP3)),
    }
}

/// Makes a connection for a question or two, on which nothing comes unasked, to a server at an address of its own.
///
/// # Errors
/// As [`connect`].
pub(super) async fn connect_plainly(endpoint: &Endpoint) -> Result<Connection, NodeError> {
    shake_hands_plainly(endpoint, None).await
}

/// Makes such a connection to the address `at`, which is one of the name of `endpoint`.
///
/// # Errors
/// As [`connect`].
pub(super) async fn connect_plainly_at(endpoint: &Endpoint, at: SocketAddr) -> Result<Connection, NodeError> {
    shake_hands_plainly(endpoint, Some(at)).await
}

async fn shake_hands_plainly(endpoint: &Endpoint, at: Option<SocketAddr>) -> Result<Connection, NodeError> {
    let opened = socket::open_at(endpoint, at).await.map_err(Failure::Socket)?;
    let login = endpoint.login().await.map_err(Failure::Before)?;
    Ok(handshake(opened, login.set_protocol(ProtocolVersion::RESP2), None).await?)
}

/// Logs in. `pushes` take what a server that speaks RESP3 says unasked.
async fn handshake(
    Opened { socket, control }: Opened,
    login: RedisConnectionInfo,
    pushes: Option<&Pushes>,
) -> Result<Connection, Failure> {
    let config = AsyncConnectionConfig::new()
        // No timeout of the client crate's: each operation has its own deadline, and a command must keep its place in
        // the order even when nobody waits for it any more.
        .set_response_timeout(None)
        .set_connection_timeout(None)
        // Releases are sent from `Drop`, which cannot wait for a place in a queue. What is in flight is bounded where
        // commands are admitted.
        .set_pipeline_buffer_size(usize::MAX >> 4);
    let config = match (login.protocol(), pushes) {
        (ProtocolVersion::RESP3, Some(pushes)) => config.set_push_sender(pushes.clone().receiver(Arc::clone(&control))),
        _ => config,
    };
    let connected = MultiplexedConnection::new_with_config(&login, socket, config).await;
    control.received.check().map_err(Failure::Socket)?;
    let (commands, driver) = connected.map_err(Failure::Handshake)?;
    control.received.is_complete();
    Ok(Connection { commands, driver: Box::pin(driver), control })
}

/// What becomes of what the server says unasked.
#[derive(Clone)]
pub(super) struct Pushes {
    deliver: Deliver,
    doubt: Doubt,
    server: Arc<ServerFacts>,
    /// Whether a claim may prove anything: replicas that have to confirm a lease are not asked about claims.
    are_proofs: bool,
}

impl Pushes {
    /// Takes note that the server throws data away, and passes on the wake-ups with what they prove.
    fn receiver(self, control: Arc<Control>) -> impl Fn(PushInfo) -> Result<(), Infallible> + Send + Sync + 'static {
        move |push| {
            // The client crate says in this way, too, that the connection has ended; why must stay known.
            if push.kind != PushKind::Disconnection {
                control.received.is_complete();
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
