//! Of a lock with permits, no more are had than there are: counted by whoever sees all guards at once.

use super::Observer;
use crate::simulation::actor::key;
use crate::simulation::records::{Holder, Promise};
use crate::simulation::tree::names;

impl Observer {
    /// Whoever is about to enter finds so few others that it may. Who was robbed meanwhile does not know it yet.
    pub(super) fn has_room(&self, next: &Holder) {
        let Some(permits) = next.permits else { return };
        let others = self.permitted(next.key).len();
        if others >= permits as usize && !self.is_robbed(next) {
            self.broken(Promise::Pool, format!("{next} has one of {permits} permits, beside {others} others"));
        }
    }

    /// Nobody has a permit beside more others than the most generous of them allows.
    pub(super) fn pool(&self) {
        for index in 0..2 {
            let permits = self.permitted(index);
            let most = permits.iter().copied().max().unwrap_or_default() as usize;
            if permits.len() > most {
                self.broken(Promise::Pool, format!("{} have one of {most} permits", permits.len()));
            }
        }
    }

    /// For each that provably has a permit of this key, how many there may be. Who was robbed of it is none of them, and does not know it
    /// yet.
    fn permitted(&self, index: usize) -> Vec<u32> {
        let (records, now) = (self.records(), self.network.now());
        let of_key = records.holders.iter().filter(|holder| holder.key == index);
        // Most have no permits, and to ask a guard takes longer than all the rest.
        let permitted = of_key.filter_map(|holder| Some((holder, holder.permits?)));
        let have_it = permitted.filter(|(holder, _)| holder.is_valid(now) && !self.is_robbed(holder));
        have_it.map(|(_, permits)| permits).collect()
    }

    fn is_robbed(&self, holder: &Holder) -> bool {
        names(holder.key).any(|name| self.network.robbed_at(&key(name), holder.token).is_some())
    }
}
