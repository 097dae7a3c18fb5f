//! What stays the same during the life of a token.

use crate::protocol::command::Verb;
use crate::protocol::lease;
use crate::protocol::quorum::Quorum;
use crate::protocol::rules::{Rule, Rules};
use crate::time::clock::Instant;
use std::time::Duration;

/// What stays the same during the life of a token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseTerms {
    pub(crate) ttl: Duration,
    pub(crate) drift_factor: f64,
    /// How long a node may take to answer before it counts as silent.
    pub(crate) node_timeout: Duration,
    pub(crate) quorum: Quorum,
    pub(crate) rules: Rules,
}

impl LeaseTerms {
    /// How long a node keeps the lock for whom it hands it to, until that one has asked for a ttl of its own.
    pub(crate) fn claim(&self) -> Duration {
        lease::claim(self.ttl)
    }

    /// The lease end that a positive answer proves to a command that is sent at `now`.
    pub(crate) fn provable(&self, now: Instant) -> Instant {
        now.after(lease::provable(self.ttl, self.drift_factor))
    }

    /// The lease end that a positive answer to `verb` proves, when that is sent at `now`.
    pub(super) fn proven_by(&self, verb: Verb, now: Instant) -> Instant {
        now.after(lease::provable(verb.ttl().unwrap_or(self.ttl), self.drift_factor))
    }

    /// A lease that ends before this is not worth having.
    pub(super) fn useful_from(&self, now: Instant) -> Instant {
        now.after(lease::least_useful(self.ttl))
    }

    pub(super) fn applies(&self, rule: Rule) -> bool {
        self.rules.apply(rule)
    }
}
