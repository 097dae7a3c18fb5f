//! Checks that fencing numbers grow with each owner of a lock.

use super::{Observer, Recorded};
use crate::FencingToken;
use crate::simulation::actor::key;
use crate::simulation::records::{Promise, Waiter};

/// Number of calls of one process that share one number of the nodes.
const PER_NUMBER: u64 = 1 << 16;

impl Observer {
    /// Checks and records the number that a call has received with its lock.
    pub(in crate::simulation) fn numbered(&self, waits: &Recorded<'_>, number: FencingToken) {
        let waiters: Vec<_> = {
            let records = self.records();
            records.waiters.iter().filter(|waiter| waiter.id == waits.id).cloned().collect()
        };
        for waiter in &waiters {
            self.grows(waiter, number);
        }
        for waiter in &waiters {
            self.records().numbers[waiter.key].insert(number);
        }
    }

    /// Checks that the number is above those of all earlier owners of the same place, or of a place above or below it.
    fn grows(&self, waiter: &Waiter, number: FencingToken) {
        let records = self.records();
        // A robbed process may pass on an older number to its next call until it notices the loss.
        let is_passed_on = !number.as_u64().is_multiple_of(PER_NUMBER);
        let latest = match (self.profile.faults.rob(), is_passed_on) {
            (false, _) => records.latest_number(waiter.key),
            (true, true) => None,
            (true, false) => waiter.number_before,
        };
        let grows = latest < Some(number) && !records.numbers[waiter.key].contains(&number);
        drop(records);
        if self.profile.keeps_counters() && !grows {
            self.broken(Promise::Fencing, format!("{number} follows {latest:?} of {}", key(waiter.key)));
        }
    }
}
