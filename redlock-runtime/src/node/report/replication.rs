//! Replicas of a server.

use std::fmt;

/// Replicas of a server, which may replace it in a failover. Replication is asynchronous: a new master lacks the latest locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Replication {
    /// Number of attached replicas.
    pub replicas: u64,
    /// Setting `min-replicas-to-write`: number of replicas that must be close behind for a write to be accepted. `None` if the user may
    /// not query it.
    pub min_replicas_to_write: Option<u64>,
}

impl Replication {
    /// Returns the risk of the replicas, and its remedy.
    pub(crate) fn risk(self) -> Option<String> {
        let Self { replicas, min_replicas_to_write } = self;
        let many = if replicas == 1 { "1 replica is".to_owned() } else { format!("{replicas} replicas are") };
        let text = match min_replicas_to_write {
            _ if replicas == 0 => return None,
            Some(0) => format!(
                "{many} attached: after a failover, locks can be lost and other callers then get them: use independent \
                 masters without failover, or at least set min-replicas-to-write to 1, so that an isolated master \
                 soon stops granting locks"
            ),
            Some(least) => format!(
                "{many} attached: after a failover, the latest locks can be lost, since min-replicas-to-write {least} \
                 does not wait for replicas: use independent masters without failover, or fencing"
            ),
            None => format!(
                "{many} attached: after a failover, locks can be lost and other callers then get them: use independent \
                 masters without failover"
            ),
        };
        Some(text)
    }
}

impl fmt::Display for Replication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.replicas {
            0 => f.write_str("master"),
            1 => f.write_str("master with 1 replica"),
            replicas => write!(f, "master with {replicas} replicas"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replica_risk_advice_depends_on_min_replicas_setting() {
        let risk = |replicas, min_replicas_to_write| {
            Replication { replicas, min_replicas_to_write }.risk().unwrap_or_default()
        };
        assert_eq!(risk(0, Some(0)), "");
        assert!(risk(1, Some(0)).starts_with("1 replica is attached") && risk(1, Some(0)).contains("set min-replicas"));
        assert!(risk(2, Some(1)).starts_with("2 replicas are attached") && risk(2, Some(1)).contains("or fencing"));
        assert!(!risk(1, None).contains("min-replicas"));
    }
}
