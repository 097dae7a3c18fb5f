//! Numbers grow with each owner of a lock.

use super::{Observer, Recorded};
use crate::FencingToken;
use crate::simulation::actor::key;
use crate::simulation::records::Promise;

/// How many calls of one process share a number of the nodes.
const PER_NUMBER: u64 = 1 << 16;

impl Observer {
    /// A call has got a number together with its lock.
    pub(in crate::simulation) fn numbered(&self, waits: &Recorded<'_>, number: FencingToken) {
        let mut records = self.records();
        let Some(waiter) = records.waiters.iter().find(|waiter| waiter.id == waits.id) else { return };
        let (index, issued) = (waiter.key, &records.numbers[waiter.key]);
        // A process that was robbed may pass on what it had drawn before, as long as it does not know.
        let is_passed_on = !number.as_u64().is_multiple_of(PER_NUMBER);
        let latest = match (self.profile.faults.rob(), is_passed_on) {
            (false, _) => issued.last().copied(),
            (true, true) => None,
            (true, false) => waiter.number_before,
        };
        let grows = latest < Some(number) && !issued.contains(&number);
        records.numbers[index].insert(number);
        drop(records);
        if self.profile.keeps_counters() && !grows {
            self.broken(Promise::Fencing, format!("{number} follows {latest:?} of {}", key(index)));
        }
    }
}
