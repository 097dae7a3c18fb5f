//! Cause of a lost lock.

use crate::error::{NodeError, NodeFailure};
use crate::lock::OwnerToken;
use crate::text::SingleLine;
use std::fmt;

/// Reason why a lock is not held any more, or could not be attached.
///
/// Whatever the reason, another owner may hold the lock now. Check what the body has done before you repeat it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossCause {
    /// Renewal was off, and the body took longer than the lease. Raise the `ttl`, or allow renewal.
    Expired,
    /// The lease could not be renewed in time: too few nodes answered, or this process was suspended.
    #[non_exhaustive]
    NotRenewed {
        /// One cause for each node that did not renew the lease. Empty if no node was asked in time.
        causes: Box<[NodeFailure]>,
    },
    /// The nodes report that this process does not hold the lock any more: the key has expired, was deleted or was overwritten, or a
    /// node lost its data.
    Taken,
    /// An operator has broken the lock, with [`LockManager::break_lock`](crate::LockManager::break_lock) or the command
    /// `redlock break`. The nodes confirm that the lock is lost.
    #[non_exhaustive]
    Revoked {
        /// Token of the breaker, as in its event `broken` and in [`BreakReport::by`](crate::admin::BreakReport::by). It ends with the id of
        /// the manager that broke the lock.
        ///
        /// The notification names it, and the nodes do not confirm the name: any client that may publish on the channel of this
        /// process can send another one.
        by: Box<OwnerToken>,
    },
    /// [`attach`](crate::LockManager::attach) found no lock under the token of the [`DetachedLock`](crate::DetachedLock): another worker
    /// has attached it, or its lease has ended.
    NotAttached,
    /// The lock was released by the program.
    Released,
    /// The lock was held for the whole `max_hold`.
    MaxHold,
}

impl fmt::Display for LossCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired => f.write_str("its lease expired, and renewal was off"),
            Self::NotRenewed { causes } => {
                f.write_str("its lease could not be renewed in time")?;
                causes.iter().try_for_each(|cause| match cause.error() {
                    // The limit of one attempt would look like the time for which the node was silent.
                    NodeError::TimedOut(_) => write!(f, "; {}: no answer to the renewals", SingleLine(cause.node())),
                    _ => write!(f, "; {cause}"),
                })
            }
            Self::Taken => f.write_str("the nodes report that this process does not hold it any more"),
            Self::Revoked { by } => write!(f, "it was broken by {by}"),
            Self::NotAttached => f.write_str("another worker has attached it, or its lease has ended"),
            Self::Released => f.write_str("it was released"),
            Self::MaxHold => f.write_str("it was held for the whole `max_hold`"),
        }
    }
}
