//! Distributed locks on Redis for async Rust.
//!
//! ```
//! use redlock_runtime::{LockError, LockManager};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
//! let manager = LockManager::in_memory();
//! let guard = manager.acquire("order:7").await?;
//! // Nobody else holds "order:7" until the guard is dropped or its lease runs out.
//! drop(guard);
//! # Ok(()) }
//! ```

mod acquire;
mod changes;
mod clock;
mod error;
mod expiry;
mod from_lock_error;
mod guard;
mod hold;
mod key;
mod lease;
mod manager;
mod node;
mod options;
mod ownership;
mod private;
mod quorum;
mod reclaim;
mod shared;
mod token;

pub use self::error::{LockError, NodeError, NodeFailure};
pub use self::from_lock_error::FromLockError;
pub use self::guard::LockGuard;
pub use self::key::LockKey;
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
