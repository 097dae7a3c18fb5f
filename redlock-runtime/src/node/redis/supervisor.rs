//! Keeps one connection up: connects, waits until it breaks, connects again.

use super::backoff::Backoff;
use super::connect;
use super::connections::Connections;
use super::endpoint::Endpoint;
use super::log_throttle::{LASTING, LogThrottle};
use super::permissions;
use super::reach::cut;
use super::runtime_failover;
use super::settings;
use super::silence::{self, Checks};
use crate::error::NodeError;
use crate::observe::events;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::time::timeout;

/// Runs until it is aborted, on the library's thread. `host` is the runtime that the manager was built on.
pub(super) async fn supervise(endpoint: Arc<Endpoint>, supervised: Supervised, mut host: Option<Handle>) {
    let connections = &supervised.0;
    let (mut backoff, mut log_throttle) = (Backoff::new(), LogThrottle::default());
    let mut checks = Checks::for_commands(connections);
    loop {
        match connect::connect(&endpoint, connections).await {
            Ok((live, io_task)) => {
                let has_pushes = live.has_pushes();
                let up = |times| events::node_up(endpoint.label(), has_pushes, times);
                log_throttle.count_connection().into_iter().for_each(up);
                connections.server.counters.connected();
                let (control, listener) = (Arc::clone(io_task.control()), Arc::clone(&live));
                connections.up(Arc::clone(&live));
                endpoint.connected();
                backoff.connected();
                let driving = runtime_failover::drive(io_task, connections, &mut host);
                let silence = silence::watch(&live, &control, &endpoint, (connections, &mut checks));
                let driving = beside(beside(driving, permissions::watch(&live)), settings::watch(&live));
                let mut driving = pin!(beside(driving, silence));
                let ended = if log_throttle.has_unreported_connection() {
                    timeout(LASTING, driving.as_mut()).await.ok()
                } else {
                    None
                };
                if ended.is_none() {
                    log_throttle.still_up().into_iter().for_each(up);
                }
                let error = match ended {
                    Some(error) => error,
                    None => driving.await,
                };
                // A reply that is too long has the same effect on a connection for wake-ups. The wrong guess costs one connection.
                if listener.is_listening() && cut(&control).is_some() {
                    connections.use_separate_listener();
                }
                // The login was valid until now, even if it was changed in the meantime.
                endpoint.logged_in();
                connections.server.disconnected();
                if live.is_left() {
                    // Only after the end of the connection: no reply of this server comes later.
                    connections.server.on_server_left();
                    connections.left();
                }
                if let Some(times) = log_throttle.times("broke") {
                    events::node_down(endpoint.label(), &error, times);
                }
            }
            Err(error) => {
                let error = endpoint.passing(error);
                backoff.failed(&error);
                complain(endpoint.label(), &error, &mut log_throttle);
                connections.down(error);
            }
        }
        backoff.pause().await;
    }
}

/// Polls `other`, which never ends, as long as `future` runs.
async fn beside<T>(future: impl Future<Output = T>, other: impl Future<Output = Infallible>) -> T {
    let (mut future, mut other) = (pin!(future), pin!(other));
    poll_fn(|cx| {
        let _ = other.as_mut().poll(cx);
        future.as_mut().poll(cx)
    })
    .await
}

/// Logs the reason why there is no connection to `node`.
fn complain(node: &str, error: &NodeError, log_throttle: &mut LogThrottle) {
    let Some(times) = log_throttle.times(&error.to_string()) else { return };
    match error {
        NodeError::SameServer(_) => events::same_server(node, error, times),
        error => events::node_down(node, error, times),
    }
}

/// The connections of a supervisor, as the callers see them. When the supervisor ends for any reason, so does the node.
pub(super) struct Supervised(pub(super) Arc<Connections>);

impl Drop for Supervised {
    fn drop(&mut self) {
        let reason = if std::thread::panicking() {
            "the task of the connection has panicked"
        } else {
            "the task of the connection has ended"
        };
        self.0.server.disconnected();
        self.0.down(NodeError::Unreachable(reason.into()));
    }
}
