//! Whether other servers follow a server, and may take its place.

use std::fmt;

/// Whether other servers follow a server, and may take its place. Replication is asynchronous: whoever takes over has not
/// got the latest locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replication {
    /// How many replicas are attached.
    pub replicas: u64,
    /// How many of them must be near for a write to be accepted, its `min-replicas-to-write`; `None` when the user may
    /// not ask for it.
    pub least_to_write: Option<u64>,
}

impl Replication {
    /// What is at risk, and what to do about it.
    pub(crate) fn risk(self) -> Option<String> {
        let Self { replicas, least_to_write } = self;
        let many = if replicas == 1 { "1 replica is".to_owned() } else { format!("{replicas} replicas are") };
        let text = match least_to_write {
            _ if replicas == 0 => return None,
            Some(0) => format!(
                "{many} attached: after a failover, locks are forgotten and a second owner gets them: use independent \
                 masters without failover, or at least set min-replicas-to-write to 1, so that a master that is cut off \
                 soon stops granting locks"
            ),
            Some(least) => format!(
                "{many} attached: after a failover, the latest locks are forgotten, since min-replicas-to-write {least} \
                 does not wait for replicas: use independent masters without failover, or fencing"
            ),
            None => format!(
                "{many} attached: after a failover, locks are forgotten and a second owner gets them: use independent \
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
    fn replicas_are_a_risk_and_what_to_do_depends_on_the_setting() {
        let risk = |replicas, least_to_write| Replication { replicas, least_to_write }.risk().unwrap_or_default();
        assert_eq!(risk(0, Some(0)), "");
        assert!(risk(1, Some(0)).starts_with("1 replica is attached") && risk(1, Some(0)).contains("set min-replicas"));
        assert!(risk(2, Some(1)).starts_with("2 replicas are attached") && risk(2, Some(1)).contains("or fencing"));
        assert!(!risk(1, None).contains("min-replicas"));
    }
}
