//! Numbers grow with each owner of a lock.

use super::{Observer, Recorded};
use crate::FencingToken;
use crate::simulation::actor::key;
use crate::simulation::records::Promise;

impl Observer {
    /// A call has got a number together with its lock.
    pub(in crate::simulation) fn numbered(&self, waits: &Recorded<'_>, number: FencingToken) {
        let mut records = self.records();
        let Some(waiter) = records.waiters.iter().find(|waiter| waiter.id == waits.id) else { return };
        let (index, issued) = (waiter.key, &records.numbers[waiter.key]);
        let latest = issued.last().copied();
        let grows = latest < Some(number);
        records.numbers[index].insert(number);
        drop(records);
        if self.keeps_counters && !grows {
            self.broken(Promise::Fencing, format!("{number} follows {latest:?} of {}", key(index)));
        }
    }
}
