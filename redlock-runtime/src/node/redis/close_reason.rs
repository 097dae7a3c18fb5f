//! Reasons of a server to close connections during the login: it has too many clients, it expects TLS, or it is not a Redis server.

use super::endpoint::Endpoint;
use super::progress::Progress;
use super::reach::{expects_tls, is_tls_record, reach};
use super::socket::Socket;
use crate::error::NodeError;
use crate::text::excerpt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::ready;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;

/// Time limit for the answers of a server that has hung up before. Too small: the answer of a distant server is missed. Too large: the next
/// attempt to connect comes later.
const PATIENCE: Duration = Duration::from_millis(200);
/// Maximum number of bytes of an answer that are read.
const LONGEST: usize = 256;

/// Returns the error for a server at `at` that has closed the connection during the login. Connects again, in order to find out the reason.
pub(super) async fn hang_up_error(endpoint: &Endpoint, at: &str) -> NodeError {
    if let Some(said) = close_reason(endpoint).await {
        return NodeError::Refused(excerpt(said).into());
    }
    if !endpoint.is_tls() && speaks_tls(endpoint).await {
        return expects_tls(at);
    }
    let text = format!(
        "the server at {at} closed the connection during the login, without an answer: check what listens there; a \
         proxy or load balancer without a Redis server behind it does this"
    );
    NodeError::Unreachable(text.into())
}

/// Returns the error that the server sends to a client without a request, if it sends one. A client with a request may find the connection
/// closed before it reads the answer.
async fn close_reason(endpoint: &Endpoint) -> Option<String> {
    let said = async { first_bytes(&mut reach(endpoint, &Progress::default()).await.ok()?.socket).await.ok() };
    let said = timeout(PATIENCE, said).await.ok()??;
    error_in(&said)
}

/// Returns `true` if the server speaks TLS. Such a server answers the beginning of a handshake with its part of it, or with an alert.
async fn speaks_tls(endpoint: &Endpoint) -> bool {
    let asked = async {
        let mut socket = reach(endpoint, &Progress::default()).await.ok()?.socket;
        write(&mut socket, &client_hello()).await.ok()?;
        first_bytes(&mut socket).await.ok()
    };
    timeout(PATIENCE, asked).await.is_ok_and(|said| said.is_some_and(|said| is_tls_record(&said)))
}

/// Returns the shortest message that begins a TLS handshake: version 1.2, two cipher suites, no extensions.
///
/// Source: RFC 5246, sections 6.2.1, 7.4 and 7.4.1.2.
fn client_hello() -> Vec<u8> {
    // Handshake record, version 1.0, 47 bytes; ClientHello, 43 bytes, version 1.2.
    let head = [0x16, 3, 1, 0, 47, 1, 0, 0, 43, 3, 3];
    // No connection is made with these values.
    let random = [0; 32];
    // No session; ECDHE_RSA_WITH_AES_128_GCM_SHA256 and ECDHE_ECDSA_WITH_AES_128_GCM_SHA256; no compression.
    let tail = [0, 0, 4, 0xc0, 0x2f, 0xc0, 0x2b, 1, 0];
    [&head[..], &random, &tail].concat()
}

/// Returns the error at the beginning of an answer.
fn error_in(said: &[u8]) -> Option<String> {
    let line = str::from_utf8(said).ok()?.strip_prefix('-')?.lines().next()?;
    Some(line.trim().to_owned())
}

/// Writes `bytes`, which are few enough to go out at once.
async fn write(socket: &mut Socket, bytes: &[u8]) -> io::Result<()> {
    let written = poll_fn(|cx| Pin::new(&mut *socket).poll_write(cx, bytes)).await?;
    if written < bytes.len() {
        return Err(io::ErrorKind::WriteZero.into());
    }
    poll_fn(|cx| Pin::new(&mut *socket).poll_flush(cx)).await
}

async fn first_bytes(socket: &mut Socket) -> io::Result<Vec<u8>> {
    let mut bytes = [0; LONGEST];
    poll_fn(|cx| {
        let mut buffer = ReadBuf::new(&mut bytes);
        ready!(Pin::new(&mut *socket).poll_read(cx, &mut buffer))?;
        Ok(buffer.filled().to_vec()).into()
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_error_reply_is_a_close_reason() {
        let table: [(&[u8], Option<&str>); 5] = [
            (b"-ERR max number of clients reached\r\n", Some("ERR max number of clients reached")),
            (b"-DENIED protected", Some("DENIED protected")),
            (b"+OK\r\n", None),
            (b"\xff\x00", None),
            (b"", None),
        ];
        for (said, expected) in table {
            assert_eq!(error_in(said).as_deref(), expected);
        }
    }
}
