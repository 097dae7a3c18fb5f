//! Settings that few programs need.

use crate::protocol::local_budget::LocalBudget;
use crate::request::{AfterRestart, Policy};
use std::time::Duration;

/// Settings that few programs need, changed with [`LockManagerBuilder::tuning`](crate::LockManagerBuilder::tuning).
///
/// # Examples
/// ```
/// # use redlock_runtime::{LockError, LockManager};
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
/// let locks = LockManager::builder()
///     .node("redis://10.0.0.1")
///     .tuning(|tuning| tuning.max_idle(100).local_handover(8, Duration::from_millis(10)))
///     .build()?;
/// # drop(locks); Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a setting has no effect until it is returned to `LockManagerBuilder::tuning`"]
pub struct Tuning {
    policy: Policy,
}

impl Tuning {
    pub(super) const fn new(policy: Policy) -> Self {
        Self { policy }
    }

    pub(super) fn into_policy(self) -> Policy {
        self.policy
    }

    /// Sets how long a restarted node that may have lost its locks is ignored, which is also the upper limit of every `ttl`. From 13 ms
    /// to 30 days. Default: 60 s; 30 days with one node that is trusted after a restart.
    ///
    /// All managers of the same keys need the same value. The event `settings_differ` and [`check`](crate::LockManager::check)
    /// report a different one. A longer `ttl` of a request or of a detached lock fails with
    /// [`LockError::Configuration`](crate::LockError::Configuration). The value limits the `ttl`, not the time for which a renewed
    /// lock is held.
    ///
    /// A node does not vote for this time after it was restarted, or after its data was replaced. The same applies if its uptime is
    /// shorter than this when a process first connects; see [`AfterRestart::Abstain`].
    pub const fn max_ttl(mut self, ttl: Duration) -> Self {
        self.policy.max_ttl = Some(ttl);
        self
    }

    /// Sets how a restarted node that may have lost its locks is treated. All managers of the same keys need the same value.
    /// Default: [`AfterRestart::Abstain`] with several nodes; [`AfterRestart::Trust`] with one, and with
    /// [`tolerated_data_loss`](Self::tolerated_data_loss).
    pub const fn after_restart(mut self, after_restart: AfterRestart) -> Self {
        self.policy.after_restart = Some(after_restart);
        self
    }

    /// Sets the number of nodes that may lose their data at any time without a second holder. All managers of the same keys need the same
    /// value. Default: 0; restarted nodes then abstain, see [`after_restart`](Self::after_restart).
    ///
    /// More nodes must agree: ceil((N + d + 1) / 2) of N nodes if d may lose their data. That is 4 of 5 for one or two. Fewer nodes
    /// may be down at the same time, and a restarted node votes at once.
    pub const fn tolerated_data_loss(mut self, nodes: usize) -> Self {
        self.policy.tolerated_data_loss = nodes;
        self
    }

    /// Sets how much faster than the clock of this process the clock of a server may run, as a fraction of the `ttl`. From 0.0 to 0.5.
    /// Default: 0.01.
    ///
    /// The validity of a lock is reduced by this fraction of the `ttl` and by 2 ms.
    pub const fn drift_factor(mut self, factor: f64) -> Self {
        self.policy.drift_factor = factor;
        self
    }

    /// Limits how often, and for how long, calls of this manager pass a lock to each other while callers of other processes wait.
    /// The first limit that is reached ends it. Default: 16 times, 20 ms, counted from the first notice of a waiter.
    ///
    /// Passing a lock within a process needs no command; handing it to another process takes two round trips or more. Larger limits
    /// increase the throughput, smaller limits keep closer to the order of arrival. Zero passes or zero time put other processes
    /// first.
    ///
    /// If no other process is known to wait, the lock is passed on for at most one `ttl`. Then it is released and acquired again.
    pub const fn local_handover(mut self, passes: u32, time: Duration) -> Self {
        self.policy.local_budget = LocalBudget { passes, time };
        self
    }

    /// Sets how many locks may be idle at the same time; see [`linger`](crate::LockManagerBuilder::linger). If there are more, the locks
    /// that have been idle for the longest time are released. Default: 1024.
    pub const fn max_idle(mut self, locks: usize) -> Self {
        self.policy.max_idle = locks;
        self
    }
}
