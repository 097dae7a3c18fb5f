//! Keeps one connection up: connects, waits until it breaks, connects again.

use super::endpoint::Endpoint;
use super::{Shared, State, connect};
use crate::error::NodeError;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// The longest that making a connection may take, from the name look-up to the loaded scripts.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Runs until it is aborted.
pub(super) async fn supervise(endpoint: Endpoint, client_name: String, supervised: Supervised) {
    let shared = &supervised.0;
    let mut pause = FIRST_PAUSE;
    loop {
        match timeout(CONNECT_TIMEOUT, connect::connect(&endpoint, &client_name)).await {
            Ok(Ok((link, courier))) => {
                tracing::debug!(node = endpoint.label(), capabilities = ?link.capabilities, "connected");
                shared.set(State::Up(link));
                let connected = Instant::now();
                courier.await;
                // Before anything else: callers must not go on sending into the void.
                shared.set(State::Down(NodeError::Unreachable("the connection broke".into())));
                tracing::warn!(node = endpoint.label(), "the connection broke");
                // One that breaks at once is no success.
                if connected.elapsed() > LONGEST_PAUSE {
                    pause = FIRST_PAUSE;
                }
            }
            Ok(Err(error)) => {
                tracing::warn!(node = endpoint.label(), %error, "cannot connect");
                shared.set(State::Down(error));
            }
            Err(_) => {
                tracing::warn!(node = endpoint.label(), "cannot connect: no answer");
                let reason = format!("no connection within {CONNECT_TIMEOUT:?}");
                shared.set(State::Down(NodeError::Unreachable(reason.into())));
            }
        }
        sleep(jittered(pause)).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// What the callers see of a supervisor. When it ends, whatever the reason, so does the node.
pub(super) struct Supervised(pub(super) Arc<Shared>);

impl Drop for Supervised {
    fn drop(&mut self) {
        let reason = if std::thread::panicking() {
            "the task of the connection has panicked"
        } else {
            "the tokio runtime that the manager was built on has ended"
        };
        self.0.set(State::Down(NodeError::Unreachable(reason.into())));
    }
}

/// Between half of `pause` and all of it, so that a restarted server does not meet all its clients at once.
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(0.5 + 0.5 * fastrand::f64())
}
