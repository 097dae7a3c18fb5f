//! What stays the same during the life of a token.

use crate::protocol::command::{ProvenClaim, Verb};
use crate::protocol::lease;
use crate::protocol::quorum::Quorum;
use crate::protocol::rules::{Rule, Rules};
use crate::protocol::timing::ENTERABLE_PER_CLAIM;
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

    /// Until when a node keeps what it has handed to us, whatever it is asked by us from now on: an extension may be executed at
    /// any time after the claim began, and makes the key last for our ttl from then on. No claim is longer than any is.
    pub(super) fn claimed_until(&self, claim: ProvenClaim) -> Instant {
        claim.from.after(lease::provable(claim.length.min(self.claim()), self.drift_factor))
    }

    /// Claims that end before this are not worth entering a body for: their extensions may not be answered by then.
    pub(super) fn enterable_from(&self, now: Instant) -> Instant {
        now.after(self.claim() / ENTERABLE_PER_CLAIM)
    }

    pub(super) fn applies(&self, rule: Rule) -> bool {
        self.rules.apply(rule)
    }
}
