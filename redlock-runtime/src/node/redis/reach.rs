//! Opens a socket to a server, wherever that is right now; and why there is no connection, in words.

use super::answer::refused;
use super::endpoint::Endpoint;
use super::socket::{self, Control, Opened};
use crate::error::NodeError;
use crate::text::excerpt;
use redis::RedisError;
use std::io;
#[cfg(feature = "tls")]
use std::sync::Arc;

/// Opens a socket to the server, wherever that is right now.
///
/// # Errors
/// Why it is not known where the server is, or why there is no socket.
pub(super) async fn reach(endpoint: &Endpoint) -> Result<Opened, Failure> {
    let Some(located) = endpoint.locate().await.map_err(Failure::Before)? else {
        return socket::open(endpoint).await.map_err(Failure::Socket);
    };
    let opened = socket::open(&endpoint.elsewhere(&located.at.host, located.at.port)).await.map_err(Failure::Socket)?;
    // It is set here alone.
    let _ = opened.control.located.set(located);
    Ok(opened)
}

/// A server that expects TLS says nothing to a client without it, and hangs up.
const CLOSED: &str = "the server closed the connection during the handshake; if it expects TLS, write rediss://";

/// Why there is no connection.
pub(super) enum Failure {
    /// Where the server is, or the login, is not known.
    Before(NodeError),
    Socket(io::Error),
    Handshake(RedisError),
}

impl Failure {
    /// What says more: the answer of the server to the first handshake, or this failure of the second one.
    pub(super) fn or(self, first: RedisError) -> Self {
        match self {
            Self::Handshake(second) if !second.is_io_error() => Self::Handshake(second),
            Self::Before(_) | Self::Socket(_) | Self::Handshake(_) => Self::Handshake(first),
        }
    }
}

impl From<Failure> for NodeError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Before(error) => error,
            Failure::Socket(error) => socket_failure(&error),
            Failure::Handshake(error) => match refused(&error) {
                // What a server does not like about the certificate of its client, it says after the handshake of TLS.
                Self::Disconnected => tls_reason(&error)
                    .map_or_else(|| Self::Unreachable(CLOSED.into()), |reason| Self::Tls(excerpt(reason).into())),
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
        return NodeError::Tls(excerpt(reason).into());
    }
    NodeError::Unreachable(error.to_string().into())
}

/// Why the connection was cut, if it was by us.
pub(super) fn cut(control: &Control) -> Option<NodeError> {
    control.received.check().err().map(|error| NodeError::Unreachable(error.to_string().into()))
}
