//! What a node is worth after it was restarted.

/// Whether a node that came back as another process, possibly without its data, votes at once.
///
/// A server that was restarted without its data has forgotten which locks it had granted, and would grant them again
/// while their holders go on: two holders. A node that abstains is asked as usual, but what it grants does not count until
/// every lease that it may have given before has ended.
///
/// Only a server that writes every command to disk before it answers (`appendonly yes` with `appendfsync always`, before
/// and after the restart) remembers all of them. Snapshots and `appendfsync everysec` lose the latest.
///
/// # When it does not help
/// The leases are taken to be no longer than the longest `ttl` that this manager has used, its default included: give all
/// managers of the same keys the same default. A manager that is built after the restart knows nothing of it. And a user
/// without `+info` cannot tell a restart from a broken connection: its nodes vote at once.
///
/// # Examples
/// ```
/// # use redlock_runtime::{AfterRestart, LockError, LockManager};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
/// let manager = LockManager::builder().node("redis://10.0.0.1").after_restart(AfterRestart::Abstain).build()?;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterRestart {
    /// It does not vote until every lease that it may have given before has ended. Default with several nodes.
    ///
    /// The price: one spare node fewer for one longest `ttl`. With a lone node, no lock is obtained for so long.
    Abstain,
    /// It votes at once. Default with one node.
    ///
    /// The price: after a crash, whoever held a lock goes on until its next renewal or the end of its `ttl`, and another
    /// may have the same lock already.
    Trust,
}
