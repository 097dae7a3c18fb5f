//! Retry delay of an error.

use super::lock_error::LockError;
use super::node_error::{NodeError, NodeFailure};
use std::time::Duration;

impl LockError {
    /// Returns the time after which a retry may have another outcome, if it is known. An earlier retry may succeed, too.
    ///
    /// - [`Contended`](Self::Contended), [`TimedOut`](Self::TimedOut): the remaining lease of the holder. The holder may release
    ///   the lock earlier, or renew its lease. `None` if the nodes did not report the lease.
    /// - [`WindowTaken`](Self::WindowTaken): the time until the next window.
    /// - [`NoQuorum`](Self::NoQuorum): the time until enough restarted nodes vote again. `None` if too few of the missing nodes are
    ///   restarted ones.
    ///
    /// `None` for all other errors: the end of an outage cannot be predicted, and a wrong setting does not correct itself.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager, LockRequest};
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> Result<(), LockError> {
    /// let manager = LockManager::in_memory();
    /// let _guard = manager.acquire(LockRequest::new("order:7").ttl(Duration::from_secs(10))).await?;
    /// let error = manager.try_acquire("order:7").await.unwrap_err();
    /// assert!(error.retry_after() > Some(Duration::from_secs(9)));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Contended { lease_left, .. } | Self::TimedOut { lease_left, .. } => *lease_left,
            Self::WindowTaken { ends_in, .. } => Some(*ends_in),
            Self::NoQuorum { needed, nodes, causes, .. } => {
                let agreed = nodes.saturating_sub(causes.len());
                enough_after(needed.saturating_sub(agreed), causes)
            }
            _ => None,
        }
    }
}

/// Returns the time until `missing` further nodes vote, as far as abstaining nodes have reported it.
fn enough_after(missing: usize, causes: &[NodeFailure]) -> Option<Duration> {
    let abstains =
        |cause: &NodeFailure| if let NodeError::RecentlyRestarted(left) = cause.error() { Some(*left) } else { None };
    let mut rests: Vec<_> = causes.iter().filter_map(abstains).collect();
    rests.sort_unstable();
    rests.get(missing.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_when_enough_nodes_stop_abstaining() {
        let seconds = Duration::from_secs;
        let rest = |left: u64| NodeError::RecentlyRestarted(seconds(left));
        let down = NodeError::Disconnected;
        let table = [
            (1, 1, vec![rest(7)], Some(7)),
            (2, 3, vec![rest(9), rest(7)], Some(7)),
            (2, 3, vec![rest(9), rest(7), rest(8)], Some(8)),
            (2, 3, vec![rest(9), down.clone()], Some(9)),
            (2, 3, vec![rest(9), down.clone(), down.clone()], None),
            (2, 3, vec![down.clone(), down], None),
            (1, 1, vec![], None),
        ];
        for (needed, nodes, errors, expected) in table {
            let failure = |error| NodeFailure { node: "10.0.0.1:6379".into(), error };
            let causes: Box<[_]> = errors.into_iter().map(failure).collect();
            let error = LockError::NoQuorum { key: None, needed, nodes, causes };
            assert_eq!(error.retry_after(), expected.map(seconds), "{error}");
        }
    }
}
