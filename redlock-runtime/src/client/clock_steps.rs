//! What follows when the clock of a server was set forward: the leases that it gave before end earlier.

use crate::client::local_queue::LocalQueue;
use crate::observe::events;
use crate::protocol::rules::Rule;
use std::sync::Arc;
use std::time::Duration;

/// Listens for steps from now on.
pub(crate) fn watch_clocks(local: &Arc<LocalQueue>) {
    let weak = Arc::downgrade(local);
    local.shared().servers.on_step(Box::new(move |address, step| {
        if let Some(local) = weak.upgrade() {
            clock_stepped(&local, address, step);
        }
    }));
}

/// The clock of the server at `address` went ahead by at most `step`, or ours has stood still.
fn clock_stepped(local: &Arc<LocalQueue>, address: &str, step: Duration) {
    let shared = local.shared();
    let Some(index) = shared.nodes.iter().position(|node| node.label() == address) else { return };
    if !shared.rules.apply(Rule::StepsShortenLeases) {
        return;
    }
    // What has become urgent is renewed at once.
    local.change_all(shared.clock.now(), |acquisition| acquisition.clock_stepped(index, step));
    // Only now: whoever is told may take a while.
    events::clock_step(address, step);
}
