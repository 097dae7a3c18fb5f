//! Checks that a manager acquires no locks after its shutdown, and leaves nothing behind.

use super::{Observer, SLACK};
use crate::LockError;
use crate::lock::{LockKey, OwnerToken};
use crate::simulation::actor::key;
use crate::simulation::records::{Promise, Waiter};
use crate::simulation::telling::client_name;
use std::time::Duration;

/// Longest time for which a call may continue after the shutdown: a pause between two attempts, and one exchange with
/// the nodes.
const UNDER_WAY: Duration = Duration::from_millis(120);
/// Longest time for which a call may continue after the shutdown of a manager that still waits for its first
/// connections.
const CONNECTING: Duration = Duration::from_secs(2);

impl Observer {
    /// Records the shutdown of a manager, and shortens the deadlines of its waiters. Returns `true` if the manager has
    /// no calls.
    pub(in crate::simulation) fn closes(&self, client: usize, is_starting: bool) -> bool {
        let now = self.network.now();
        self.network.trace.line(|_| format!("{} is shut down", client_name(client)));
        let mut records = self.records();
        records.closed.insert(client, now);
        let end = now.after(if is_starting { CONNECTING } else { UNDER_WAY }).after(SLACK);
        let mut is_quiet = records.holders.iter().all(|holder| holder.client != Some(client));
        for waiter in records.waiters.iter_mut().filter(|waiter| waiter.client == client) {
            waiter.deadline = Some(waiter.deadline.map_or(end, |deadline| deadline.min(end)));
            is_quiet = false;
        }
        is_quiet
    }

    /// Checks the result of a call: a call that began after the shutdown fails with `LockError::Closed`.
    pub(super) fn closed<T>(&self, waiter: &Waiter, outcome: Option<&Result<T, LockError>>) {
        let closed_at = self.records().closed.get(&waiter.client).copied();
        let is_late = closed_at.is_some_and(|at| at < waiter.since);
        if is_late && !matches!(outcome, None | Some(Err(LockError::Closed))) {
            self.broken(Promise::Closed, format!("{waiter} is served after the shutdown"));
        }
    }

    /// Checks that a manager without calls leaves no token at the nodes once its shutdown reports that all releases are
    /// answered.
    pub(in crate::simulation) fn drained(&self, client: usize) {
        for index in self.profile.names() {
            let key = key(index);
            let left = self.network.leftovers(&key).into_iter().filter(|(_, _, is_ghost)| !is_ghost);
            let mut left = left.filter(|(_, token, _)| self.network.client_of(*token) == Some(client));
            if let Some((server, token, _)) = left.find(|(server, token, _)| !self.may_stand(*server, &key, *token)) {
                let name = self.network.trace.name(token);
                self.broken(Promise::Clean, format!("{name} stands at node {} after the shutdown", server + 1));
            }
        }
    }

    /// Returns `true` if `token` may remain at a server after the shutdown of its manager.
    fn may_stand(&self, server: usize, key: &LockKey, token: OwnerToken) -> bool {
        let records = self.records();
        let is_kept_for = |longest| self.network.lease_left(server, key, token).is_some_and(|left| left <= longest);
        // A break that is still running releases its placeholder when it ends.
        self.network.was_placeholder(token)
            || records.detached.contains(&token)
            || records.kept_for.get(&token).is_some_and(|longest| is_kept_for(*longest))
    }
}
