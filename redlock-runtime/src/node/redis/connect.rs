//! Makes one connection: socket, TLS, handshake, scripts, capabilities.

use super::courier::{Courier, Outbox};
use super::endpoint::{Address, Endpoint};
use super::link::{Capabilities, Link, refused};
use super::script::Scripts;
use crate::error::NodeError;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ErrorKind, ProtocolVersion, RedisError, Value};
use socket2::{SockRef, TcpKeepalive};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A peer that vanished without a word is noticed within about this time.
const SILENCE: Duration = Duration::from_secs(10);

/// Moves bytes between the client crate's queue and the socket; it ends when the connection breaks.
pub(super) type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

pub(super) async fn connect(endpoint: &Endpoint, client_name: &str) -> Result<(Arc<Link>, Courier), NodeError> {
    match handshake(endpoint, ProtocolVersion::RESP3).await {
        Ok(connection) => prepare(connection, client_name).await,
        // Servers before 6.0, and proxies, do not know HELLO. A wrong password stays wrong.
        Err(Failure::Handshake(error)) if !error.is_io_error() && error.kind() != ErrorKind::AuthenticationFailed => {
            let connection = handshake(endpoint, ProtocolVersion::RESP2).await.map_err(NodeError::from)?;
            prepare(connection, client_name).await
        }
        Err(failure) => Err(failure.into()),
    }
}

enum Failure {
    Socket(io::Error),
    Handshake(RedisError),
}

impl From<Failure> for NodeError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Socket(error) => Self::Unreachable(error.to_string().into()),
            Failure::Handshake(error) => match refused(&error) {
                Self::Disconnected => Self::Unreachable("the server closed the connection during the handshake".into()),
                refusal => refusal,
            },
        }
    }
}

async fn handshake(endpoint: &Endpoint, protocol: ProtocolVersion) -> Result<(MultiplexedConnection, Driver), Failure> {
    match endpoint.address() {
        Address::Tcp { host, port } => {
            speak(endpoint, protocol, tcp(host, *port).await.map_err(Failure::Socket)?).await
        }
        #[cfg(feature = "tls")]
        Address::Tls { host, port } => {
            let stream = tcp(host, *port).await.map_err(Failure::Socket)?;
            speak(endpoint, protocol, super::tls::client(host, stream).await.map_err(Failure::Socket)?).await
        }
        #[cfg(unix)]
        Address::Unix(path) => {
            let stream = tokio::net::UnixStream::connect(path).await.map_err(Failure::Socket)?;
            speak(endpoint, protocol, stream).await
        }
    }
}

async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    let socket = SockRef::from(&stream);
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(SILENCE / 2).with_interval(SILENCE / 10))?;
    // Keepalive speaks only on idle connections: this is for the one with unacknowledged commands.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    socket.set_tcp_user_timeout(Some(SILENCE))?;
    Ok(stream)
}

async fn speak<S>(
    endpoint: &Endpoint,
    protocol: ProtocolVersion,
    stream: S,
) -> Result<(MultiplexedConnection, Driver), Failure>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let config = AsyncConnectionConfig::new()
        // Each operation has its own deadline; a command must stay in line even when nobody waits for it any more.
        .set_response_timeout(None)
        .set_connection_timeout(None)
        // Releases are sent from `Drop`, which cannot wait for a place in a queue. What is in flight is bounded where
        // commands are admitted.
        .set_pipeline_buffer_size(usize::MAX >> 4);
    let login = endpoint.login().clone().set_protocol(protocol);
    let (connection, driver) =
        MultiplexedConnection::new_with_config(&login, stream, config).await.map_err(Failure::Handshake)?;
    Ok((connection, Box::pin(driver)))
}

/// One round trip that loads the scripts, names the client and probes what the server can do.
async fn prepare(
    (mut connection, mut driver): (MultiplexedConnection, Driver),
    client_name: &str,
) -> Result<(Arc<Link>, Courier), NodeError> {
    let mut pipeline = redis::pipe();
    for source in Scripts::SOURCES {
        pipeline.cmd("SCRIPT").arg("LOAD").arg(source);
    }
    // Writes nothing: the key does not exist, so it equals nothing.
    pipeline.cmd("SET").arg("redlock:probe").arg("1").arg("IFEQ").arg("1").arg("PX").arg(1);
    pipeline.cmd("CLIENT").arg("SETNAME").arg(client_name);
    let mut answers = {
        let mut request = pin!(connection.send_packed_commands(&pipeline, 0, pipeline.len()));
        let answers = poll_fn(|cx| {
            let is_over = driver.as_mut().poll(cx).is_ready();
            match request.as_mut().poll(cx) {
                Poll::Pending if is_over => Poll::Ready(Err(NodeError::Disconnected)),
                answers => answers.map_err(|error| refused(&error)),
            }
        });
        answers.await?.into_iter()
    };
    let scripts = Scripts::loaded([digest(answers.next())?, digest(answers.next())?]);
    // Older servers answer with a syntax error, and a user without access to the key with NOPERM.
    let capabilities = Capabilities { set_ifeq: matches!(answers.next(), Some(Value::Nil)) };
    let link = Arc::new(Link { outbox: Outbox::default(), scripts, capabilities });
    Ok((Arc::clone(&link), Courier::new(link, connection, driver)))
}

fn digest(answer: Option<Value>) -> Result<String, NodeError> {
    match answer.map(Value::extract_error) {
        Some(Ok(value)) => redis::from_redis_value(value)
            .map_err(|_| NodeError::Refused("something else than a digest to SCRIPT LOAD".into())),
        Some(Err(error)) => Err(refused(&error)),
        None => Err(NodeError::Disconnected),
    }
}
