//! Makes one connection for commands: socket and handshake.

use super::answer::{refused, wakeup};
use super::courier::{Connection, Courier};
use super::endpoint::Endpoint;
use super::farewell::farewell;
use super::live_connection::LiveConnection;
use super::prepare::prepare;
use super::socket::{self, Control, Opened};
use super::verification::Doubt;
use crate::error::NodeError;
use crate::node::environment::Environment;
use crate::node::server_facts::ServerFacts;
use crate::protocol::command::{Deliver, Wakeup};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ErrorKind, ProtocolVersion, PushInfo, PushKind, RedisConnectionInfo, RedisError};
use std::convert::Infallible;
use std::io;
use std::sync::Arc;

/// Makes a connection that is ready for commands, and the task that drives it.
///
/// # Errors
/// Those of the socket and of the handshake as [`NodeError::Unreachable`] or [`NodeError::Refused`], and those of
/// [`prepare`].
pub(super) async fn connect(
    endpoint: &Endpoint,
    server: &Arc<ServerFacts>,
    environment: &Environment,
) -> Result<(Arc<LiveConnection>, Courier), NodeError> {
    server.connecting();
    let doubt = Doubt::default();
    let pushes = Pushes { deliver: Arc::clone(&environment.deliver), doubt: doubt.clone(), server: Arc::clone(server) };
    let (connection, protocol) = match greet(endpoint, Some(&pushes)).await {
        Err(Failure::Handshake(error)) if error.is_io_error() => {
            // Who hangs up may have said why, and unasked: that is read without a question in between.
            let said = farewell(endpoint).await;
            return Err(said.map_or_else(|| Failure::Handshake(error).into(), |said| NodeError::Refused(said.into())));
        }
        greeted => greeted?,
    };
    let control = Arc::clone(&connection.control);
    prepare(connection, (protocol == ProtocolVersion::RESP3, doubt), server, environment)
        .await
        .map_err(|error| cut(&control).unwrap_or(error))
}

/// Shakes hands, in RESP3 if the server speaks it. Without `pushes`, what the server says unasked is heard by nobody.
pub(super) async fn greet(
    endpoint: &Endpoint,
    pushes: Option<&Pushes>,
) -> Result<(Connection, ProtocolVersion), Failure> {
    let opened = socket::open(endpoint).await.map_err(Failure::Socket)?;
    // Not before: nobody is asked for credentials that no server would take.
    let login = endpoint.login().await.map_err(Failure::Login)?;
    match handshake(opened, login.clone().set_protocol(ProtocolVersion::RESP3), pushes).await {
        // Servers before 6.0 and some proxies do not know HELLO, and are asked once more in RESP2. After a wrong
        // password that would be in vain.
        Err(Failure::Handshake(error)) if !error.is_io_error() && error.kind() != ErrorKind::AuthenticationFailed => {
            let opened = socket::open(endpoint).await.map_err(Failure::Socket);
            let connection = match opened {
                Ok(opened) => handshake(opened, login.set_protocol(ProtocolVersion::RESP2), None).await,
                Err(failure) => Err(failure),
            };
            // A server that hangs up has said before why: that it is full, for instance.
            Ok((connection.map_err(|second| second.or(error))?, ProtocolVersion::RESP2))
        }
        connection => Ok((connection?, ProtocolVersion::RESP3)),
    }
}

/// A server that expects TLS says nothing to a client without it, and hangs up.
const CLOSED: &str = "the server closed the connection during the handshake; if it expects TLS, write rediss://";

/// Why there is no connection.
pub(super) enum Failure {
    Login(NodeError),
    Socket(io::Error),
    Handshake(RedisError),
}

impl Failure {
    /// What says more: the answer of the server to the first handshake, or this failure of the second one.
    fn or(self, first: RedisError) -> Self {
        match self {
            Self::Handshake(second) if !second.is_io_error() => Self::Handshake(second),
            Self::Login(_) | Self::Socket(_) | Self::Handshake(_) => Self::Handshake(first),
        }
    }
}

impl From<Failure> for NodeError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Login(error) => error,
            Failure::Socket(error) => socket_failure(&error),
            Failure::Handshake(error) => match refused(&error) {
                // What a server does not like about the certificate of its client, it says after the handshake of TLS.
                Self::Disconnected => tls_reason(&error)
                    .map_or_else(|| Self::Unreachable(CLOSED.into()), |reason| Self::Tls(reason.into())),
                refusal => refusal,
            },
        }
    }
}

/// What TLS has against the connection, if that is what broke it.
#[cfg(feature = "tls")]
fn tls_reason(error: &RedisError) -> Option<String> {
    use std::error::Error;

    // The client crate shares the errors of its sockets.
    let shared = error.source()?.downcast_ref::<Arc<dyn Error + Send + Sync>>()?;
    super::tls_failure::reason(shared.downcast_ref()?)
}

#[cfg(not(feature = "tls"))]
const fn tls_reason(_error: &RedisError) -> Option<String> {
    None
}

/// Why there is no socket.
fn socket_failure(error: &io::Error) -> NodeError {
    #[cfg(feature = "tls")]
    if let Some(reason) = super::tls_failure::reason(error) {
        return NodeError::Tls(reason.into());
    }
    NodeError::Unreachable(error.to_string().into())
}

/// Makes a connection for a question or two, on which nothing comes unasked.
///
/// # Errors
/// As [`connect`].
pub(super) async fn connect_plainly(endpoint: &Endpoint) -> Result<Connection, NodeError> {
    let opened = socket::open(endpoint).await.map_err(Failure::Socket)?;
    let login = endpoint.login().await.map_err(Failure::Login)?;
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

/// Why the connection was cut, if it was by us.
pub(super) fn cut(control: &Control) -> Option<NodeError> {
    control.received.check().err().map(|error| NodeError::Unreachable(error.to_string().into()))
}

/// What becomes of what the server says unasked.
#[derive(Clone)]
pub(super) struct Pushes {
    deliver: Deliver,
    doubt: Doubt,
    server: Arc<ServerFacts>,
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
                let is_trusted = !self.server.is_distrusted() || self.doubt.is_excluded();
                let notice = if is_trusted { self.server.proven(notice) } else { notice };
                (self.deliver)(Wakeup { subject, notice });
            }
            Ok(())
        }
    }
}
