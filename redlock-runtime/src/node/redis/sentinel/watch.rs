//! Follows the master: when the Sentinels have replaced it by another server, the connection to the old one ends.
//!
//! One task looks the master up: when a Sentinel announces a new one, when a connection was made, when an unreachable Sentinel is connected
//! again, and periodically. It repeats a failed look-up until it succeeds.

use super::sentinels::Sentinels;
use crate::error::NodeError;
use crate::node::redis::backoff::Backoff;
use crate::node::redis::cluster::address::MemberAddress;
use crate::node::redis::connections::Connections;
use crate::node::redis::endpoint::Located;
use crate::node::redis::log_throttle::LogThrottle;
use crate::node::redis::silence::Checks;
use crate::node::redis::subscriber;
use crate::observe::events;
use redis::Msg;
use std::collections::HashMap;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

/// The channel on which a Sentinel announces that a master was replaced.
const SWITCHES: &str = "+switch-master";

/// Time for which the master is assumed to stay without any message. Too small: more queries. Too large: a replaced master is used for
/// longer if no message arrived.
const GOOD_FOR: Duration = Duration::from_secs(30);

/// Pause between two look-ups. Too small: a Sentinel that publishes without end makes the client query all of them without end. Too large:
/// the connection to an old master ends later.
const LEAST_PAUSE: Duration = Duration::from_millis(50);

/// Looks the master up, and subscribes to all known Sentinels. Runs until it is aborted, on the library's thread.
pub(in crate::node::redis) async fn watch(sentinels: Sentinels, connections: Arc<Connections>) {
    let (mut listeners, mut backoff) = (Listeners::default(), Backoff::new());
    loop {
        listeners.follow(&sentinels, &connections);
        match sentinels.ask().await {
            Ok(located) => {
                leave_others(&located, &connections);
                listeners.follow(&sentinels, &connections);
                backoff.connected();
                sleep(LEAST_PAUSE).await;
                // Both outcomes are a reason to look the master up.
                let _ = timeout(GOOD_FOR.mul_f64(0.75 + 0.25 * fastrand::f64()), sentinels.wanted()).await;
            }
            // The supervisor reports the reason, if there is no connection.
            Err(error) => {
                backoff.failed(&error);
                backoff.pause().await;
            }
        }
    }
}

/// Ends the connection if it leads to another server than the master.
fn leave_others(master: &Located, connections: &Connections) {
    let Ok(live) = connections.live() else { return };
    if live.located().is_some_and(|here| here.is_replaced_by(master)) {
        let at = &master.at;
        events::master_changed(connections.server.node(), at);
        live.end(NodeError::Unreachable(format!("the Sentinels have made {at} the master").into()));
    }
}

/// The tasks that subscribe, each to one Sentinel.
#[derive(Default)]
struct Listeners {
    /// Ends the tasks when it is dropped.
    tasks: JoinSet<()>,
    handles: HashMap<MemberAddress, AbortHandle>,
}

impl Listeners {
    /// Subscribes to all Sentinels that are known now, and to no others.
    fn follow(&mut self, sentinels: &Sentinels, connections: &Arc<Connections>) {
        let known = sentinels.addresses();
        self.handles.retain(|address, listener| {
            let is_known = known.contains(address);
            if !is_known {
                listener.abort();
            }
            is_known
        });
        for address in known {
            if !self.handles.contains_key(&address) {
                let listening = listen(address.clone(), sentinels.clone(), Arc::clone(connections));
                self.handles.insert(address, self.tasks.spawn(listening));
            }
        }
        // Removes the aborted tasks.
        while self.tasks.try_join_next().is_some() {}
    }
}

/// Subscribes to the Sentinel at `address` for ever.
async fn listen(address: MemberAddress, sentinels: Sentinels, connections: Arc<Connections>) {
    let endpoint = sentinels.at(&address);
    let (mut backoff, mut log_throttle) = (Backoff::new(), LogThrottle::default());
    let mut checks = Checks::new(Arc::default());
    loop {
        let subscribed = timeout(endpoint.connect_timeout(), subscriber::subscribe(&endpoint, SWITCHES)).await;
        match subscribed.unwrap_or_else(|_| Err(NodeError::Unreachable("no answer".into()))) {
            Ok(subscription) => {
                backoff.connected();
                // Earlier messages are not repeated.
                sentinels.request_master_lookup();
                let look = |message: &Msg| {
                    if concerns(message.get_payload_bytes(), sentinels.service()) {
                        sentinels.request_master_lookup();
                    }
                };
                subscription.receive((&endpoint, &mut checks), pending(), look).await;
            }
            Err(error) => {
                backoff.failed(&error);
                if let Some(times) = log_throttle.times(&error.to_string()) {
                    events::sentinel_unheard(connections.server.node(), endpoint.label(), &error, times);
                }
            }
        }
        backoff.pause().await;
    }
}

/// Returns `true` if a message is about the master called `service`, which is its first word.
fn concerns(message: &[u8], service: &str) -> bool {
    message.split(|byte| *byte == b' ').next() == Some(service.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::concerns;

    #[test]
    fn messages_about_other_masters_are_ignored() {
        let table = [
            ("orders 10.0.0.1 6379 10.0.0.2 6379", true),
            ("orders2 10.0.0.1 6379 10.0.0.2 6379", false),
            ("", false),
            ("orders", true),
        ];
        for (message, expected) in table {
            assert_eq!(concerns(message.as_bytes(), "orders"), expected, "{message}");
        }
    }
}
