//! Listens for wake-ups on a connection of its own, where the one for commands speaks RESP2 and cannot.

use super::answer::{refused, wakeup_in};
use super::backoff::Backoff;
use super::complaints::Complaints;
use super::connections::Connections;
use super::endpoint::Endpoint;
use super::live_connection::LiveConnection;
use super::reach::{Failure, cut, reach};

use super::socket::{Control, Opened, Socket};
use crate::error::NodeError;
use crate::observe::events;
use crate::time::wait_until::wait_until;
use futures_core::Stream;
use redis::ProtocolVersion;
use redis::aio::{PubSub, PubSubStream};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The pause after a server has refused the subscription, which it does until somebody changes the user's permissions.
/// With less, it is asked in vain more often; with more, callers are woken later after the change.
const AFTER_REFUSAL: Duration = Duration::from_secs(30);

/// Keeps the connection for wake-ups while one is needed. Runs until it is aborted.
pub(super) async fn listen(endpoint: Arc<Endpoint>, connections: Arc<Connections>) {
    let (mut backoff, mut complaints) = (Backoff::new(), Complaints::default());
    loop {
        wait_until(&connections.environment.changed, || connections.needs_subscriber()).await;
        // It may just have ended.
        let Ok(channel) = connections.live().map(|live| live.own_channel()) else { continue };
        let left = connections.times_left();
        match timeout(endpoint.connect_timeout(), subscribe(&endpoint, &channel)).await {
            Ok(Ok((messages, control))) => {
                connections.subscribed(true);
                backoff.connected();
                receive(messages, (&control, &channel, left), &connections).await;
                connections.subscribed(false);
            }
            Ok(Err(error)) => {
                if connections.live().is_ok() {
                    endpoint.logged_in();
                }
                let error = endpoint.passing(error);
                backoff.failed(&error);
                if let Some(times) = complaints.times(&error.to_string()) {
                    events::not_listening(endpoint.label(), &error, times);
                }
                if matches!(error, NodeError::Refused(_)) {
                    sleep(AFTER_REFUSAL).await;
                }
            }
            Err(_) => {
                if let Some(times) = complaints.times("no answer") {
                    events::not_listening(endpoint.label(), "no answer", times);
                }
            }
        }
        backoff.pause().await;
    }
}

/// Connects and subscribes to `channel`.
pub(super) async fn subscribe(endpoint: &Endpoint, channel: &str) -> Result<(PubSubStream, Arc<Control>), NodeError> {
    let Opened { socket, control } = reach(endpoint).await?;
    let messages = messages(endpoint, socket, channel).await;
    if let Some(cut) = cut(&control) {
        return Err(cut);
    }
    Ok((messages?, control))
}

/// Logs in on `socket` and subscribes to `channel`.
async fn messages(endpoint: &Endpoint, socket: Socket, channel: &str) -> Result<PubSubStream, NodeError> {
    let login = endpoint.login().await?.set_protocol(ProtocolVersion::RESP2);
    let mut connection = PubSub::new(&login, socket).await.map_err(Failure::Handshake)?;
    connection.subscribe(channel).await.map_err(|error| refused(&error))?;
    Ok(connection.into_on_message())
}

/// Takes in messages until the connection breaks, or the one for commands leads to another server: this one need not break.
async fn receive(
    mut messages: PubSubStream,
    (control, channel, left): (&Control, &str, u64),
    connections: &Connections,
) {
    let is_elsewhere = || connections.times_left() != left || is_elsewhere(control, channel, connections);
    let mut left = pin!(wait_until(&connections.environment.changed, is_elsewhere));
    let mut next = async || {
        poll_fn(|cx| match Pin::new(&mut messages).poll_next(cx) {
            Poll::Pending => left.as_mut().poll(cx).map(|()| None),
            message @ Poll::Ready(_) => message,
        })
        .await
    };
    while let Some(message) = next().await {
        control.received.is_complete();
        if let Some(wakeup) = wakeup_in(message.get_payload_bytes()) {
            (connections.environment.deliver)(wakeup);
        }
    }
}

/// Whether the connection for commands leads to another server than that of `control`, on which `channel` is ours.
fn is_elsewhere(control: &Control, channel: &str, connections: &Connections) -> bool {
    let here = control.located.get().map(|located| &located.at);
    let is_other =
        |live: &LiveConnection| live.located().map(|located| &located.at) != here || live.own_channel() != channel;
    connections.live().is_ok_and(|live| is_other(&live))
}
