//! What a node is worth that may have forgotten its locks.

/// Whether a node votes at once that came back as another process, or with other data.
///
/// A server that was restarted without its data has forgotten which locks it had granted, and would grant them again
/// while their holders go on: two holders. So has a replica that was promoted before it had all of its master's data, and a
/// server that was made a replica of another one and then a master again. A node that abstains is asked as usual, but what
/// it grants does not count until every lease that it may have given before has ended: for one
/// [`longest_ttl`](crate::LockManagerBuilder::longest_ttl). A lock that is held and that it still knows is renewed there
/// all the same, so a fail-over that kept the data loses none.
///
/// Only a server that writes every command to disk before it answers (`appendonly yes` with `appendfsync always`, before
/// and after the restart) remembers all of them. Snapshots and `appendfsync everysec` lose the latest.
///
/// A process that starts after the restart knows nothing of it. For it, a node abstains that has not been running for one
/// `longest_ttl` when it first meets it; but not when so many nodes are as young that the others are no majority. Then
/// nothing can be proven, and whoever starts everything at once does not wait.
///
/// # When it does not help
/// All managers of the same keys need the same `longest_ttl`. A user without `+info` cannot tell a restart from a broken
/// connection: its nodes vote at once. `FLUSHALL` is not noticed, nor that a replica was promoted before a process first met
/// it.
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
    /// The price: one spare node fewer for one `longest_ttl`. With a lone node, no lock is obtained for so long.
    Abstain,
    /// It votes at once. Default with one node.
    ///
    /// The price: after a crash, whoever held a lock goes on until its next renewal or the end of its `ttl`, and another
    /// may have the same lock already.
    Trust,
}
