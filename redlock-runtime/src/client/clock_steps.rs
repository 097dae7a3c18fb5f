//! Shortens leases that end earlier than granted. Either the clock of a server was set forward, or the process left the
//! server because its name leads to another one.

use crate::client::local_queue::LocalQueue;
use crate::node::LeaseCut;
use crate::observe::events;
use crate::protocol::rules::Rule;
use std::sync::Arc;
use std::time::Duration;

/// Smallest step that is logged. Too small: a slewed clock logs again and again. Too large: steps that end leases are
/// not explained.
const LOGGED_STEP: Duration = Duration::from_millis(100);

/// Shortens leases of `local` from now on.
pub(crate) fn watch_clocks(local: &Arc<LocalQueue>) {
    let weak = Arc::downgrade(local);
    local.shared().servers.on_cut(Box::new(move |address, cut| {
        if let Some(local) = weak.upgrade() {
            shorten(&local, address, cut);
        }
    }));
}

/// Shortens the leases of the server at `address`. A step of its clock looks the same as a pause of this process by its hypervisor.
fn shorten(local: &Arc<LocalQueue>, address: &str, cut: LeaseCut) {
    let shared = local.shared();
    let Some(index) = shared.nodes.iter().position(|node| node.label() == address) else { return };
    let by = match cut {
        LeaseCut::ClockStep(_) if !shared.rules.apply(Rule::StepsShortenLeases) => return,
        LeaseCut::ClockStep(step) => step,
        LeaseCut::ServerLeft => Duration::MAX,
    };
    // Locks that have become urgent are renewed at once.
    local.change_all(shared.clock.now(), |acquisition| acquisition.on_clock_step(index, by));
    // Last, because a subscriber of events may take a while.
    if let Some(step) = logged(cut) {
        events::clock_step(address, step);
    }
}

/// Returns the step that is logged for `cut`. All steps shorten leases.
fn logged(cut: LeaseCut) -> Option<Duration> {
    match cut {
        LeaseCut::ClockStep(step) => Some(step).filter(|step| *step > LOGGED_STEP),
        // The event `name_moved` is logged instead.
        LeaseCut::ServerLeft => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that is slewed seems to make small steps all the time.
    #[test]
    fn only_clock_steps_above_100_ms_are_logged() {
        let table = [(0, false), (5, false), (100, false), (101, true), (3_600_000, true)];
        for (millis, is_logged) in table {
            let step = Duration::from_millis(millis);
            assert_eq!(logged(LeaseCut::ClockStep(step)), is_logged.then_some(step), "{step:?}");
        }
        assert_eq!(logged(LeaseCut::ServerLeft), None);
    }
}
