//! Checks that a waiter for a place in the tree is served soon after no holder excludes it.

use super::Observer;
use crate::Wait;
use crate::lock::{LockKey, OwnerToken};
use crate::simulation::actor::key;
use crate::simulation::profile::Profile;
use crate::simulation::records::{Holder, Promise, Records, Waiter};
use crate::simulation::tree::{NAMES, names, overlap};
use crate::time::clock::Instant;

impl Observer {
    /// Returns `true` if a waiter for `index`, or a waiter that blocks one of them, could be served.
    ///
    /// This is so if no holder excludes any of these waiters, and a quorum of servers has nothing that blocks them.
    pub(super) fn is_idle_in_tree(&self, records: &Records, index: usize, now: Instant) -> bool {
        let group = self.group(records, index);
        let is_in_the_way =
            |holder: &Holder| group.iter().any(|waiter| holder.excludes_call_for(waiter.key, waiter.is_shared));
        let (ours, others): (Vec<_>, Vec<_>) = records.holders.iter().partition(|holder| is_in_the_way(holder));
        if group.is_empty() || ours.iter().any(|holder| holder.is_valid(now)) {
            return false;
        }
        let windows = records.windows.iter().filter(|window| now < window.until.after(self.patient));
        let kept = ours.iter().map(|holder| holder.token).chain(windows.map(|window| window.token));
        let kept: Vec<_> =
            kept.chain(records.detached.iter().copied()).chain(self.stand_ins(&records.holders)).collect();
        let harmless: Vec<OwnerToken> = others.iter().map(|holder| holder.token).collect();
        let clients: Vec<_> = group.iter().map(|waiter| waiter.client).collect();
        let is_wanted = |name: &usize| group.iter().any(|waiter| names(waiter.key).any(|other| other == *name));
        let wanted: Vec<LockKey> = (0..NAMES.len()).filter(is_wanted).map(key).collect();
        self.network.can_serve_all(&wanted, &clients, &kept, &harmless)
    }

    /// Returns the waiters for `index`, the waiters that can block one of them, and so on.
    fn group<'r>(&self, records: &'r Records, index: usize) -> Vec<&'r Waiter> {
        let waits = |waiter: &&Waiter| waiter.wait != Wait::None && self.network.is_well(waiter.client);
        let (mut group, mut rest): (Vec<_>, Vec<_>) =
            records.waiters.iter().filter(waits).partition(|waiter| waiter.key == index);
        let mut seen = 0;
        while let Some(waiter) = group.get(seen).copied() {
            seen += 1;
            let concerns = |other: &mut &Waiter| {
                let is_the_same = other.id == waiter.id;
                is_the_same || overlap(other.key, waiter.key) && !(other.is_shared && waiter.is_shared)
            };
            group.extend(rest.extract_if(.., concerns));
        }
        group
    }

    /// Checks that no waiter is notified of a name whose holder did not exclude it.
    pub(super) fn quiet(&self) {
        // After a shutdown or with detached locks, names can be left that no call resumes.
        let Profile { tree, faults, shutdowns, detaches, .. } = &self.profile;
        let is_checked = *tree > 0 && faults.are_none() && *shutdowns == 0 && *detaches == 0;
        if let Some(text) = self.network.needless().filter(|_| is_checked) {
            self.broken(Promise::Quiet, text);
        }
    }
}
