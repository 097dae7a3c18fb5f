//! Watches every run, and reports the promise that was broken.

mod breaking;
mod closing;
mod folders;
mod holding;
mod numbers;
mod pool;
mod remains;
mod service;

use super::actor::{key, words};
use super::network::Network;
use super::profile::Profile;
use super::records::{Holder, Promise, Proof, Records, Violation, Waiter};
use super::telling::client_name;
use super::trace::Trace;
use super::tree;
use super::workload::Call;
use crate::lock::OwnerToken;
use crate::protocol::candidate::turn;
use crate::protocol::timing::{LONGEST_CONFIRMATION, LONGEST_NODE_TIMEOUT, LONGEST_SILENCE};
use crate::time::clock::Instant;
use crate::{LockError, LockGuard, Wait};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Observer of a run. It sees all servers and guards at once, and knows the true time.
pub(super) struct Observer {
    pub(super) network: Arc<Network>,
    profile: Profile,
    /// Time after which a waiter is known at all nodes.
    patient: Duration,
    records: Mutex<Records>,
}

/// Record of a waiter or holder, which is removed on drop.
#[must_use]
pub(super) struct Recorded<'o> {
    observer: &'o Observer,
    id: u64,
}

impl Drop for Recorded<'_> {
    fn drop(&mut self) {
        let left = {
            let mut records = self.observer.records();
            let now = self.observer.network.now();
            records.used(self.id, now);
            records.waiters.retain(|waiter| waiter.id != self.id);
            let is_of_this = |holder: &mut Holder| holder.id == self.id;
            records.holders.extract_if(.., is_of_this).collect::<Vec<_>>()
        };
        for holder in left {
            self.observer.left(&holder);
        }
    }
}

impl Observer {
    pub(super) fn new(network: &Arc<Network>, profile: &Profile) -> Self {
        let patient = profile.delays.round_trip() * 3;
        Self { network: Arc::clone(network), profile: profile.clone(), patient, records: Mutex::default() }
    }

    pub(super) fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a broken promise. The first one ends the run.
    pub(super) fn broken(&self, promise: Promise, text: String) {
        self.network.trace.line(|_| format!("## {promise:?}: {text}"));
        self.records().violation.get_or_insert(Violation { promise, text });
    }

    /// Records that a call begins to wait.
    pub(super) fn waits(&self, client: usize, call: &Call) -> Recorded<'_> {
        let now = self.network.now();
        self.network.trace.line(|_| words(client, call, now));
        let deadline = match call.wait {
            // The first call waits for the connections, and every call waits for unreachable servers.
            Wait::None => Some(now.after(Duration::from_secs(2) + LONGEST_SILENCE + UNANSWERED + slack(call.ttl))),
            Wait::For(wait) => Some(now.after(wait + slack(wait))),
            Wait::Forever => None,
        };
        let mut records = self.records();
        let id = records.number();
        let lately = records.used_at[call.key].is_some_and(|at| now.since(at) <= self.patient);
        let has_rivals = lately || records.rivals(call.key);
        let (since, wait, is_shared, permits) = (now, call.wait, call.mode.is_shared(), call.permits);
        for key in call.keys() {
            let also = call.keys().find(|other| *other != key);
            // A call for two keys is treated as if it had rivals at both.
            let has_rivals = has_rivals || also.is_some();
            let number_before = records.latest_number(key);
            let waiter =
                Waiter { id, client, key, also, is_shared, permits, since, wait, deadline, has_rivals, number_before };
            records.waiters.push(waiter);
        }
        Recorded { observer: self, id }
    }

    /// Checks the result of a call.
    pub(super) fn answered<T>(&self, waits: &Recorded<'_>, outcome: Option<&Result<T, LockError>>) {
        let waiter = self.records().waiters.iter().find(|waiter| waiter.id == waits.id).cloned();
        if let Some(waiter) = waiter {
            let (client, time) = (client_name(waiter.client), self.network.now().since(waiter.since));
            self.network.trace.line(|_| format!("{client} {} after {time:?}", outcome_words(outcome)));
            self.closed(&waiter, outcome);
            self.tried(&waiter, outcome);
            self.in_time(&waiter, outcome);
            self.check_served(outcome);
        }
    }

    /// Checks that no call is refused for good if only the registers of a minority are poisoned.
    fn check_served<T>(&self, outcome: Option<&Result<T, LockError>>) {
        if let Some(Err(error @ LockError::Refused { .. })) = outcome
            && self.profile.faults.only_poison_minority()
        {
            self.broken(Promise::Progress, format!("a healthy majority refuses a call: {error}"));
        }
    }

    /// Records that a call has acquired the lock and enters its body.
    pub(super) fn entered(&self, client: usize, call: &Call, guard: &Arc<LockGuard>) -> Recorded<'_> {
        let (token, now) = (*guard.token(), self.network.now());
        let name = |trace: &Trace| trace.name(token);
        self.network.trace.line(|trace| format!("{} holds {} as {}", client_name(client), key(call.key), name(trace)));
        if self.records().entered_tokens.insert(token) {
            // A call that has waited confirms its votes before it enters, so an older theft does not excuse it. A call
            // that tries once combines answers for as long as it waits for them. A call for a permit counts on the
            // holder lists for as long as it owns the admission lock.
            let longest = match call.wait {
                _ if call.permits.is_some() => turn(call.ttl),
                Wait::None => LONGEST_SILENCE,
                _ => LONGEST_CONFIRMATION,
            };
            let unconfirmed = longest + LONGEST_NODE_TIMEOUT + self.profile.delays.round_trip();
            let since = now.before(unconfirmed);
            // A paused process receives old answers late.
            if self.network.paused_until(client) < since {
                self.network.was_whole(token, since);
            }
        }
        // After a pause, old answers can grant a lease that has already ended. The guard reports the loss at once.
        let stood_still = self.profile.faults.pauses > 0 && now <= self.network.paused_until(client).after(call.ttl);
        let is_broken = self.network.broken_at(token).is_some();
        if !guard.is_held() && !stood_still && !is_broken {
            self.broken(Promise::Given, format!("{} gets {} and does not hold it", client_name(client), key(call.key)));
        }
        self.order(call, token);
        let holder = |key| Holder {
            client: Some(client),
            stops_within: call.is_held.then(|| slack(call.ttl)),
            ends_by: call.longest_hold().map(|longest| now.after(longest + slack(longest))),
            keeps_until: call.hold.min_hold.map(|least| now.after(least).before(slack(least))),
            ttl: call.ttl,
            renews: call.hold.renew,
            permits: call.permits,
            ..Holder::new(key, token, Proof::Guard(Arc::downgrade(guard)), now)
        };
        let entered = self.entered_as(holder(call.key));
        if let Some(also) = call.also {
            self.entered_with(entered.id, holder(also));
        }
        entered
    }

    /// Records that the nodes keep the lock under `token`, without a holder.
    pub(super) fn detached(&self, token: OwnerToken) {
        self.network.trace.line(|trace| format!("{} is detached", trace.name(token)));
        self.records().detached.push(token);
    }

    /// Records that another program holds `key` until `until`.
    pub(super) fn entered_by_foreigner(&self, key: usize, token: OwnerToken, until: Instant) -> Recorded<'_> {
        self.entered_as(Holder::new(key, token, Proof::Foreign { until }, self.network.now()))
    }

    fn entered_as(&self, holder: Holder) -> Recorded<'_> {
        let id = self.records().number();
        self.entered_with(id, holder);
        Recorded { observer: self, id }
    }

    /// Records a holder, after the checks that concern its entry.
    fn entered_with(&self, id: u64, holder: Holder) {
        let holder = Holder { id, ..holder };
        self.windows(&holder);
        self.check_no_broken_body_runs(&holder);
        self.check_room(&holder);
        let now = self.network.now();
        {
            let mut records = self.records();
            // A holder of a place can be the rival of waiters elsewhere in the tree.
            let concerned =
                if tree::path(holder.key).is_some() { self.profile.names() } else { holder.key..holder.key + 1 };
            records.idle_since[concerned].fill(None);
            let is_robbed = |token| self.network.robbed_at(&key(holder.key), token).is_some();
            // If the lock was taken away while it was idle, its next holder is not a successor.
            let is_successor = !is_robbed(holder.token);
            for other in records.holders.iter_mut().filter(|other| other.excludes(&holder)) {
                // A robbed holder has not noticed yet. Its next renewal shows the loss, if it renews and no node is
                // frozen.
                let (is_told, is_unaware) = (other.renews && self.profile.is_prompt, is_robbed(other.token));
                if is_successor && (!other.is_valid(now) || is_told && is_unaware) {
                    other.succeeded_at.get_or_insert(now);
                }
                if is_successor && is_unaware {
                    other.unaware_until = Some(now.after(other.ttl + slack(other.ttl)));
                }
            }
            records.holders.push(holder);
        }
        self.exclusion();
    }

    /// Returns the time until the next look if nothing happens. It is longer without waiters and holders.
    pub(super) fn next_look(&self) -> Duration {
        let records = self.records();
        let is_quiet = records.waiters.is_empty() && records.holders.is_empty();
        Duration::from_millis(if is_quiet { 1000 } else { 50 })
    }

    /// Checks all promises that depend on the present state.
    pub(super) fn look(&self) {
        let now = self.network.now();
        self.records().holders.iter_mut().for_each(|holder| holder.found = Some(holder.is_valid(now)));
        self.exclusion();
        self.pool();
        self.owned();
        self.bodies_stop();
        self.deadlines();
        self.quiet();
        self.pending_permits();
        self.profile.names().for_each(|key| self.progress(key));
        self.records().holders.iter_mut().for_each(|holder| holder.found = None);
    }
}

/// Tolerance: timers run in true time, but deadlines follow clocks that are wrong by up to 0.5 %.
const SLACK: Duration = Duration::from_millis(25);

/// Duration of an attempt whose answers do not arrive, with the pause before it.
const UNANSWERED: Duration = Duration::from_millis(150);

/// Returns the tolerance for a duration.
fn slack(time: Duration) -> Duration {
    time / 100 + SLACK
}

fn outcome_words<T>(outcome: Option<&Result<T, LockError>>) -> String {
    match outcome {
        None => "has given up".into(),
        Some(Ok(_)) => "got it".into(),
        Some(Err(error)) => error.to_string(),
    }
}
