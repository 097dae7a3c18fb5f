//! Listens to the Sentinels: when they have made another server the master, the connection to the one before ends.

use super::Sentinels;
use crate::error::NodeError;
use crate::node::redis::backoff::Backoff;
use crate::node::redis::cluster::address::MemberAddress;
use crate::node::redis::complaints::Complaints;
use crate::node::redis::connections::Connections;
use crate::node::redis::subscriber;
use crate::observe::events;
use futures_core::Stream;
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

/// Where a Sentinel says which master has been replaced by which server.
const SWITCHES: &str = "+switch-master";

/// Listens to all that are known. Runs until it is aborted, on the library's thread.
pub(in crate::node::redis) async fn watch(sentinels: Arc<Sentinels>, connections: Arc<Connections>) {
    let mut tasks = JoinSet::new();
    let mut listeners = HashMap::<MemberAddress, AbortHandle>::new();
    loop {
        let known = sentinels.addresses();
        listeners.retain(|address, listener| {
            let is_known = known.contains(address);
            if !is_known {
                listener.abort();
            }
            is_known
        });
        for address in known {
            listeners
                .entry(address.clone())
                .or_insert_with(|| tasks.spawn(listen(address, Arc::clone(&sentinels), Arc::clone(&connections))));
        }
        sentinels.changed.notified().await;
        // Those that were aborted.
        while tasks.try_join_next().is_some() {}
    }
}

/// Listens to the Sentinel at `address` for ever.
async fn listen(address: MemberAddress, sentinels: Arc<Sentinels>, connections: Arc<Connections>) {
    let endpoint = sentinels.at(&address);
    let (mut backoff, mut complaints) = (Backoff::new(), Complaints::default());
    loop {
        let subscribed = timeout(endpoint.connect_timeout(), subscriber::subscribe(&endpoint, SWITCHES)).await;
        match subscribed.unwrap_or_else(|_| Err(NodeError::Unreachable("no answer".into()))) {
            Ok((mut messages, control)) => {
                backoff.connected();
                // What was said before this is not said again.
                look_again(&sentinels, &connections).await;
                while let Some(message) = poll_fn(|cx| Pin::new(&mut messages).poll_next(cx)).await {
                    control.received.is_complete();
                    if concerns(message.get_payload_bytes(), &sentinels.service) {
                        look_again(&sentinels, &connections).await;
                    }
                }
            }
            Err(error) => {
                if let Some(times) = complaints.times(&error.to_string()) {
                    events::sentinel_unheard(connections.server.node(), endpoint.label(), &error, times);
                }
            }
        }
        backoff.pause().await;
    }
}

/// Ends the connection if the master is another one by now.
async fn look_again(sentinels: &Arc<Sentinels>, connections: &Connections) {
    let Some(master) = sentinels.other_master().await else { return };
    if let Ok(live) = connections.live() {
        events::master_changed(connections.server.node(), &master);
        live.end(NodeError::Unreachable(format!("the Sentinels have made {master} the master").into()));
    }
}

/// Whether a message is about the master called `service`, which it names first.
fn concerns(message: &[u8], service: &str) -> bool {
    message.split(|byte| *byte == b' ').next() == Some(service.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::concerns;

    #[test]
    fn messages_about_other_masters_do_not_matter() {
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
