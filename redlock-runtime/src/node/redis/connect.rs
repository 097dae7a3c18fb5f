//! Makes one connection for commands: socket, handshake, scripts.

use super::answer::{refused, wakeup};
use super::courier::Courier;
use super::endpoint::Endpoint;
use super::link::Link;
use super::script::Scripts;
use super::socket;
use crate::error::NodeError;
use crate::node::{Deliver, Environment};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ErrorKind, ProtocolVersion, PushInfo, RedisError, Value};
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

/// Moves bytes between the client crate's queue and the socket; it ends when the connection breaks.
pub(super) type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

pub(super) async fn connect(endpoint: &Endpoint, environment: &Environment) -> Result<(Arc<Link>, Courier), NodeError> {
    let (connection, protocol) = match handshake(endpoint, ProtocolVersion::RESP3, &environment.deliver).await {
        // Servers before 6.0, and proxies, do not know HELLO. A wrong password stays wrong.
        Err(Failure::Handshake(error)) if !error.is_io_error() && error.kind() != ErrorKind::AuthenticationFailed => {
            let protocol = ProtocolVersion::RESP2;
            (handshake(endpoint, protocol, &environment.deliver).await?, protocol)
        }
        connection => (connection?, ProtocolVersion::RESP3),
    };
    prepare(connection, protocol == ProtocolVersion::RESP3, environment).await
}

pub(super) enum Failure {
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

async fn handshake(
    endpoint: &Endpoint,
    protocol: ProtocolVersion,
    deliver: &Deliver,
) -> Result<(MultiplexedConnection, Driver), Failure> {
    let socket = socket::open(endpoint).await.map_err(Failure::Socket)?;
    let config = AsyncConnectionConfig::new()
        // Each operation has its own deadline; a command must stay in line even when nobody waits for it any more.
        .set_response_timeout(None)
        .set_connection_timeout(None)
        // Releases are sent from `Drop`, which cannot wait for a place in a queue. What is in flight is bounded where
        // commands are admitted.
        .set_pipeline_buffer_size(usize::MAX >> 4);
    let config = match protocol {
        ProtocolVersion::RESP2 => config,
        _ => config.set_push_sender(receiver(Arc::clone(deliver))),
    };
    let login = endpoint.login().clone().set_protocol(protocol);
    let (connection, driver) =
        MultiplexedConnection::new_with_config(&login, socket, config).await.map_err(Failure::Handshake)?;
    Ok((connection, Box::pin(driver)))
}

/// Takes in what the server says unasked.
fn receiver(deliver: Deliver) -> impl Fn(PushInfo) -> Result<(), Infallible> + Send + Sync + 'static {
    move |push| {
        if let Some(wakeup) = wakeup(&push) {
            deliver(wakeup);
        }
        Ok(())
    }
}

/// One round trip that loads the scripts and names the client.
async fn prepare(
    (mut connection, mut driver): (MultiplexedConnection, Driver),
    has_pushes: bool,
    environment: &Environment,
) -> Result<(Arc<Link>, Courier), NodeError> {
    let mut pipeline = redis::pipe();
    for source in Scripts::SOURCES {
        pipeline.cmd("SCRIPT").arg("LOAD").arg(source);
    }
    pipeline.cmd("CLIENT").arg("SETNAME").arg(format!("redlock-{}", environment.manager));
    let mut answers = {
        let mut request = pin!(connection.send_packed_commands(&pipeline, 0, pipeline.len()));
        let answers = poll_fn(|cx| {
            let is_over = driver.as_mut().poll(cx).is_ready();
            match request.as_mut().poll(cx) {
                // Also with the answers to it: whoever polled the driver once more would find that it has ended.
                Poll::Pending | Poll::Ready(Ok(_)) if is_over => Poll::Ready(Err(NodeError::Disconnected)),
                answers => answers.map_err(|error| refused(&error)),
            }
        });
        answers.await?.into_iter()
    };
    let mut digest = || digest(answers.next());
    let scripts = Scripts::loaded([digest()?, digest()?, digest()?, digest()?]);
    let link = Arc::new(Link::new(scripts, has_pushes, environment.clone()));
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
