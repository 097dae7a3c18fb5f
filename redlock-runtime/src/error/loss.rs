//! Why a lock is not held any more.

use crate::error::NodeFailure;
use crate::lock::OwnerToken;
use std::fmt;

/// Why a lock was lost while it was held.
///
/// Whatever the cause, another owner may be at work: check what the body had done before repeating it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossCause {
    /// The lease was not to be renewed, and the body took longer. A longer `ttl` or renewal mends it.
    Expired,
    /// The lease could not be renewed in time: too few nodes answered, or this process was suspended.
    #[non_exhaustive]
    NotRenewed {
        /// One cause for each node that did not renew it; empty when none was asked in time.
        causes: Box<[NodeFailure]>,
    },
    /// The nodes say that the lock is not ours: its key expired there, was deleted or was overwritten, or a node lost its
    /// data.
    Taken,
    /// An operator has broken the lock, with [`LockManager::break_lock`](crate::LockManager::break_lock) or the command
    /// `redlock break`. The nodes confirm that the lock is lost.
    #[non_exhaustive]
    Revoked {
        /// Token of the breaker, as in its event `broken` and in [`BreakReport::by`](crate::BreakReport::by). It ends with the id of
        /// the manager that broke the lock.
        ///
        /// The notification names it, and the nodes do not confirm the name: any client that may publish on the channel of this
        /// process can send another one.
        by: Box<OwnerToken>,
    },
    /// It was given back on purpose.
    Released,
    /// It was held for as long as `max_hold` allows.
    MaxHold,
}

impl fmt::Display for LossCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired => f.write_str("its lease expired, and renewal was off"),
            Self::NotRenewed { causes } => {
                f.write_str("its lease could not be renewed in time")?;
                causes.iter().try_for_each(|cause| write!(f, "; {cause}"))
            }
            Self::Taken => f.write_str("the nodes report that this process does not hold it any more"),
            Self::Revoked { by } => write!(f, "it was broken by {by}"),
            Self::Released => f.write_str("it was released"),
            Self::MaxHold => f.write_str("it was held for the whole `max_hold`"),
        }
    }
}
