//! Numbers grow with each owner of a lock.

use super::{Observer, Recorded};
use crate::FencingToken;
use crate::simulation::actor::key;
use crate::simulation::records::{Promise, Waiter};

/// How many calls of one process share a number of the nodes.
const PER_NUMBER: u64 = 1 << 16;

impl Observer {
    /// A call has got a number together with its lock.
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

    /// The number is above those of all who have had the same, or something above it or below.
    fn grows(&self, waiter: &Waiter, number: FencingToken) {
        let records = self.records();
        // A process that was robbed may pass on what it had drawn before, as long as it does not know.
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
