//! The third kind of node: one manager's connection to one simulated server.

use super::network::{Network, label};
use crate::node::{Environment, Recipient, Status};
use crate::protocol::command::Command;
use crate::time::wait_until::wait_until;
use std::fmt;
use std::sync::Arc;

pub(crate) struct SimulatedNode {
    network: Arc<Network>,
    link: usize,
    label: String,
    environment: Environment,
}

impl SimulatedNode {
    pub(super) fn connect(network: &Arc<Network>, client: usize, server: usize, environment: Environment) -> Arc<Self> {
        let link = network.add_link(client, server, environment.clone());
        Arc::new(Self { network: Arc::clone(network), link, label: label(server), environment })
    }

    pub(crate) fn send(&self, command: Command, recipient: Recipient) {
        self.network.send(self.link, command, recipient);
    }

    pub(crate) fn status(&self) -> Status {
        self.network.world().links[self.link].status()
    }

    pub(crate) async fn up(&self) {
        wait_until(&self.environment.changed, || self.status() == Status::Up).await;
    }

    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.network.world().links[self.link].epoch
    }

    pub(crate) fn listen(&self) {
        self.network.listen(self.link);
    }

    pub(crate) fn is_listening(&self) -> bool {
        self.network.world().links[self.link].is_listening
    }
}

impl fmt::Debug for SimulatedNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedNode").field("label", &self.label).finish_non_exhaustive()
    }
}
