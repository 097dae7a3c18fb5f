//! Checks that a lock has no more permit holders than permits, from all guards at once.

use super::Observer;
use crate::simulation::actor::key;
use crate::simulation::records::{Holder, Promise};
use crate::simulation::tree::names;

impl Observer {
    /// Checks that a call that is about to enter has fewer than `permits` others beside it. A call that was robbed
    /// meanwhile is exempt, because it cannot know yet.
    pub(super) fn check_room(&self, next: &Holder) {
        let Some(permits) = next.permits else { return };
        let others = self.permitted(next.key).len();
        if others >= permits as usize && !self.is_robbed(next) {
            self.broken(Promise::Pool, format!("{next} has one of {permits} permits, beside {others} others"));
        }
    }

    /// Checks that the number of permit holders is at most the largest limit among them.
    pub(super) fn pool(&self) {
        for index in 0..2 {
            let permits = self.permitted(index);
            let most = permits.iter().copied().max().unwrap_or_default() as usize;
            if permits.len() > most {
                self.broken(Promise::Pool, format!("{} have one of {most} permits", permits.len()));
            }
        }
    }

    /// Returns the limit of each valid permit holder of this key. A robbed holder that has not noticed yet is excluded.
    fn permitted(&self, index: usize) -> Vec<u32> {
        let (records, now) = (self.records(), self.network.now());
        let of_key = records.holders.iter().filter(|holder| holder.key == index);
        // Few holders have permits, and a query of the guard costs more than the rest.
        let permitted = of_key.filter_map(|holder| Some((holder, holder.permits?)));
        let have_it = permitted.filter(|(holder, _)| holder.is_valid(now) && !self.is_robbed(holder));
        have_it.map(|(_, permits)| permits).collect()
    }

    fn is_robbed(&self, holder: &Holder) -> bool {
        names(holder.key).any(|name| self.network.robbed_at(&key(name), holder.token).is_some())
    }
}
