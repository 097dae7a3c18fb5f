//! Opening of a socket to the current location of a server, and error texts for a failed connection.

use super::answer::refused;
use super::endpoint::{Announcer, Endpoint};
use super::progress::{Progress, Step};
use super::socket::{self, Control, Opened};
use crate::error::NodeError;
use crate::text::excerpt;
use redis::RedisError;
#[cfg(feature = "tls")]
use std::sync::Arc;

/// Opens a socket to the current location of the server.
///
/// # Errors
/// If the server cannot be located, or there is no socket.
pub(super) async fn reach(endpoint: &Endpoint, progress: &Progress) -> Result<Opened, NodeError> {
    if endpoint.is_located() {
        progress.begins(Step::Location, endpoint, endpoint.label());
    }
    let Some(located) = endpoint.locate().await? else {
        return socket::open(endpoint, None, progress).await;
    };
    let opened = socket::open(&endpoint.announced(Announcer::Sentinel, &located.at), None, progress).await?;
    // It is set only here.
    let _ = opened.control.located.set(located);
    Ok(opened)
}

/// Reason for a failed connection.
pub(super) enum Failure {
    /// The reason is known without the reply to the handshake.
    Known(NodeError),
    Handshake(RedisError),
}

impl Failure {
    /// Returns the more specific error: the reply of the server to the first handshake, or this failure of the second one.
    pub(super) fn or(self, first: RedisError) -> Self {
        match self {
            Self::Handshake(second) if !second.is_io_error() => Self::Handshake(second),
            // The server does not know `HELLO`, which is not a reason to hang up: the second connection broke for another reason.
            second if first.to_string().contains("unknown command") => second,
            Self::Known(_) | Self::Handshake(_) => Self::Handshake(first),
        }
    }

    /// Returns `true` if the server has closed the connection, and TLS is not the reason.
    pub(super) fn is_hang_up(&self) -> bool {
        matches!(self, Self::Handshake(error) if error.is_io_error() && tls_reason(error).is_none())
    }
}

impl From<Failure> for NodeError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Known(error) => error,
            Failure::Handshake(error) => match refused(&error) {
                // A server reports a refused client certificate only after the TLS handshake.
                Self::Disconnected => tls_reason(&error).map_or_else(
                    || Self::Unreachable("the server closed the connection during the login".into()),
                    |reason| Self::Tls(excerpt(reason).into()),
                ),
                refusal => refusal,
            },
        }
    }
}

/// Returns the error for a server at `at` whose first bytes do not belong to the Redis protocol.
pub(super) fn stranger(first: &[u8], at: &str) -> Option<NodeError> {
    /// First bytes of the replies and pushes of RESP2 and RESP3.
    const RESP: &[u8] = b"+-:$*_#,(!=%~>|";
    let kind = first.first()?;
    if is_tls_record(first) {
        return Some(expects_tls(at));
    }
    if RESP.contains(kind) {
        return None;
    }
    let text = if first.starts_with(b"HTTP/") {
        format!("the server at {at} speaks HTTP and not the Redis protocol: check host and port in the URL")
    } else {
        let first = String::from_utf8_lossy(first);
        format!(
            "the server at {at} does not speak the Redis protocol, but begins with {first:?}: check host and port in the URL"
        )
    };
    Some(NodeError::Unsupported(excerpt(text).into()))
}

/// Returns the error for a server that speaks TLS to a client which does not.
pub(super) fn expects_tls(at: &str) -> NodeError {
    NodeError::Tls(format!("the server at {at} requires TLS: write rediss:// instead of redis://").into())
}

/// Returns `true` if these bytes begin an alert or a handshake of TLS.
pub(super) fn is_tls_record(bytes: &[u8]) -> bool {
    matches!(bytes, [0x15 | 0x16, 0x03, ..])
}

/// Returns the reason of TLS for a broken connection, if TLS broke it.
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

/// Returns the reason if this client cut the connection.
pub(super) fn cut(control: &Control) -> Option<NodeError> {
    control.received.check().err().map(|error| NodeError::Unreachable(error.to_string().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_of_other_protocols_are_recognised() {
        let table: [(&[u8], Option<&str>); 8] = [
            (b"", None),
            (b"-ERR unknown command\r\n", None),
            (b"%7\r\n", None),
            (b"HTTP/1.1 400 Bad Request", Some("speaks HTTP")),
            (b"SSH-2.0-OpenSSH_9.2", Some("begins with \"SSH-2.0")),
            (b"\x15\x03\x01\x00\x02", Some("requires TLS: write rediss://")),
            (b"\x16\x03\x03\x00\x7a", Some("requires TLS: write rediss://")),
            (b"\xff\x00", Some("does not speak the Redis protocol")),
        ];
        for (first, expected) in table {
            let error = stranger(first, "10.0.0.1:6379").map(|error| error.to_string());
            assert_eq!(error.is_some(), expected.is_some(), "{first:?}");
            let error = error.unwrap_or_default();
            assert!(error.contains(expected.unwrap_or_default()), "{error}");
            assert_eq!(error.contains("10.0.0.1:6379"), expected.is_some(), "{error}");
        }
    }
}
