//! Use of the nodes by a manager, and the risks of that use.

use super::persistence::Persistence;
use crate::error::NodeError;
use crate::protocol::quorum::Quorum;
use crate::protocol::timing::ROUND_TRIPS_PER_NODE_TIMEOUT;
use std::time::Duration;

/// Step of recommended node timeouts: 10 ms.
const TIMEOUT_STEP: Duration = Duration::from_millis(10);

/// Use of the nodes by a manager.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deployment {
    /// Timeout for a reply of a node, in a call with the default `ttl`.
    pub(crate) node_timeout: Duration,
    /// Upper limit of this timeout when it adapts to the round trip. Equal to `node_timeout` if the user has set it.
    pub(crate) longest_node_timeout: Duration,
    /// Number of nodes that may lose their data unnoticed.
    pub(crate) tolerated_data_loss: usize,
    /// `true` if the manager has used `min_hold` or `once_per`, whose keys stay locked after the body.
    pub(crate) has_kept_keys: bool,
    /// `true` if a restarted node votes at once, even if it has lost data.
    pub(crate) trusts_restarts: bool,
    /// Time for which processes ignore the votes of a server that has restarted: `max_ttl` and the clock drift.
    pub(crate) longest_abstention: Duration,
}

impl Deployment {
    /// Returns the error for a node whose round trip exceeds the node timeout.
    pub(super) fn too_far(&self, round_trip: Duration) -> Option<NodeError> {
        let node_timeout = self.adapted_to(round_trip);
        let text = || {
            format!(
                "a round trip takes {round_trip:.1?} and the node timeout is {node_timeout:?}, so that every answer comes too late: \
                 set `node_timeout` to {:?} or more",
                recommended(round_trip)
            )
        };
        (round_trip >= node_timeout).then(|| NodeError::Unsupported(text().into()))
    }

    /// Returns a warning for a round trip that nearly reaches the node timeout.
    pub(super) fn nearly_too_far(&self, round_trip: Duration) -> Option<String> {
        let node_timeout = self.adapted_to(round_trip);
        if round_trip >= node_timeout {
            return None;
        } else if round_trip >= self.node_timeout {
            return Some(format!(
                "a round trip takes {round_trip:.1?} and the node timeout is still {:?}, so that calls may fail until it has followed the \
                 distance: set `node_timeout` to {:?} or more if that is often",
                self.node_timeout,
                recommended(round_trip)
            ));
        }
        let text = || {
            format!(
                "a round trip takes {round_trip:.1?} of the node timeout of {node_timeout:?}, so that a slow answer fails a lock: set \
                 `node_timeout` to {:?} or more",
                recommended(round_trip)
            )
        };
        (round_trip * 2 > node_timeout).then(text)
    }

    /// Returns the node timeout after it has followed the distance of a node with this round trip.
    fn adapted_to(&self, round_trip: Duration) -> Duration {
        self.node_timeout.max((round_trip * ROUND_TRIPS_PER_NODE_TIMEOUT).min(self.longest_node_timeout))
    }

    /// Returns a warning for a server that loses locks in a restart and is trusted afterwards.
    pub(super) fn amnesia(&self, persistence: &Persistence) -> Option<String> {
        let loses = match persistence {
            _ if !self.trusts_restarts || self.tolerated_data_loss > 0 => return None,
            Persistence::AppendOnly { fsync: Some(fsync) } if &**fsync == "always" => return None,
            Persistence::None => "loses every lock when it restarts",
            Persistence::Snapshots => "loses the locks since its last snapshot when it restarts",
            Persistence::AppendOnly { fsync: Some(_) } => "loses the locks of the last second when it crashes",
            Persistence::AppendOnly { fsync: None } => {
                "loses the locks of the last second when it crashes, unless `appendfsync` is `always`, which the user may not query"
            }
        };
        Some(format!(
            "it {loses}; other callers then get these locks: set `appendonly yes` and `appendfsync always`, or use three nodes"
        ))
    }

    /// Returns a warning about a server that has been running for less than the longest lease. Processes that knew it before ignore its
    /// votes, although a new process accepts them if all servers are young.
    pub(super) fn restarted(&self, uptime: Duration) -> Option<String> {
        let left = self.longest_abstention.saturating_sub(uptime);
        (!self.trusts_restarts && !left.is_zero()).then(|| {
            format!(
                "restarted {} s ago: processes that knew it before do not count it for another {} s, unless it has kept its data; do not \
                 restart another server before",
                uptime.as_secs(),
                left.as_secs_f64().ceil()
            )
        })
    }

    /// Returns the loss of locked keys after a body through restarts, if `forgetful` of `nodes` servers keep no data over a restart.
    ///
    /// A clean restart keeps the contents of snapshots and append-only files with any settings.
    pub(super) fn forgotten_windows(&self, forgetful: usize, nodes: usize) -> Option<String> {
        let keep = nodes.saturating_sub(forgetful);
        // A single trusted server has its own warning.
        let is_warned = nodes == 1 && self.trusts_restarts;
        let are_lost = self.has_kept_keys && !is_warned && keep < Quorum::of(nodes, self.tolerated_data_loss).needed;
        are_lost.then(|| {
            format!(
                "{forgetful} of {nodes} servers keep no data over a restart: if they restart one after the other, windows of once_per and \
                 times of min_hold are forgotten, and a job may run twice. Set `appendonly yes` there"
            )
        })
    }

    /// Returns a warning if one node less would survive as many failures.
    pub(super) fn wasted_node(&self, nodes: usize) -> Option<String> {
        let spare = |nodes| {
            let Quorum { nodes, needed } = Quorum::of(nodes, self.tolerated_data_loss);
            nodes.saturating_sub(needed)
        };
        let fewer = nodes.checked_sub(1).filter(|fewer| *fewer > 0)?;
        (spare(nodes) == spare(fewer)).then(|| {
            format!(
                "{nodes} nodes survive no more failures than {fewer}, and more of them have to agree: leave one out, or \
                 add one"
            )
        })
    }
}

/// Returns the node timeout to recommend for a round trip, rounded up to a whole step.
fn recommended(round_trip: Duration) -> Duration {
    let steps = (round_trip * ROUND_TRIPS_PER_NODE_TIMEOUT).as_millis().div_ceil(TIMEOUT_STEP.as_millis());
    TIMEOUT_STEP * u32::try_from(steps).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment() -> Deployment {
        Deployment {
            node_timeout: Duration::from_millis(50),
            longest_node_timeout: Duration::from_millis(50),
            tolerated_data_loss: 0,
            has_kept_keys: true,
            trusts_restarts: true,
            longest_abstention: Duration::from_millis(61_602),
        }
    }

    #[test]
    fn restarted_server_is_reported_until_its_abstention_ends() {
        let careful = Deployment { trusts_restarts: false, ..deployment() };
        let warning = careful.restarted(Duration::from_secs(12)).unwrap();
        assert!(warning.starts_with("restarted 12 s ago: ") && warning.contains("for another 50 s"), "{warning}");
        assert!(careful.restarted(Duration::from_secs(61)).is_some());
        assert_eq!(careful.restarted(Duration::from_secs(62)), None);
        assert_eq!(deployment().restarted(Duration::ZERO), None, "restarts are trusted");
    }

    #[test]
    fn round_trip_is_compared_with_the_node_timeout() {
        let ms = Duration::from_millis;
        let table = [(1, false, false), (25, false, false), (26, false, true), (49, false, true), (50, true, false)];
        for (round_trip, fails, is_near) in table {
            assert_eq!(deployment().too_far(ms(round_trip)).is_some(), fails, "{round_trip} ms");
            assert_eq!(deployment().nearly_too_far(ms(round_trip)).is_some(), is_near, "{round_trip} ms");
        }
        let error = deployment().too_far(ms(81)).unwrap().to_string();
        assert!(error.contains("takes 81.0ms and the node timeout is 50ms") && error.contains("to 330ms"), "{error}");
    }

    #[test]
    fn adaptive_node_timeout_is_compared_with_its_max() {
        let ms = Duration::from_millis;
        let adaptive = Deployment { longest_node_timeout: ms(250), ..deployment() };
        let table =
            [(26, false, None), (60, false, Some("is still 50ms")), (249, false, Some("is still")), (250, true, None)];
        for (round_trip, fails, expected) in table {
            assert_eq!(adaptive.too_far(ms(round_trip)).is_some(), fails, "{round_trip} ms");
            let warning = adaptive.nearly_too_far(ms(round_trip));
            assert_eq!(warning.is_some(), expected.is_some(), "{round_trip} ms: {warning:?}");
            assert!(warning.unwrap_or_default().contains(expected.unwrap_or_default()), "{round_trip} ms");
        }
    }

    #[test]
    fn node_that_adds_no_fault_tolerance_is_reported() {
        let table =
            [(1, 0, false), (2, 0, true), (3, 0, false), (4, 0, true), (3, 1, true), (4, 1, false), (5, 2, false)];
        for (nodes, tolerated_data_loss, expected) in table {
            let deployment = Deployment { tolerated_data_loss, ..deployment() };
            assert_eq!(
                deployment.wasted_node(nodes).is_some(),
                expected,
                "{nodes} nodes, {tolerated_data_loss} forget"
            );
        }
    }

    #[test]
    fn lost_windows_are_reported_if_too_few_servers_persist_data() {
        let table = [(0, 3, false), (1, 3, false), (2, 3, true), (3, 3, true), (1, 1, false)];
        for (forgetful, nodes, expected) in table {
            let warning = deployment().forgotten_windows(forgetful, nodes);
            assert_eq!(warning.is_some(), expected, "{forgetful} of {nodes}");
        }
        let careful = Deployment { trusts_restarts: false, ..deployment() };
        assert!(careful.forgotten_windows(1, 1).is_some(), "a single server that is not trusted");
        let unused = Deployment { has_kept_keys: false, ..deployment() };
        assert_eq!(unused.forgotten_windows(3, 3), None);
    }

    #[test]
    fn trusted_server_without_durability_is_a_risk() {
        let append_only = |fsync: &str| Persistence::AppendOnly { fsync: Some(fsync.into()) };
        let table = [
            (Persistence::None, Some("every lock")),
            (Persistence::Snapshots, Some("since its last snapshot")),
            (append_only("everysec"), Some("of the last second")),
            (append_only("always"), None),
        ];
        for (persistence, expected) in table {
            let risk = deployment().amnesia(&persistence);
            assert_eq!(risk.is_some(), expected.is_some(), "{persistence}");
            assert!(risk.is_none_or(|risk| risk.contains(expected.unwrap())), "{persistence}");
            let harmless = [
                Deployment { trusts_restarts: false, ..deployment() },
                Deployment { tolerated_data_loss: 1, ..deployment() },
            ];
            assert!(harmless.iter().all(|deployment| deployment.amnesia(&persistence).is_none()), "{persistence}");
        }
    }
}
