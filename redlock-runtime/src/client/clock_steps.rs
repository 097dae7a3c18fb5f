//! What follows when the clock of a server was set forward: the leases that it gave before end earlier.

use crate::client::shared::Core;
use crate::protocol::rules::Rule;
use std::sync::Arc;
use std::time::Duration;

impl Core {
    /// Listens for steps from now on.
    pub(crate) fn watch_clocks(self: &Arc<Self>) {
        let core = Arc::downgrade(self);
        self.servers.on_step(Box::new(move |address, step| {
            if let Some(core) = core.upgrade() {
                core.clock_stepped(address, step);
            }
        }));
    }

    /// The clock of the server at `address` went ahead by at most `step`, or ours has stood still.
    fn clock_stepped(self: &Arc<Self>, address: &str, step: Duration) {
        let Some(index) = self.nodes.iter().position(|node| node.label() == address) else { return };
        if !self.rules.apply(Rule::StepsShortenLeases) {
            return;
        }
        tracing::warn!(node = address, ?step, "the clock of the server was set forward: its leases end earlier");
        let now = self.clock.now();
        for ownership in self.local.all(now) {
            ownership.clock_stepped(index, step);
        }
        // What has become urgent is renewed at once.
        self.watchdog.look_within(self, Duration::ZERO, now);
    }
}
