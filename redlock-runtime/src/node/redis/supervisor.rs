//! Keeps one connection up: connects, waits until it breaks, connects again.

use super::backoff::{Backoff, CONNECT_TIMEOUT};
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
    let mut backoff = Backoff::new();
    loop {
        match timeout(CONNECT_TIMEOUT, connect::connect(&endpoint, &connections.server, &connections.environment)).await
        {
            Ok(Ok((live, courier))) => {
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
                connections.server.disconnected();
                tracing::warn!(node = endpoint.label(), %error, "the connection broke");
            }
            Ok(Err(error @ NodeError::SameServer(_))) => {
                tracing::error!(node = endpoint.label(), %error, "each node must be an independent server");
                connections.down(error);
            }
            Ok(Err(error)) => {
                tracing::warn!(node = endpoint.label(), %error, "cannot connect");
                connections.down(error);
            }
            Err(_) => {
                tracing::warn!(node = endpoint.label(), "cannot connect: no answer");
                let reason = format!("no connection within {CONNECT_TIMEOUT:?}");
                connections.down(NodeError::Unreachable(reason.into()));
            }
        }
        backoff.pause().await;
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
