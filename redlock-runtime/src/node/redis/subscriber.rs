//! Reception of wake-ups on a separate connection, if the connection for commands uses RESP2.

use super::answer::{refused, wakeup_in};
use super::backoff::Backoff;
use super::connections::Connections;
use super::endpoint::Endpoint;
use super::live_connection::LiveConnection;
use super::log_throttle::LogThrottle;
use super::progress::Progress;
use super::reach::{Failure, cut, reach};
use super::silence::{self, Checks};
use super::socket::{Control, Opened, Socket};
use crate::error::NodeError;
use crate::observe::events;
use crate::time::wait_until::wait_until;
use futures_core::Stream;
use redis::aio::{PubSub, PubSubSink, PubSubStream};
use redis::{Msg, ProtocolVersion};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Pause after a server has refused the subscription, until the permissions of the user are changed. Too small: more useless attempts. Too
/// large: callers receive wake-ups later after the change.
const AFTER_REFUSAL: Duration = Duration::from_secs(30);

/// Maintains the connection for wake-ups while it is needed. Runs until it is aborted.
pub(super) async fn listen(endpoint: Arc<Endpoint>, connections: Arc<Connections>) {
    let (mut backoff, mut log_throttle) = (Backoff::new(), LogThrottle::default());
    let mut checks = Checks::new(Arc::clone(&connections.checking));
    loop {
        wait_until(&connections.environment.changed, || connections.needs_subscriber()).await;
        // The connection may just have ended.
        let Ok(channel) = connections.live().map(|live| live.own_channel()) else { continue };
        let left = connections.times_left();
        match timeout(endpoint.connect_timeout(), subscribe(&endpoint, &channel)).await {
            Ok(Ok(subscription)) => {
                connections.subscribed(true);
                backoff.connected();
                receive(subscription, (&channel, left), &connections, (&endpoint, &mut checks)).await;
                connections.subscribed(false);
            }
            Ok(Err(error)) => {
                if connections.live().is_ok() {
                    endpoint.logged_in();
                }
                let error = endpoint.passing(error);
                backoff.failed(&error);
                if let Some(times) = log_throttle.times(&error.to_string()) {
                    events::not_listening(endpoint.label(), &error, times);
                }
                if matches!(error, NodeError::Refused(_)) {
                    sleep(AFTER_REFUSAL).await;
                }
            }
            Err(_) => {
                if let Some(times) = log_throttle.times("no answer") {
                    events::not_listening(endpoint.label(), "no answer", times);
                }
            }
        }
        backoff.pause().await;
    }
}

/// A connection that is subscribed to one channel.
pub(super) struct Subscription {
    messages: PubSubStream,
    pings: PubSubSink,
    control: Arc<Control>,
}

impl Subscription {
    /// Passes all messages to `take`, until the connection breaks or is dead, or `over` is ready.
    pub(super) async fn receive(
        self,
        (endpoint, checks): (&Endpoint, &mut Checks),
        over: impl Future<Output = ()>,
        mut take: impl FnMut(&Msg),
    ) {
        let Self { mut messages, pings, control } = self;
        let mut over = pin!(over);
        let mut death = pin!(silence::death(pings, &control, endpoint, checks));
        let mut next = async || {
            poll_fn(|cx| match Pin::new(&mut messages).poll_next(cx) {
                Poll::Pending if over.as_mut().poll(cx).is_ready() => Poll::Ready(None),
                Poll::Pending => death.as_mut().poll(cx).map(|()| None),
                message @ Poll::Ready(_) => message,
            })
            .await
        };
        while let Some(message) = next().await {
            control.received.on_complete();
            take(&message);
        }
    }
}

/// Connects and subscribes to `channel`.
pub(super) async fn subscribe(endpoint: &Endpoint, channel: &str) -> Result<Subscription, NodeError> {
    let Opened { socket, control } = reach(endpoint, &Progress::default()).await?;
    let subscribed = subscribed(endpoint, socket, channel).await;
    if let Some(cut) = cut(&control) {
        return Err(cut);
    }
    let (pings, messages) = subscribed?.split();
    Ok(Subscription { messages, pings, control })
}

/// Logs in on `socket` and subscribes to `channel`.
async fn subscribed(endpoint: &Endpoint, socket: Socket, channel: &str) -> Result<PubSub, NodeError> {
    let login = endpoint.login().await?.set_protocol(ProtocolVersion::RESP2);
    let mut connection = PubSub::new(&login, socket).await.map_err(Failure::Handshake)?;
    connection.subscribe(channel).await.map_err(|error| refused(&error))?;
    Ok(connection)
}

/// Delivers messages until the connection breaks, or until the connection for commands leads to another server: this connection need not
/// break then.
async fn receive(
    subscription: Subscription,
    (channel, left): (&str, u64),
    connections: &Connections,
    checked: (&Endpoint, &mut Checks),
) {
    let control = Arc::clone(&subscription.control);
    let is_elsewhere = || connections.times_left() != left || is_elsewhere(&control, channel, connections);
    let left = wait_until(&connections.environment.changed, is_elsewhere);
    let deliver = |message: &Msg| {
        if let Some(wakeup) = wakeup_in(message.get_payload_bytes()) {
            (connections.environment.deliver)(wakeup);
        }
    };
    subscription.receive(checked, left, deliver).await;
}

/// Returns `true` if the connection for commands leads to another server than that of `control`, on which `channel` is ours.
fn is_elsewhere(control: &Control, channel: &str, connections: &Connections) -> bool {
    let here = control.located.get().map(|located| &located.at);
    let is_other =
        |live: &LiveConnection| live.located().map(|located| &located.at) != here || live.own_channel() != channel;
    connections.live().is_ok_and(|live| is_other(&live))
}
