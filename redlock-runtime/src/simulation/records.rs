//! Records of the observer: holders, waiters, and the first broken promise.

use super::actor::key;
use super::telling::client_name;
use super::tree::{self, NAMES};
use crate::lock::OwnerToken;
use crate::time::clock::Instant;
use crate::{FencingToken, LockGuard, Wait};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::ops::Range;
use std::sync::Weak;
use std::time::Duration;

/// Promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) promise: Promise,
    pub(super) text: String,
}

/// Promise that the observer checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promise {
    /// No two valid holders exclude each other.
    Exclusion,
    /// A lock has at most as many valid permit holders as permits.
    Pool,
    /// A call that is granted a lock holds it. Where locks linger, a call that does not wait gets a lock without
    /// rivals.
    Given,
    /// A valid holder owns enough servers to keep all other calls out.
    Owned,
    /// Trouble at a minority of the servers costs no lock.
    Kept,
    /// A holder that has lost its lock does not hold it again.
    Continuous,
    /// A holder that has lost its lock notices it soon.
    LossKnown,
    /// A body does not outlive its lease.
    BodyStops,
    /// A waiter takes a free lock.
    Progress,
    /// Every call ends in time.
    Deadline,
    /// Calls are served in the order of their arrival.
    Order,
    /// A later owner of a lock has a larger number.
    Fencing,
    /// A key stays taken for the `min_hold` of its holder.
    MinHold,
    /// A manager acquires no locks after its shutdown.
    Closed,
    /// An unbroken lock is lost neither by forged messages nor by the break of another lock.
    Unbroken,
    /// Nothing is left behind.
    Clean,
    /// No call waits much longer than the others.
    Fairness,
    /// No waiter is notified of a name from which nothing excluded it.
    Quiet,
    /// No task panics.
    NoPanic,
}

/// Records of one run.
#[derive(Default)]
pub(super) struct Records {
    pub(super) next_id: u64,
    pub(super) holders: Vec<Holder>,
    pub(super) waiters: Vec<Waiter>,
    /// Last time at which a call held or wanted each key.
    pub(super) used_at: [Option<Instant>; NAMES.len()],
    /// Time since which each key is free without need although a call waits for it.
    pub(super) idle_since: [Option<Instant>; NAMES.len()],
    pub(super) violation: Option<Violation>,
    pub(super) longest_idle: Duration,
    /// Tokens with which a call has entered.
    pub(super) entered_tokens: HashSet<OwnerToken>,
    /// Tokens that had entries for permits before any call entered with them. The range is from the first to the last
    /// moment at which their processes were alive.
    pub(super) pending_permits: HashMap<OwnerToken, Range<Instant>>,
    /// Tokens that were checked for their order. A token may serve several calls of its process.
    pub(super) served_tokens: Vec<OwnerToken>,
    /// Detached tokens. They remain at the nodes until they are replaced or until their ttl ends.
    pub(super) detached: Vec<OwnerToken>,
    /// Issued numbers of each key.
    pub(super) numbers: [BTreeSet<FencingToken>; NAMES.len()],
    pub(super) windows: Vec<Window>,
    /// Rest of the `min_hold` of each token at the end of its body. A server counts from the arrival of the command.
    pub(super) kept_for: HashMap<OwnerToken, Duration>,
    /// Tokens whose locks an operator has tried to break.
    pub(super) to_break: HashSet<OwnerToken>,
    /// Managers that were shut down, with the times.
    pub(super) closed: HashMap<usize, Instant>,
}

/// Time for which a key stays taken after the end of a body.
pub(super) struct Window {
    pub(super) key: usize,
    pub(super) token: OwnerToken,
    pub(super) is_shared: bool,
    pub(super) until: Instant,
    /// `true` if nothing can shorten the window.
    pub(super) is_promised: bool,
}

/// Call or foreign program that holds a key.
pub(super) struct Holder {
    pub(super) id: u64,
    pub(super) client: Option<usize>,
    pub(super) key: usize,
    pub(super) token: OwnerToken,
    pub(super) proof: Proof,
    /// Tolerance within which the body stops after the end of the lease. `None` if nothing stops the body.
    pub(super) stops_within: Option<Duration>,
    pub(super) lapsed_at: Option<Instant>,
    /// Time at which another call got the lock after that.
    pub(super) succeeded_at: Option<Instant>,
    /// Time until which this holder may not notice that it was robbed, if another call entered after the theft. At a
    /// server that has lost both, it may win back a vote of that call.
    pub(super) unaware_until: Option<Instant>,
    /// Time since which the lock is held at a majority of untroubled servers. It is measured only in some profiles.
    pub(super) kept_since: Option<Instant>,
    pub(super) since: Instant,
    pub(super) ttl: Duration,
    pub(super) renews: bool,
    /// Latest end of the body, even if the lease is renewed.
    pub(super) ends_by: Option<Instant>,
    /// Time until which the key stays taken if the body ends earlier.
    pub(super) keeps_until: Option<Instant>,
    /// Largest number of permit holders, if this is one of them.
    pub(super) permits: Option<u32>,
    /// Result of `is_valid` during a look of the observer. Nothing changes during a look, and every promise asks for
    /// it.
    pub(super) found: Option<bool>,
}

/// Evidence that a holder is valid.
pub(super) enum Proof {
    Guard(Weak<LockGuard>),
    /// Another program, which holds the key until then.
    Foreign {
        until: Instant,
    },
}

/// Call that waits for a key. A call for two keys has two records.
#[derive(Clone)]
pub(super) struct Waiter {
    pub(super) id: u64,
    pub(super) client: usize,
    pub(super) key: usize,
    /// Other key or place, if the call waits for two.
    pub(super) also: Option<usize>,
    pub(super) is_shared: bool,
    /// Largest number of permit holders, if the call wants a permit.
    pub(super) permits: Option<u32>,
    pub(super) since: Instant,
    pub(super) wait: Wait,
    pub(super) deadline: Option<Instant>,
    /// `true` if another call has held or wanted the lock since shortly before this call.
    pub(super) has_rivals: bool,
    /// Largest number that was issued before this call.
    pub(super) number_before: Option<FencingToken>,
}

impl Records {
    /// Returns a new id.
    pub(super) fn number(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }
}

impl Records {
    /// Returns `true` if `key` has holders or waiters. The present waiters get a rival by this call.
    pub(super) fn rivals(&mut self, key: usize) -> bool {
        let mut waiters = self.waiters.iter_mut().filter(|waiter| waiter.key == key).peekable();
        let are_any = waiters.peek().is_some() || self.holders.iter().any(|holder| holder.key == key);
        waiters.for_each(|waiter| waiter.has_rivals = true);
        are_any
    }

    /// Returns the largest number of `key`, and of the places above and below it.
    pub(super) fn latest_number(&self, key: usize) -> Option<FencingToken> {
        let concerned = self.numbers.iter().enumerate().filter(|(other, _)| tree::overlap(key, *other));
        concerned.filter_map(|(_, numbers)| numbers.last().copied()).max()
    }

    /// Records that the call under `id` no longer uses its key.
    pub(super) fn used(&mut self, id: u64, now: Instant) {
        let waiters = self.waiters.iter().filter(|waiter| waiter.id == id).map(|waiter| waiter.key);
        let holders = self.holders.iter().filter(|holder| holder.id == id).map(|holder| holder.key);
        for key in waiters.chain(holders).collect::<Vec<_>>() {
            self.used_at[key] = Some(now);
        }
    }
}

impl Holder {
    pub(super) const fn new(key: usize, token: OwnerToken, proof: Proof, since: Instant) -> Self {
        Self {
            id: 0,
            client: None,
            key,
            token,
            proof,
            stops_within: None,
            lapsed_at: None,
            succeeded_at: None,
            unaware_until: None,
            kept_since: None,
            since,
            ttl: Duration::ZERO,
            renews: false,
            ends_by: None,
            keeps_until: None,
            permits: None,
            found: None,
        }
    }

    /// Returns `true` if the guard is shared at present.
    pub(super) fn is_shared(&self) -> bool {
        match &self.proof {
            Proof::Guard(guard) => guard.upgrade().is_some_and(|guard| guard.mode().is_shared()),
            Proof::Foreign { .. } => false,
        }
    }

    /// Returns `true` if the two holders exclude each other.
    pub(super) fn excludes(&self, other: &Self) -> bool {
        let is_the_same = self.id > 0 && self.id == other.id;
        let (one, other) = if matches!(other.proof, Proof::Foreign { .. }) { (other, self) } else { (self, other) };
        !is_the_same && one.excludes_call_for(other.key, other.is_shared())
    }

    /// Returns `true` if this holder excludes a call for `key`, shared or not.
    pub(super) fn excludes_call_for(&self, key: usize, is_shared: bool) -> bool {
        let concerns = match self.proof {
            Proof::Guard(_) => tree::overlap(self.key, key),
            // A foreign program locks a name, but not the places below it.
            Proof::Foreign { .. } => tree::names(key).any(|name| name == self.key),
        };
        concerns && !(is_shared && self.is_shared())
    }

    /// Returns `true` if the holder may count on the lock now.
    pub(super) fn is_valid(&self, now: Instant) -> bool {
        if let Some(found) = self.found {
            return found;
        }
        match &self.proof {
            Proof::Guard(guard) => guard.upgrade().is_some_and(|guard| guard.is_held()),
            Proof::Foreign { until } => now < *until,
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = self.client.map_or('*', client_name);
        write!(f, "{who} with {}", key(self.key))
    }
}

impl fmt::Display for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { client, key: index, since, wait, .. } = self;
        write!(f, "{} that waits {wait:?} for {} since {} ms", client_name(*client), key(*index), since.millis())
    }
}
