//! A manager that is shut down takes no more locks, and leaves nothing behind.

use super::{Observer, SLACK};
use crate::LockError;
use crate::simulation::actor::key;
use crate::simulation::records::{Promise, Waiter};
use crate::simulation::telling::client_name;
use std::time::Duration;

/// What a call may have begun that it does not break off: asking the nodes once for the lock, and twice for a number.
const UNDER_WAY: Duration = Duration::from_millis(150);
/// The first connections are waited for.
const CONNECTING: Duration = Duration::from_secs(2);

impl Observer {
    /// A manager is shut down. Whether nothing goes on there.
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

    /// The answer to a call that may have begun after the shutdown.
    pub(super) fn closed<T>(&self, waiter: &Waiter, outcome: Option<&Result<T, LockError>>) {
        let closed_at = self.records().closed.get(&waiter.client).copied();
        let is_late = closed_at.is_some_and(|at| at < waiter.since);
        if is_late && !matches!(outcome, None | Some(Err(LockError::Closed))) {
            self.broken(Promise::Closed, format!("{waiter} is served after the shutdown"));
        }
    }

    /// All releases of a manager, where nothing went on at its shutdown, are said to be answered.
    pub(in crate::simulation) fn drained(&self, client: usize) {
        for index in 0..2 {
            let records = self.records();
            let windows = records.windows.iter().map(|window| window.token);
            let meant_to_stand: Vec<_> = windows.chain(records.detached.iter().copied()).collect();
            drop(records);
            let of_client = |token| self.network.client_of(token) == Some(client) && !meant_to_stand.contains(&token);
            let mut left = self.network.leftovers(&key(index)).into_iter();
            if let Some((server, token, _)) = left.find(|(_, token, is_ghost)| !is_ghost && of_client(*token)) {
                let name = self.network.trace.name(token);
                self.broken(Promise::Clean, format!("{name} stands at node {} after the shutdown", server + 1));
            }
        }
    }
}
