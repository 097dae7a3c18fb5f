//! Distributed locks on Redis for async Rust.
//!
//! A lock is held on one Redis server, or on a majority of several independent ones. It is given back on every way out of
//! the code that needs it, and that code is stopped when the lock can no longer be proven held.
//!
//! ```
//! use redlock_runtime::{LockError, LockManager};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
//! // On Redis: LockManager::builder().node("redis://host").namespace("locks").build()?
//! let manager = LockManager::in_memory();
//! let total = manager
//!     .with_lock("order:7", async |_guard| {
//!         // Runs only while this call holds "order:7".
//!         Ok::<_, LockError>(42)
//!     })
//!     .await?;
//! # assert_eq!(total, 42);
//! manager.shutdown().await; // before the process ends: waits until the last release is answered
//! # Ok(()) }
//! ```
//!
//! Most code uses the attribute `#[distributed_lock]` instead, which does the same for a whole function. Start with
//! [`LockManager`], then [`LockError`] for what can go wrong.

mod client;
mod error;
mod guard;
mod lock;
mod manager;
mod node;
mod observe;
mod private;
mod protocol;
mod request;
#[cfg(test)]
mod simulation;
mod stats;
mod time;

pub use self::error::{FromLockError, HeldLock, LockError, LossCause, NodeError, NodeFailure, SourceLine};
pub use self::guard::{FencedGuard, Inherited, LockGuard};
pub use self::lock::{LockKey, Mode, OwnerToken};
pub use self::manager::{Holding, LingerStats, LockManager, LockManagerBuilder, ReleaseStats, Stats};
pub use self::node::inspection::{
    BreakOutcome, BreakReport, Holder, Inspection, LockList, NodeBreak, NodeInspection, Owner, StandIn,
};
pub use self::node::redis::{Credentials, NodeConfig};
pub use self::node::report::{
    Capabilities, CheckReport, ClockOffset, ClusterMember, NodeReport, Persistence, Refusal, Replication,
};
pub use self::private::LockKeyPart;
pub use self::protocol::fencing_token::FencingToken;
#[cfg(feature = "inventory")]
pub use self::request::listed_site::{ListedSite, ListedSites, sites};
pub use self::request::{AfterRestart, DetachedLock, FencedSet, LockRequest, OrderCheck, Wait};
pub use self::stats::{Histogram, LockSite, NodeStats, SiteStats};
#[cfg(feature = "macros")]
#[doc = include_str!("../docs/distributed_lock.md")]
pub use redlock_macros::distributed_lock;
/// Gives options to all functions with `#[distributed_lock]` inside of an `impl`, a `trait` or a module.
///
/// [`distributed_lock`](macro@distributed_lock#defaults-for-many-functions) says which, and what each function may say
/// against them.
#[cfg(feature = "macros")]
pub use redlock_macros::distributed_lock_defaults;

#[cfg(all(doc, feature = "macros"))]
#[doc = include_str!("../docs/diagnostics.md")]
pub mod diagnostics {}

#[cfg(doc)]
#[doc = include_str!("../docs/observability.md")]
pub mod observability {}

#[doc(hidden)]
pub mod __private {
    pub use crate::private::*;
}
