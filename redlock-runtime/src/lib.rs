//! Distributed locks on Redis for async Rust.
//!
//! A lock is held on one Redis server, or on a majority of several independent ones. It is given back on every way out of
//! the code that needs it, and that code is stopped when the lock can no longer be proven held.
//!
//! ```
//! use redlock_runtime::{LockError, LockManager};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
//! let manager = LockManager::in_memory(); // or LockManager::from_env(), with REDLOCK_NODES=redis://host
//! let total = manager
//!     .with_lock("order:7", async |_guard| {
//!         // Runs only while this call holds "order:7".
//!         Ok::<_, LockError>(42)
//!     })
//!     .await?;
//! # assert_eq!(total, 42);
//! manager.shutdown().await; // before the runtime ends: waits until the last release is answered
//! # Ok(()) }
//! ```
//!
//! Most code uses the attribute `#[distributed_lock]` instead, which does the same for a whole function. Start with
//! [`LockManager`], then [`LockError`] for what can go wrong.

mod acquire;
mod after_restart;
mod changes;
mod check;
mod clock;
mod clock_steps;
mod detached;
mod error;
mod expiry;
mod fenced_guard;
mod fenced_set;
mod fencing_token;
mod from_lock_error;
mod guard;
mod hold;
mod hot_keys;
mod key;
mod lease;
mod local_queue;
mod loss;
mod manager;
mod node;
mod options;
mod ownership;
mod parked;
mod private;
mod quorum;
mod reclaim;
mod rules;
mod shared;
#[cfg(test)]
mod simulation;
mod site;
mod token;
mod token_clock;
mod wake_ups;
mod watchdog;

pub use self::after_restart::AfterRestart;
pub use self::check::{Capabilities, CheckReport, ClockOffset, NodeReport, Persistence};
pub use self::detached::DetachedLock;
pub use self::error::{LockError, NodeError, NodeFailure};
pub use self::fenced_guard::FencedGuard;
pub use self::fenced_set::FencedSet;
pub use self::fencing_token::FencingToken;
pub use self::from_lock_error::FromLockError;
pub use self::guard::LockGuard;
pub use self::key::LockKey;
pub use self::loss::LossCause;
pub use self::manager::{LockManager, LockManagerBuilder, ReleaseStats};
pub use self::options::{LockRequest, Wait};
pub use self::private::LockKeyPart;
pub use self::token::OwnerToken;
#[cfg(feature = "macros")]
#[doc = include_str!("../docs/distributed_lock.md")]
pub use redlock_macros::distributed_lock;

#[cfg(all(doc, feature = "macros"))]
#[doc = include_str!("../docs/diagnostics.md")]
pub mod diagnostics {}

#[doc(hidden)]
pub mod __private {
    pub use crate::private::*;
}
