//! What the observer keeps of a run: who has a lock, who waits for one, and what was broken.

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

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) promise: Promise,
    pub(super) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promise {
    /// No two valid holders.
    Exclusion,
    /// No more valid holders of permits than there are.
    Pool,
    /// Who is given a lock holds it; and where locks linger, who does not wait is given one that nobody uses.
    Given,
    /// Who counts on a lock has it at so many servers that nobody else can.
    Owned,
    /// Nobody loses a lock because a minority of the servers is in trouble.
    Kept,
    /// Who has lost a lock does not have it again.
    Continuous,
    /// Who has lost a lock soon knows.
    LossKnown,
    /// A body does not outlive its lease.
    BodyStops,
    /// A free lock is taken by who waits for it.
    Progress,
    /// Every call ends in time.
    Deadline,
    /// Whoever came first is served first.
    Order,
    /// Of two owners of a lock, the later one has the larger number.
    Fencing,
    /// A key stays taken for as long as its holder has said.
    MinHold,
    /// A manager that was shut down takes no more locks.
    Closed,
    /// A lock that nobody breaks is not lost by what is said of it, nor by the break of another one.
    Unbroken,
    /// Nothing is left behind.
    Clean,
    /// Nobody waits much longer than the others.
    Fairness,
    /// Nobody is told of what is not freed for it.
    Quiet,
    /// No panics.
    NoPanic,
}

#[derive(Default)]
pub(super) struct Records {
    pub(super) next_id: u64,
    pub(super) holders: Vec<Holder>,
    pub(super) waiters: Vec<Waiter>,
    /// For each key, when somebody last had it or wanted it.
    pub(super) used_at: [Option<Instant>; NAMES.len()],
    /// For each key, since when it has been free without need while somebody waits.
    pub(super) idle_since: [Option<Instant>; NAMES.len()],
    pub(super) violation: Option<Violation>,
    pub(super) longest_idle: Duration,
    /// Those by which anybody has entered.
    pub(super) entered_tokens: HashSet<OwnerToken>,
    /// Tokens that have had entries for permits before any call entered by them: from the first to the last moment at which their
    /// processes were alive.
    pub(super) pending_permits: HashMap<OwnerToken, Range<Instant>>,
    /// One may serve several calls of its process.
    pub(super) served_tokens: Vec<OwnerToken>,
    /// They stand at the nodes until somebody takes their place, or their ttl is over.
    pub(super) detached: Vec<OwnerToken>,
    /// The numbers that were issued, for each key.
    pub(super) numbers: [BTreeSet<FencingToken>; NAMES.len()],
    pub(super) windows: Vec<Window>,
    /// For how long the key of a token was to stay taken when its body ended. A server counts that from when it is told.
    pub(super) kept_for: HashMap<OwnerToken, Duration>,
    /// Those whose locks somebody wanted to break.
    pub(super) to_break: HashSet<OwnerToken>,
    /// The managers that were shut down, and when.
    pub(super) closed: HashMap<usize, Instant>,
}

/// A key that stays taken although nobody works under its lock.
pub(super) struct Window {
    pub(super) key: usize,
    pub(super) token: OwnerToken,
    pub(super) is_shared: bool,
    pub(super) until: Instant,
    /// Whether nothing can go wrong with it.
    pub(super) is_promised: bool,
}

pub(super) struct Holder {
    pub(super) id: u64,
    pub(super) client: Option<usize>,
    pub(super) key: usize,
    pub(super) token: OwnerToken,
    pub(super) proof: Proof,
    /// Somebody stops the body when the lease runs out, with this tolerance.
    pub(super) stops_within: Option<Duration>,
    pub(super) lapsed_at: Option<Instant>,
    /// Somebody else has had the lock since then.
    pub(super) is_succeeded: bool,
    /// It was robbed when somebody else entered, and knows it by then. What it wins back meanwhile, it may win from that one, at a
    /// server that has forgotten both.
    pub(super) unaware_until: Option<Instant>,
    /// Since when it has the lock at a majority that is in no trouble, which is only asked where it matters.
    pub(super) kept_since: Option<Instant>,
    pub(super) since: Instant,
    pub(super) ttl: Duration,
    pub(super) renews: bool,
    /// The body ends by then, however often the lease is renewed.
    pub(super) ends_by: Option<Instant>,
    /// The key stays taken until then, should the body end before.
    pub(super) keeps_until: Option<Instant>,
    /// How many may have a permit at a time, if it has one.
    pub(super) permits: Option<u32>,
    /// Whether it is valid, as long as the observer looks: nothing happens meanwhile, and it is asked by every promise.
    pub(super) found: Option<bool>,
}

pub(super) enum Proof {
    Guard(Weak<LockGuard>),
    /// Another program, that has it until then.
    Foreign {
        until: Instant,
    },
}

#[derive(Clone)]
pub(super) struct Waiter {
    pub(super) id: u64,
    pub(super) client: usize,
    pub(super) key: usize,
    /// The other key or place, if it waits for two.
    pub(super) also: Option<usize>,
    pub(super) is_shared: bool,
    /// How many may have a permit at a time, if it wants one.
    pub(super) permits: Option<u32>,
    pub(super) since: Instant,
    pub(super) wait: Wait,
    pub(super) deadline: Option<Instant>,
    /// Whether somebody else has had the lock, or wanted it, since a short time before.
    pub(super) has_rivals: bool,
    /// The largest number that had been issued when it began.
    pub(super) number_before: Option<FencingToken>,
}

impl Records {
    pub(super) fn number(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }
}

impl Records {
    /// Whether anybody has or wants `key`. Who wants it at present has a rival from now on.
    pub(super) fn rivals(&mut self, key: usize) -> bool {
        let mut waiters = self.waiters.iter_mut().filter(|waiter| waiter.key == key).peekable();
        let are_any = waiters.peek().is_some() || self.holders.iter().any(|holder| holder.key == key);
        waiters.for_each(|waiter| waiter.has_rivals = true);
        are_any
    }

    /// The largest number of those who have had `key`, or something above it or below.
    pub(super) fn latest_number(&self, key: usize) -> Option<FencingToken> {
        let concerned = self.numbers.iter().enumerate().filter(|(other, _)| tree::overlap(key, *other));
        concerned.filter_map(|(_, numbers)| numbers.last().copied()).max()
    }

    /// Whoever is recorded under `id` has no use for its key any more.
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
            is_succeeded: false,
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

    /// Whether it shares the lock, as far as its guard says now.
    pub(super) fn is_shared(&self) -> bool {
        match &self.proof {
            Proof::Guard(guard) => guard.upgrade().is_some_and(|guard| guard.mode().is_shared()),
            Proof::Foreign { .. } => false,
        }
    }

    /// Whether both cannot have the lock at the same time.
    pub(super) fn excludes(&self, other: &Self) -> bool {
        let is_the_same = self.id > 0 && self.id == other.id;
        let (one, other) = if matches!(other.proof, Proof::Foreign { .. }) { (other, self) } else { (self, other) };
        !is_the_same && one.keeps_from(other.key, other.is_shared())
    }

    /// Whether nobody else can have `key`, shared or not, at the same time.
    pub(super) fn keeps_from(&self, key: usize, is_shared: bool) -> bool {
        let concerns = match self.proof {
            Proof::Guard(_) => tree::overlap(self.key, key),
            // It has a name, and knows nothing of what is below that.
            Proof::Foreign { .. } => tree::names(key).any(|name| name == self.key),
        };
        concerns && !(is_shared && self.is_shared())
    }

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
