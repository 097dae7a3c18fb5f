//! Administration of locks: health checks, inspection, forced release and statistics.
//!
//! Services that only acquire and release locks do not need this module. It holds the types that these methods of
//! [`LockManager`](crate::LockManager) take and return:
//!
//! | task | method | result |
//! |---|---|---|
//! | check whether the servers can be used for locks | [`check`](crate::LockManager::check) | [`CheckReport`] |
//! | find the holder of a key and the waiters | [`inspect`](crate::LockManager::inspect), [`inspect_all`](crate::LockManager::inspect_all) | [`Inspection`] |
//! | list the locked keys | [`list`](crate::LockManager::list) | [`LockList`] |
//! | take a lock from a holder that hangs | [`break_lock`](crate::LockManager::break_lock) | [`BreakReport`] |
//! | count calls, commands and errors | [`stats`](crate::LockManager::stats) | [`Stats`] |
//! | list the locks of this process | [`held_locks`](crate::LockManager::held_locks) | [`LocalLock`] |
//! | show the locks of this process on a web page | [`page`](crate::LockManager::page) | [`LocksPage`] |
//!
//! The function `sites()` lists the annotated functions of the program. It needs the feature `inventory`.
//!
//! The command `redlock` does the same from a shell. All results implement `Serialize` with the feature `serde`, and the command
//! builds its JSON from them.
//!
//! # Examples
//! Log the state of the servers when a service starts, and find the holder of a lock:
//! ```
//! use redlock_runtime::{LockError, LockManager};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
//! let locks = LockManager::in_memory();
//! let report = locks.check().await;
//! println!("{report}");
//! for warning in report.warnings() {
//!     eprintln!("warning: {warning}");
//! }
//!
//! let guard = locks.acquire("order:7").await?;
//! let inspection = locks.inspect("order:7").await;
//! println!("{inspection}");
//! let owner = inspection.holder().and_then(|holder| holder.owner());
//! assert_eq!(owner.map(|owner| owner.token), Some(*guard.token()));
//! # Ok(()) }
//! ```

#[cfg(feature = "serde")]
mod serialize;

pub use crate::manager::{LingerStats, LocalLock, LocksPage, ReleaseStats, Stats};
pub use crate::node::inspection::{
    BreakOutcome, BreakReport, Holder, Inspection, LockList, NodeBreak, NodeInspection, Owner, PlaceholderOwner,
};
pub use crate::node::report::{
    Capabilities, CheckReport, ClockOffset, ClusterMember, NodeReport, Persistence, Refusal, Replication,
};
#[cfg(feature = "inventory")]
pub use crate::request::listed_site::{ListedSite, ListedSites, sites};
pub use crate::request::{BreakOptions, InspectOptions, ListOptions};
pub use crate::stats::{Histogram, LockSite, NodeStats, SiteStats};
pub use crate::text::single_line;
