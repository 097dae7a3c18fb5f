//! Third kind of node: the connection of one manager to one simulated server.

use super::network::{Network, label};
use crate::error::NodeError;
use crate::lock::LockKey;
use crate::node::report::NodeReport;
use crate::node::{BoxFuture, Environment, Node, Recipient, Status};
use crate::protocol::command::{Command, Notice, Subject};
use crate::time::clock::Instant;
use crate::time::wait_until::wait_until;
use std::fmt;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

/// Connection of one manager to one simulated server.
pub(super) struct SimulatedNode {
    network: Arc<Network>,
    link: usize,
    label: String,
    environment: Environment,
}

impl SimulatedNode {
    pub(super) fn connect(
        network: &Arc<Network>,
        client: (usize, Instant),
        server: usize,
        environment: Environment,
    ) -> Arc<Self> {
        let link = network.add_link(client, server, environment.clone());
        Arc::new(Self { network: Arc::clone(network), link, label: label(server), environment })
    }
}

impl Node for SimulatedNode {
    fn label(&self) -> &str {
        &self.label
    }

    fn send_for(&self, command: Command, recipient: Recipient) {
        self.network.send(self.link, command, recipient);
    }

    fn status(&self) -> Status {
        self.network.world().links[self.link].status()
    }

    fn abstains_for(&self) -> Option<Duration> {
        let world = self.network.world();
        let link = &world.links[self.link];
        link.server_facts.abstains_for(link.abstention, link.server_facts.now())
    }

    fn wait_until_up<'a>(&'a self, key: &'a LockKey) -> BoxFuture<'a, ()> {
        Box::pin(wait_until(&self.environment.changed, || self.status_of(key) == Status::Up))
    }

    fn epoch_of(&self, _key: &LockKey) -> u64 {
        self.network.world().links[self.link].epoch
    }

    fn listen(&self) {
        self.network.listen(self.link);
    }

    fn is_listening_for(&self, _key: &LockKey) -> bool {
        self.network.world().links[self.link].is_listening
    }

    fn notify_body_running(&self, subject: &Subject) -> bool {
        self.network.publish(self.link, subject, Notice::Busy)
    }

    fn notify_stopped(&self, subject: &Subject) {
        self.network.publish(self.link, subject, Notice::Stopped);
    }

    fn notify_freed(&self, subject: &Subject) {
        self.network.publish(self.link, subject, Notice::Freed);
    }

    /// Fails: no workload uses time windows.
    fn time(&self) -> BoxFuture<'_, Result<Duration, NodeError>> {
        Box::pin(ready(Err(NodeError::Disconnected)))
    }

    fn report<'a>(&'a self, _key: &'a LockKey, _patience: Duration) -> BoxFuture<'a, NodeReport> {
        Box::pin(ready(NodeReport::unknown(&self.label)))
    }
}

impl fmt::Debug for SimulatedNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedNode").field("label", &self.label).finish_non_exhaustive()
    }
}
