//! Policy of a manager: its settings for all requests.

use crate::error::LockError;
use crate::observe::Redaction;
use crate::protocol::lease;
use crate::protocol::local_budget::LocalBudget;
use crate::protocol::quorum::Quorum;
use crate::protocol::timing::{
    CLAIM, LONGEST_NODE_TIMEOUT, LONGEST_NODE_TIMEOUT_PER_TTL, MAX_TTL, NODE_TIMEOUTS_PER_CLAIM, NODE_TIMEOUTS_PER_TTL,
    ROUND_TRIPS_PER_NODE_TIMEOUT, SHORTEST_NODE_TIMEOUT,
};
use crate::request::Wait;
use crate::request::acquire_request::AcquireRequest;
use crate::request::{AfterRestart, OrderCheck};
use std::time::Duration;

/// Longest `ttl` of managers without such a setting: 60 s. All managers assume this value, whatever else they set. Too small: more
/// requests are rejected. Too large: a node that has lost its locks abstains for longer.
const DEFAULT_MAX_TTL: Duration = Duration::from_secs(60);

/// Number of locks that a manager keeps idle: 1024. Too small: locks are released just before their next use. Too large: more
/// memory is used, and other processes request more of the idle locks.
const MOST_IDLE: usize = 1024;

/// Policy of a manager: the values of options that a request leaves open.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    pub(crate) default_ttl: Duration,
    /// Longest `ttl`, if the user has set it.
    pub(crate) max_ttl: Option<Duration>,
    pub(crate) default_wait: Wait,
    pub(crate) node_timeout: Option<Duration>,
    pub(crate) drift_factor: f64,
    pub(crate) local_budget: LocalBudget,
    /// Time for which a lock stays held without a call. Zero turns it off.
    pub(crate) linger: Duration,
    /// Maximum number of idle locks.
    pub(crate) max_idle: usize,
    /// Maximum number of calls of the manager that wait for one key, if it is limited.
    pub(crate) max_waiting: Option<usize>,
    /// Reaction to locks that are acquired in different orders.
    pub(crate) order_check: OrderCheck,
    /// Redaction of keys in spans, events and logs.
    pub(crate) redaction: Redaction,
    /// Number of nodes that may lose their data unnoticed.
    pub(crate) tolerated_data_loss: usize,
    /// Treatment of restarted nodes, if the user has set it.
    pub(crate) after_restart: Option<AfterRestart>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            default_ttl: Duration::from_secs(30),
            max_ttl: None,
            default_wait: Wait::For(Duration::from_secs(10)),
            node_timeout: None,
            drift_factor: 0.01,
            local_budget: LocalBudget::default(),
            linger: Duration::ZERO,
            max_idle: MOST_IDLE,
            max_waiting: None,
            order_check: OrderCheck::default(),
            redaction: Redaction::None,
            tolerated_data_loss: 0,
            after_restart: None,
        }
    }
}

impl Policy {
    pub(crate) const fn quorum(&self, nodes: usize) -> Quorum {
        Quorum::of(nodes, self.tolerated_data_loss)
    }

    pub(crate) fn after_restart(&self, nodes: usize) -> AfterRestart {
        let default =
            if nodes == 1 || self.tolerated_data_loss > 0 { AfterRestart::Trust } else { AfterRestart::Abstain };
        self.after_restart.unwrap_or(default)
    }

    /// Returns the longest `ttl` of all managers of the same keys. A node that has lost its locks abstains for this time.
    pub(crate) fn max_ttl(&self) -> Duration {
        self.max_ttl.unwrap_or(DEFAULT_MAX_TTL)
    }

    /// Applies the policy to this number of `nodes`. A single node that is trusted after a restart needs no longest `ttl`. Several
    /// nodes always need it: another manager may make them abstain.
    pub(crate) fn of_nodes(self, nodes: usize) -> Self {
        let is_needless = nodes == 1 && self.after_restart(nodes) == AfterRestart::Trust;
        Self { max_ttl: self.max_ttl.or(is_needless.then_some(MAX_TTL)), ..self }
    }

    /// Checks that a quorum is possible.
    ///
    /// # Errors
    /// [`LockError::Configuration`] if more nodes would have to agree than there are.
    pub(crate) fn check_quorum(&self, nodes: usize) -> Result<(), LockError> {
        let forgetful = self.tolerated_data_loss;
        if self.quorum(nodes).is_possible() {
            return Ok(());
        }
        // With this number of nodes, the same number may also be down.
        let (least, useful) = (forgetful.saturating_add(1), forgetful.saturating_mul(3).saturating_add(1));
        Err(LockError::configuration(format!(
            "tolerated_data_loss({forgetful}) needs at least {least} nodes, and {useful} when as many may be down as well; \
             there are {nodes}"
        )))
    }

    /// Returns the node timeout of a call with this `ttl`, if a majority replies within `round_trip`. The setting of the user is
    /// used if there is one. Otherwise it is a fiftieth of the `ttl`, within bounds, or some round trips if these take longer.
    pub(crate) fn node_timeout(&self, ttl: Duration, round_trip: Duration) -> Duration {
        let adapted = || {
            let by_ttl = (ttl / NODE_TIMEOUTS_PER_TTL).clamp(SHORTEST_NODE_TIMEOUT, LONGEST_NODE_TIMEOUT);
            let furthest = (CLAIM / NODE_TIMEOUTS_PER_CLAIM).min(ttl / LONGEST_NODE_TIMEOUT_PER_TTL);
            by_ttl.max(round_trip.saturating_mul(ROUND_TRIPS_PER_NODE_TIMEOUT).min(furthest))
        };
        self.node_timeout.unwrap_or_else(adapted)
    }

    /// Returns the time for which the lock of `request` stays idle. Zero turns it off. The `linger` of a request must not
    /// contradict its other options. The default of the manager is ignored if it would.
    ///
    /// # Errors
    /// [`LockError::Configuration`] if the request combines `linger` with an option that excludes it.
    pub(crate) fn linger_of(&self, request: &AcquireRequest) -> Result<Duration, LockError> {
        let other = if request.windows.is_some() {
            "once_per"
        } else if request.hold.min_hold.is_some() {
            "min_hold"
        } else if request.mode.is_shared() || request.key().is_none() {
            return Ok(Duration::ZERO);
        } else {
            return Ok(request.linger.unwrap_or(self.linger));
        };
        match request.linger {
            None | Some(Duration::ZERO) => Ok(Duration::ZERO),
            Some(_) => Err(LockError::configuration(format!(
                "linger and {other} contradict each other: linger keeps the lock for the next call, the other keeps \
                 it from all calls; leave out one of the two"
            ))),
        }
    }

    /// Checks the longest `ttl`.
    ///
    /// # Errors
    /// [`LockError::Configuration`] if the longest `ttl` is out of range.
    pub(crate) fn check_longest_ttl(&self) -> Result<(), LockError> {
        match self.max_ttl.filter(|longest| *longest > MAX_TTL) {
            Some(longest) => Err(LockError::configuration(format!(
                "a max_ttl of {longest:?} is too long: at most 30 days are allowed"
            ))),
            None => Ok(()),
        }
    }

    /// Checks the default `ttl`. A default above the longest `ttl` that other managers assume does not raise the limit of this
    /// manager alone.
    ///
    /// # Errors
    /// [`LockError::Configuration`] if the default `ttl` is out of range, or needs a longest `ttl` that is not set.
    pub(crate) fn check_default_ttl(&self) -> Result<(), LockError> {
        let ttl = self.default_ttl;
        if self.max_ttl.is_none() && ttl > DEFAULT_MAX_TTL && ttl <= MAX_TTL {
            return Err(LockError::configuration(format!(
                "a default_ttl of {ttl:?} needs a max_ttl of {ttl:?} in all managers of the same keys: first set `max_ttl` in all \
                 of them, and in the next deploy this `default_ttl`; without it, they assume {DEFAULT_MAX_TTL:?} and count a restarted \
                 node too early"
            )));
        }
        self.checked_ttl(ttl).map(drop)
    }

    /// Returns `ttl` in whole milliseconds, the unit of Redis.
    ///
    /// # Errors
    /// [`LockError::Configuration`] if a lease of this length cannot be proven, or if it is out of range.
    pub(crate) fn checked_ttl(&self, ttl: Duration) -> Result<Duration, LockError> {
        if ttl > MAX_TTL {
            return Err(LockError::configuration(format!("a ttl of {ttl:?} is too long: at most 30 days are allowed")));
        }
        if ttl > self.max_ttl() {
            return Err(LockError::configuration(format!(
                "a ttl of {ttl:?} is longer than the max_ttl of {:?}: raise `max_ttl` in all managers of the same \
                 keys first, and use the ttl from the next deploy on, since a restarted node abstains for the old \
                 `max_ttl`",
                self.max_ttl()
            )));
        }
        let ttl = Duration::from_millis(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        // The shortest valid `ttl` does not depend on the network: an adapted timeout stays far below the `ttl`.
        let node_timeout = self.node_timeout(ttl, Duration::ZERO);
        let shortest = node_timeout.saturating_add(lease::drift(ttl, self.drift_factor));
        if ttl <= shortest {
            return Err(LockError::configuration(format!(
                "a ttl of {ttl:?} is too short: it must exceed {shortest:?}, which is the node timeout of \
                 {node_timeout:?} with the clock drift"
            )));
        }
        Ok(ttl)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LockRequest;

    #[test]
    fn ttl_that_is_too_short_for_a_lease_is_refused() {
        let policy = Policy::default();
        // 1 ms and u64::MAX ms make a peer loop or wrap around.
        for millis in [0, 1, 2, 5, 11, 12, u64::MAX] {
            let ttl = Duration::from_millis(millis);
            let error = policy.checked_ttl(ttl).expect_err(&format!("{ttl:?}"));
            assert!(matches!(error, LockError::Configuration { .. }), "{error}");
        }
        for millis in [13, 50, 30_000] {
            policy.checked_ttl(Duration::from_millis(millis)).unwrap();
        }
    }

    #[test]
    fn configured_node_timeout_needs_a_longer_ttl() {
        let policy = Policy { node_timeout: Some(Duration::from_secs(2)), ..Policy::default() };
        let error = policy.checked_ttl(Duration::from_secs(2)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a ttl of 2s is too short: it must exceed 2.022s, which is the node timeout of 2s with the clock drift"
        );
        policy.checked_ttl(Duration::from_secs(3)).unwrap();
        let endless = Policy { node_timeout: Some(Duration::MAX), ..Policy::default() };
        endless.checked_ttl(Duration::from_secs(30)).unwrap_err();
    }

    #[test]
    fn max_ttl_is_enforced_only_if_a_node_may_abstain() {
        let hour = Duration::from_secs(3600);
        // Number of nodes, policy, and if an hour is rejected.
        let cautious = Policy { after_restart: Some(AfterRestart::Abstain), ..Policy::default() };
        let bounded = Policy { max_ttl: Some(hour / 2), ..Policy::default() };
        // Other managers may make the nodes abstain.
        let trusting = Policy { after_restart: Some(AfterRestart::Trust), ..Policy::default() };
        let forgetful = Policy { tolerated_data_loss: 1, ..Policy::default() };
        let table = [
            (1, Policy::default(), false),
            (3, Policy::default(), true),
            (1, cautious, true),
            (1, bounded, true),
            (3, trusting, true),
            (5, forgetful, true),
        ];
        for (nodes, policy, is_refused) in table {
            assert_eq!(policy.clone().of_nodes(nodes).checked_ttl(hour).is_err(), is_refused, "{nodes} {policy:?}");
        }
    }

    #[test]
    fn ttl_above_max_ttl_is_refused() {
        let (second, hour) = (Duration::from_secs(1), Duration::from_secs(3600));
        // Setting, and the longest `ttl` with it.
        let table = [(None, 60 * second), (Some(hour), hour), (Some(5 * second), 5 * second)];
        for (max_ttl, longest) in table {
            let policy = Policy { max_ttl, ..Policy::default() };
            assert_eq!(policy.checked_ttl(longest).unwrap(), longest);
            let error = policy.checked_ttl(longest + second).unwrap_err();
            let expected = format!(
                "a ttl of {:?} is longer than the max_ttl of {longest:?}: raise `max_ttl` in all managers of the same \
                 keys first, and use the ttl from the next deploy on, since a restarted node abstains for the old \
                 `max_ttl`",
                longest + second
            );
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn default_ttl_does_not_raise_max_ttl() {
        let second = Duration::from_secs(1);
        let of = |default_ttl, max_ttl| Policy { default_ttl, max_ttl, ..Policy::default() };
        let trusting = Policy { after_restart: Some(AfterRestart::Trust), ..of(180 * second, None) };
        let forgetful = Policy { tolerated_data_loss: 1, ..of(180 * second, None) };
        let cautious = Policy { after_restart: Some(AfterRestart::Abstain), ..of(180 * second, None) };
        let needs =
            Some("a default_ttl of 180s needs a max_ttl of 180s in all managers of the same keys: first set `max_ttl`");
        let table = [
            ("as long as all assume", 3, of(60 * second, None), None),
            ("longer", 3, of(180 * second, None), needs),
            ("longer, and set", 3, of(180 * second, Some(180 * second)), None),
            (
                "longer than what is set",
                3,
                of(180 * second, Some(90 * second)),
                Some("a ttl of 180s is longer than the max_ttl of 90s"),
            ),
            ("restarts are trusted", 3, trusting, needs),
            ("nodes may forget", 3, forgetful, needs),
            ("one node, which abstains", 1, cautious, needs),
            ("one node", 1, of(180 * second, None), None),
            ("out of range", 3, of(Duration::MAX, None), Some("at most 30 days")),
        ];
        for (name, nodes, policy, expected) in table {
            let error = policy.of_nodes(nodes).check_default_ttl().err().map(|error| error.to_string());
            let is_expected = match (&error, expected) {
                (Some(error), Some(expected)) => error.contains(expected),
                (error, expected) => error.is_none() && expected.is_none(),
            };
            assert!(is_expected, "{name}: {error:?}");
        }
    }

    #[test]
    fn linger_of_the_request_overrides_that_of_the_manager() {
        let second = Duration::from_secs(1);
        let policy = Policy { linger: second, ..Policy::default() };
        let (plain, windows) = (LockRequest::new("a"), LockRequest::new("a").once_per(60 * second));
        let table = [
            (plain.clone(), Some(second)),
            (plain.clone().linger(3 * second), Some(3 * second)),
            (plain.clone().linger(Duration::ZERO), Some(Duration::ZERO)),
            (plain.clone().min_hold(second), Some(Duration::ZERO)),
            (plain.min_hold(second).linger(second), None),
            (windows.clone(), Some(Duration::ZERO)),
            (windows.clone().linger(Duration::ZERO), Some(Duration::ZERO)),
            (windows.linger(second), None),
            (LockRequest::shared("a"), Some(Duration::ZERO)),
            (LockRequest::shared("a").min_hold(second), Some(Duration::ZERO)),
        ];
        for (request, expected) in table {
            assert_eq!(policy.linger_of(&request.inner).ok(), expected, "{request:?}");
        }
        assert_eq!(
            Policy::default().linger_of(&LockRequest::new("a").inner).ok(),
            Some(Duration::ZERO),
            "off by default"
        );
    }

    #[test]
    fn ttl_is_truncated_to_milliseconds() {
        let ttl = Duration::from_micros(40_999);
        assert_eq!(Policy::default().checked_ttl(ttl).unwrap(), Duration::from_millis(40));
    }

    #[test]
    fn node_timeout_follows_ttl_and_round_trip_within_bounds() {
        // The ttl, the round trip and the timeout, in milliseconds.
        let table = [
            (100, 0, 10),
            (500, 0, 10),
            (1000, 0, 20),
            (2500, 0, 50),
            (30_000, 0, 50),
            (30_000, 12, 50),
            (30_000, 13, 52),
            (30_000, 62, 248),
            (30_000, 80, 250),
            (30_000, 100_000, 250),
            (1000, 24, 96),
            (1000, 80, 100),
            (100, 80, 10),
        ];
        for (ttl, round_trip, expected) in table {
            let [ttl, round_trip, expected] = [ttl, round_trip, expected].map(Duration::from_millis);
            assert_eq!(Policy::default().node_timeout(ttl, round_trip), expected, "{ttl:?} {round_trip:?}");
            let set = Policy { node_timeout: Some(Duration::from_millis(7)), ..Policy::default() };
            assert_eq!(set.node_timeout(ttl, round_trip), Duration::from_millis(7));
        }
    }
}
