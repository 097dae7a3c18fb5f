//! Treatment of nodes that may have lost their locks.

use std::fmt;

/// Treatment of a node that was restarted, or whose data was replaced.
///
/// A server that restarts without its data has lost the locks that it granted. It would grant them again while their holders
/// continue: two holders. The same holds for a replica that was promoted before it had all of its master's data, and for a server
/// that became a replica of another one and then a master again. A node that abstains still receives all commands. Its grants prove
/// nothing until every lease that it may have granted before has ended: for one
/// [`max_ttl`](crate::tuning::Tuning::max_ttl). If the node still knows a held lock, the lock is renewed there, so a
/// fail-over that kept the data loses no lock.
///
/// A node with `appendonly yes` and `appendfsync always`, before and after the restart, does not abstain if a marker in its data shows that
/// nothing is lost. Snapshots and `appendfsync everysec` lose the latest locks. Nodes behind Sentinels and clusters always abstain.
///
/// A process that starts after the restart cannot compare. For such a process, a node abstains while its uptime is below one
/// `max_ttl`, if a majority of the nodes is older by more than 10 s or not reached yet. After a cold start of all nodes, none abstains.
///
/// # When it does not help
///
/// In these cases two holders are possible:
///
/// - A node restarts within 10 s after a cold start of all nodes, or two nodes within one `max_ttl`.
/// - The virtual machine of a node is reset to a snapshot: the server continues with old data under its old identity.
/// - Managers of the same keys use different values of `max_ttl` or of this setting.
/// - The user lacks `+info`. A restart then looks like a broken connection.
/// - A replica was promoted before the process first connected to it.
/// - The manager has a single node, and a process starts after the restart: it takes locks at once, even with
///   [`Abstain`](Self::Abstain).
/// - `FLUSHALL`, which the holders notice at their next renewal.
///
/// # Examples
/// ```
/// # use redlock_runtime::tuning::AfterRestart;
/// # use redlock_runtime::{LockError, LockManager};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
/// let manager = LockManager::builder().node("redis://10.0.0.1").tuning(|tuning| tuning.after_restart(AfterRestart::Abstain)).build()?;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AfterRestart {
    /// The node does not vote until every lease that it may have granted before has ended. Default with several nodes.
    ///
    /// The price: one spare node fewer for one `max_ttl`. With a single node, processes that knew it before the restart acquire no
    /// lock for that time.
    Abstain,
    /// The node votes at once. Default with one node.
    ///
    /// The price: after a crash of the server, a holder continues until its next renewal or the end of its `ttl`. Another caller may
    /// hold the same lock meanwhile.
    Trust,
}

/// `abstain` or `trust`.
impl fmt::Display for AfterRestart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Abstain => "abstain",
            Self::Trust => "trust",
        })
    }
}
