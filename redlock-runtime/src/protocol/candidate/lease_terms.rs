//! Settings that do not change during the life of a token.

use crate::protocol::command::{ProvenClaim, Verb};
use crate::protocol::lease;
use crate::protocol::quorum::Quorum;
use crate::protocol::rules::{Rule, Rules};
use crate::protocol::timing::ENTERABLE_PER_CLAIM;
use crate::time::clock::Instant;
use std::time::Duration;

/// Settings that do not change during the life of a token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseTerms {
    pub(crate) ttl: Duration,
    pub(crate) drift_factor: f64,
    /// Time that a node has to answer before it is regarded as silent.
    pub(crate) node_timeout: Duration,
    pub(crate) quorum: Quorum,
    pub(crate) rules: Rules,
}

impl LeaseTerms {
    /// Returns the time for which a node keeps the lock for a token that it is handed to, until that token has
    /// requested its own `ttl`.
    pub(crate) fn claim(&self) -> Duration {
        lease::claim(self.ttl)
    }

    /// Returns the lease end that a positive answer to a command at `now` proves.
    pub(crate) fn provable(&self, now: Instant) -> Instant {
        now.after(lease::provable(self.ttl, self.drift_factor))
    }

    /// Returns the lease end that a positive answer to `verb`, sent at `now`, proves.
    pub(super) fn proven_by(&self, verb: Verb, now: Instant) -> Instant {
        now.after(lease::provable(verb.ttl().unwrap_or(self.ttl), self.drift_factor))
    }

    /// Returns the earliest useful end of a lease.
    pub(super) fn useful_from(&self, now: Instant) -> Instant {
        now.after(lease::least_useful(self.ttl))
    }

    /// Returns the time until which a node keeps a claim, whatever we ask from now on. An extension may be executed at
    /// any time after the start of the claim, and sets the key to expire after our `ttl`. A claim is never longer than
    /// `CLAIM`.
    pub(super) fn claimed_until(&self, claim: ProvenClaim) -> Instant {
        claim.from.after(lease::provable(claim.length.min(self.claim()), self.drift_factor))
    }

    /// Returns the earliest end of claims on which a body may begin. The extensions of shorter claims may not be
    /// answered in time.
    pub(super) fn enterable_from(&self, now: Instant) -> Instant {
        now.after(self.claim() / ENTERABLE_PER_CLAIM)
    }

    pub(super) fn applies(&self, rule: Rule) -> bool {
        self.rules.apply(rule)
    }
}
