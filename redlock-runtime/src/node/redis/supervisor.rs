//! Keeps one connection up: connects, waits until it breaks, connects again.

use super::backoff::Backoff;
use super::complaints::Complaints;
use super::connect;
use super::connections::Connections;
use super::endpoint::Endpoint;
use super::relief;
use crate::error::NodeError;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::time::timeout;

/// Runs until it is aborted, on the library's thread. `host` is the runtime that the manager was built on.
pub(super) async fn supervise(endpoint: Arc<Endpoint>, supervised: Supervised, mut host: Option<Handle>) {
    let connections = &supervised.0;
    let (mut backoff, mut complaints) = (Backoff::new(), Complaints::default());
    loop {
        let connected = connect::connect(&endpoint, &connections.server, &connections.environment);
        match timeout(endpoint.connect_timeout(), connected).await {
            Ok(Ok((live, courier))) => {
                endpoint.logged_in();
                tracing::debug!(node = endpoint.label(), has_pushes = live.has_pushes(), "connected");
                if let Some(left) = live.abstains_for() {
                    let node = endpoint.label();
                    tracing::warn!(
                        node,
                        ?left,
                        "the server was restarted and may have forgotten locks: it does not count"
                    );
                }
                connections.up(live);
                backoff.connected();
                let error = relief::drive(courier, connections, &mut host).await;
                // Until now, whatever was changed meanwhile.
                endpoint.logged_in();
                connections.server.disconnected();
                if let Some(times) = complaints.times("broke") {
                    tracing::warn!(node = endpoint.label(), %error, times, "the connection broke");
                }
            }
            Ok(Err(error)) => {
                let error = endpoint.passing(error);
                complain(endpoint.label(), &error, &mut complaints);
                connections.down(error);
            }
            Err(_) => {
                let error = NodeError::Unreachable(no_answer(&endpoint).into());
                complain(endpoint.label(), &error, &mut complaints);
                connections.down(error);
            }
        }
        backoff.pause().await;
    }
}

/// A server that waits for the end of a command takes the first bytes of TLS for the beginning of one.
fn no_answer(endpoint: &Endpoint) -> String {
    let hint = if endpoint.is_tls() { "; if the server does not speak TLS on this port, write redis://" } else { "" };
    format!("no connection within {:?}{hint}", endpoint.connect_timeout())
}

/// Says in the log why there is no connection to `node`.
fn complain(node: &str, error: &NodeError, complaints: &mut Complaints) {
    let Some(times) = complaints.times(&error.to_string()) else { return };
    match error {
        NodeError::SameServer(_) => tracing::error!(node, %error, times, "each node must be an independent server"),
        error => tracing::warn!(node, %error, times, "cannot connect"),
    }
}

/// What the callers see of a supervisor. When it ends, whatever the reason, so does the node.
pub(super) struct Supervised(pub(super) Arc<Connections>);

impl Drop for Supervised {
    fn drop(&mut self) {
        let reason = if std::thread::panicking() {
            "the task of the connection has panicked"
        } else {
            "the task of the connection has ended"
        };
        self.0.down(NodeError::Unreachable(reason.into()));
    }
}
