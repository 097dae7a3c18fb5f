//! Watches every run, and says which promise was broken.

use super::actor::{key, words};
use super::network::Network;
use super::profile::Profile;
use super::records::{Holder, Promise, Proof, Records, Violation, Waiter};
use super::telling::client_name;
use super::workload::Call;
use crate::clock::Instant;
use crate::token::OwnerToken;
use crate::{LockError, LockGuard, Wait};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(super) struct Observer {
    pub(super) network: Arc<Network>,
    /// The longest time that a lock is free while somebody waits.
    bound: Duration,
    /// The longest time that anybody waits.
    fair_within: Option<Duration>,
    /// Whether the order of service is watched: only where nothing goes wrong.
    watches_order: bool,
    /// Who has waited for this long is known everywhere.
    patient: Duration,
    records: Mutex<Records>,
}

/// A record that is there as long as this is.
#[must_use]
pub(super) struct Recorded<'o> {
    observer: &'o Observer,
    id: u64,
}

impl Drop for Recorded<'_> {
    fn drop(&mut self) {
        let mut records = self.observer.records();
        records.holders.retain(|holder| holder.id != self.id);
        records.waiters.retain(|waiter| waiter.id != self.id);
    }
}

impl Observer {
    pub(super) fn new(network: &Arc<Network>, profile: &Profile) -> Self {
        let millis = Duration::from_millis;
        Self {
            network: Arc::clone(network),
            bound: millis(profile.bound),
            fair_within: profile.fair_within.map(millis),
            watches_order: profile.is_calm(),
            patient: profile.delays.round_trip() * 3,
            records: Mutex::default(),
        }
    }

    pub(super) fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn broken(&self, promise: Promise, text: String) {
        self.network.trace.line(|_| format!("## {promise:?}: {text}"));
        self.records().violation.get_or_insert(Violation { promise, text });
    }

    /// A call begins to wait.
    pub(super) fn waits(&self, client: usize, call: &Call) -> Recorded<'_> {
        let now = self.network.now();
        self.network.trace.line(|_| words(client, call, now));
        let deadline = match call.wait {
            // The first call waits for the connections.
            Wait::None => Some(now.after(Duration::from_secs(2) + slack(call.ttl))),
            Wait::For(wait) => Some(now.after(wait + slack(wait))),
            Wait::Forever => None,
        };
        let mut records = self.records();
        let id = records.number();
        records.waiters.push(Waiter { id, client, key: call.key, since: now, wait: call.wait, deadline });
        Recorded { observer: self, id }
    }

    pub(super) fn answered(&self, waits: &Recorded<'_>, outcome: Option<&Result<LockGuard, LockError>>) {
        let waited = {
            let records = self.records();
            records.waiters.iter().find(|waiter| waiter.id == waits.id).map(|waiter| (waiter.client, waiter.since))
        };
        if let Some((client, since)) = waited {
            let waited = self.network.now().since(since);
            self.network.trace.line(|_| format!("{} {} after {waited:?}", client_name(client), outcome_words(outcome)));
        }
    }

    /// A call has the lock, and enters its body.
    pub(super) fn entered(&self, client: usize, call: &Call, guard: &Arc<LockGuard>) -> Recorded<'_> {
        let token = *guard.token();
        let name = |trace: &super::trace::Trace| trace.name(token);
        self.network.trace.line(|trace| format!("{} holds {} as {}", client_name(client), key(call.key), name(trace)));
        let stops_within = call.is_held.then(|| slack(call.ttl));
        let proof = Proof::Guard(Arc::downgrade(guard));
        self.order(call.key, token);
        self.entered_as(Holder {
            id: 0,
            client: Some(client),
            key: call.key,
            token,
            proof,
            stops_within,
            lapsed_at: None,
        })
    }

    /// The nodes keep the lock under `token`, for nobody yet.
    pub(super) fn detached(&self, token: OwnerToken) {
        self.network.trace.line(|trace| format!("{} is detached", trace.name(token)));
        self.records().detached.push(token);
    }

    pub(super) fn entered_by_foreigner(&self, key: usize, token: OwnerToken, until: Instant) -> Recorded<'_> {
        let proof = Proof::Foreign { until };
        self.entered_as(Holder { id: 0, client: None, key, token, proof, stops_within: None, lapsed_at: None })
    }

    fn entered_as(&self, holder: Holder) -> Recorded<'_> {
        let id = {
            let mut records = self.records();
            let id = records.number();
            records.idle_since[holder.key] = None;
            records.holders.push(Holder { id, ..holder });
            id
        };
        self.exclusion();
        Recorded { observer: self, id }
    }

    /// Whoever has stood in the queues of a majority for a while comes before `token` if its own is smaller.
    fn order(&self, index: usize, token: OwnerToken) {
        if !self.watches_order || self.records().served_tokens.contains(&token) {
            return;
        }
        self.records().served_tokens.push(token);
        if let Some(earlier) = self.network.queued_before(&key(index), token, self.patient) {
            let name = |token| self.network.trace.name(token);
            self.broken(Promise::Order, format!("{} is served before {}", name(token), name(earlier)));
        }
    }

    /// When to look again if nothing happens: seldom, when there is nobody to look at.
    pub(super) fn next_look(&self) -> Duration {
        let records = self.records();
        let is_quiet = records.waiters.is_empty() && records.holders.is_empty();
        Duration::from_millis(if is_quiet { 1000 } else { 50 })
    }

    /// Looks at everything.
    pub(super) fn look(&self) {
        self.exclusion();
        self.bodies_stop();
        self.deadlines();
        (0..2).for_each(|key| self.progress(key));
    }

    fn exclusion(&self) {
        let (records, now) = (self.records(), self.network.now());
        if records.holders.len() < 2 {
            return;
        }
        let valid: Vec<_> = records.holders.iter().filter(|holder| holder.is_valid(now)).collect();
        let twice = valid.iter().enumerate().find_map(|(at, one)| {
            valid[at + 1..].iter().find(|other| other.key == one.key).map(|other| format!("{one} and {other}"))
        });
        drop(records);
        if let Some(twice) = twice {
            self.broken(Promise::Exclusion, twice);
        }
    }

    fn bodies_stop(&self) {
        let now = self.network.now();
        let mut late = None;
        for holder in &mut self.records().holders {
            let Some((tolerance, client)) = holder.stops_within.zip(holder.client) else { continue };
            if holder.is_valid(now) {
                holder.lapsed_at = None;
                continue;
            }
            let lapsed_at = *holder.lapsed_at.get_or_insert(now);
            let since = now.since(lapsed_at.max(self.network.paused_until(client)));
            if since > tolerance {
                late = Some(format!("{holder} is in its body {since:?} after its lease has run out"));
            }
        }
        if let Some(text) = late {
            self.broken(Promise::BodyStops, text);
        }
    }

    fn deadlines(&self) {
        let now = self.network.now();
        let is_late = |waiter: &&Waiter| {
            let limit = waiter.deadline.map(|at| at.max(self.network.paused_until(waiter.client).after(SLACK)));
            limit.is_some_and(|limit| limit < now)
        };
        let late = self.records().waiters.iter().find(is_late).map(|waiter| format!("{waiter} is late"));
        if let Some(text) = late {
            self.broken(Promise::Deadline, text);
        }
        let starves = |waiter: &&Waiter| self.fair_within.is_some_and(|limit| limit < now.since(waiter.since));
        let starving =
            self.records().waiters.iter().find(starves).map(|waiter| format!("{waiter} is always overtaken"));
        if let Some(text) = starving {
            self.broken(Promise::Fairness, text);
        }
    }

    fn progress(&self, key_index: usize) {
        let now = self.network.now();
        let mut records = self.records();
        if records.waiters.iter().all(|waiter| waiter.key != key_index) {
            records.idle_since[key_index] = None;
            return;
        }
        let is_idle = self.is_idle(&records, key_index, now);
        let since = &mut records.idle_since[key_index];
        *since = if is_idle { since.or(Some(now)) } else { None };
        let idle = since.map_or(Duration::ZERO, |since| now.since(since));
        records.longest_idle = records.longest_idle.max(idle);
        drop(records);
        if idle > self.bound {
            self.broken(Promise::Progress, format!("{} is free for {idle:?} while somebody waits", key(key_index)));
        }
    }

    /// Whether `key` is free and one of those who wait for it could have it.
    fn is_idle(&self, records: &Records, index: usize, now: Instant) -> bool {
        let waits =
            |waiter: &&Waiter| waiter.key == index && waiter.wait != Wait::None && self.network.is_well(waiter.client);
        let clients: Vec<_> = records.waiters.iter().filter(waits).map(|waiter| waiter.client).collect();
        let holders = records.holders.iter().filter(|holder| holder.key == index);
        if clients.is_empty() || holders.clone().any(|holder| holder.is_valid(now)) {
            return false;
        }
        let kept: Vec<_> = holders.map(|holder| holder.token).chain(records.detached.iter().copied()).collect();
        self.network.can_serve(&key(index), &clients, &kept)
    }

    /// Looks whether anything is left at the servers, when all is over. Returns the keys that are haunted: there a
    /// command was executed after the release of its token, because the connection that brought it had ended before.
    /// Nobody hears of that until the next one waits there.
    pub(super) fn leftovers(&self) -> Vec<usize> {
        let mut haunted = Vec::new();
        for index in 0..2 {
            for (server, token, is_ghost) in self.network.leftovers(&key(index)) {
                if self.records().detached.contains(&token) {
                    continue;
                }
                if is_ghost {
                    haunted.push(index);
                    continue;
                }
                let name = self.network.trace.name(token);
                self.broken(Promise::Clean, format!("{name} still stands under {} at node {}", key(index), server + 1));
            }
        }
        haunted.dedup();
        haunted
    }

    /// Looks whether anything is left by whomever, when even the queues have expired.
    pub(super) fn remains(&self) {
        for index in 0..2 {
            if let Some((server, _)) = self.network.remains(&key(index)).first() {
                self.broken(
                    Promise::Clean,
                    format!("something still stands under {} at node {}", key(index), server + 1),
                );
            }
        }
    }

    /// Those who still wait.
    pub(super) fn waiting(&self) -> String {
        let waiting: Vec<_> = self.records().waiters.iter().map(ToString::to_string).collect();
        waiting.join("; ")
    }
}

/// Timers run in true time, and deadlines by clocks that are wrong by half a hundredth.
const SLACK: Duration = Duration::from_millis(25);

fn slack(time: Duration) -> Duration {
    time / 100 + SLACK
}

fn outcome_words(outcome: Option<&Result<LockGuard, LockError>>) -> String {
    match outcome {
        None => "has given up".into(),
        Some(Ok(_)) => "got it".into(),
        Some(Err(error)) => error.to_string(),
    }
}
