//! Distributed locks for async Rust on Redis or Valkey, as an attribute on a function.
//!
//! ```
//! use redlock_runtime::{LockError, LockManager, distributed_lock};
//!
//! #[distributed_lock(key = "order:{order_id}", wait = "2s")]
//! async fn capture(order_id: u64) -> Result<String, LockError> {
//!     // Begins when this call holds the lock "order:<order_id>".
//!     Ok(format!("order {order_id} is paid"))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
//! // On Redis: LockManager::builder().node("redis://127.0.0.1:6379").namespace("locks").build()?
//! let locks = LockManager::in_memory();
//! locks.install()?; // every annotated function uses this manager
//! assert_eq!(capture(7).await?, "order 7 is paid");
//! locks.shutdown().await; // waits until the last lock is released
//! # Ok(()) }
//! ```
//!
//! - **Exclusion.** Calls with the same key run one at a time. Calls with different keys run in parallel. A function never *begins*
//!   without its lock.
//! - **Release.** The lock is released however the function exits: normal return, `?`, panic, or cancellation, even while it is still
//!   being acquired.
//! - **Renewal.** The lease is renewed while the function runs. If the lock is lost, the function is cancelled at its next `.await` and
//!   the call returns [`LockError::Lost`].
//! - **Fairness.** Waiters are served in order of arrival. A release hands the lock to the next waiter.
//! - **Topologies.** A lock is held on one Redis server, or on a majority of several independent servers. Each of them may be a
//!   cluster, or a master with Sentinels.
//!
//! # Choosing a lock
//!
//! | I want | I write |
//! |---|---|
//! | one call at a time; others wait | `key = "order:{id}"` |
//! | others fail at once | `key = "order:{id}", wait = none` |
//! | others are skipped | `key = "index", wait = none, on_contended = skip` |
//! | a job that runs once per period, on any instance | `key = "report", once_per = 15m, on_contended = skip` |
//! | one leader at a time | `key = "leader", wait = forever` |
//! | many readers or one writer | `mode = shared` on the readers |
//! | at most five calls at a time | `key = "export", permits = 5` |
//! | two things at once, without deadlocks | `key = ["account:{from}", "account:{to}"]` |
//! | a folder and everything below it | `path = "/{tenant}/{folder}"` |
//! | storage that rejects late writes | `key = "order:{id}", fencing, guard = lock` |
//! | a lock without the attribute | [`LockManager::acquire`], [`LockManager::with_lock`] |
//!
//! [Which lock](crate::guide::which_lock) explains them, and says when not to use a lock.
//!
//! # Cargo features
//!
//! | feature | enables |
//! |---|---|
//! | `macros` (default) | the attribute [`distributed_lock`](macro@distributed_lock) |
//! | `axum` | [`LockError`] as the response of a handler, with status and `Retry-After` |
//! | `tonic` | [`LockError`] as the `Status` of a gRPC service |
//! | `tls-ring`, `tls-aws-lc-rs` | `rediss://` URLs, with the named provider of rustls |
//! | `tls` | `rediss://` URLs, in a program that already has rustls with a provider |
//! | `serde` | serialization of [`DetachedLock`] and [`FencingToken`] |
//! | `inventory` | `sites()`, the list of all annotated functions |
//! | `testing` | `testing`: in-memory servers with faults, virtual time and a log; for `[dev-dependencies]` |
//!
//! # Error handling
//!
//! A locked function returns [`LockError`], or an error type with `From<LockError>`. If a call fails with an error about its own lock, the
//! function has not begun, except for [`Lost`](LockError::Lost). [Errors](crate::guide::errors) lists all variants. With the feature `axum`,
//! a [`LockError`] is a response:
//!
//! ```
//! # #[cfg(feature = "axum")]
//! # mod service {
//! use axum::{Router, extract::Path, routing::post};
//! use redlock_runtime::{LockError, distributed_lock};
//!
//! #[distributed_lock(key = "order:{id}", wait = none)]
//! async fn capture(Path(id): Path<u64>) -> Result<String, LockError> {
//!     Ok(format!("order {id} is paid")) // 409 if another call holds the lock
//! }
//!
//! pub fn app() -> Router {
//!     Router::new().route("/orders/{id}/capture", post(capture))
//! }
//! # }
//! # fn main() {}
//! ```
//!
//! # Documentation
//!
//! - [The guide](crate::guide): [ten minutes](crate::guide::ten_minutes) to a first service, [deploying](crate::guide::deploying),
//!   [what happens when](crate::guide::what_happens_when) something fails, [testing](crate::guide::testing), and more.
//! - [`distributed_lock`](macro@distributed_lock): every option of the attribute, with the equivalent code.
//! - [`LockManager`]: locks without the attribute. [`LockError`]: errors.
//! - [`diagnostics`]: compiler messages. [`observability`]: spans and events.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod client;
mod error;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzed;
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
#[cfg(feature = "testing")]
pub mod testing;
mod text;
mod time;

pub use self::error::{
    ErrorReply, FromLockError, HeldLock, LockError, LockHolder, LossCause, NodeError, NodeFailure, SourceLine,
};
pub use self::guard::{FencedGuard, LockGuard};
pub use self::lock::{InvalidKey, LockKey, LockPath, Mode, OwnerToken};
pub use self::manager::{Holding, Inherited, LingerStats, LockManager, LockManagerBuilder, ReleaseStats, Stats};
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
pub use self::request::{AfterRestart, BreakRequest, DetachedLock, FencedSet, LockPart, LockRequest, OrderCheck, Wait};
pub use self::stats::{Histogram, LockSite, NodeStats, SiteStats};
pub use self::text::single_line;
#[cfg(feature = "macros")]
#[doc = include_str!("../docs/distributed_lock.md")]
pub use redlock_macros::distributed_lock;
/// Sets default options for all functions with `#[distributed_lock]` in an `impl`, a `trait` or a module.
///
/// [`distributed_lock`](macro@distributed_lock#defaults-for-many-functions) lists the options, and how a function overrides them.
#[cfg(feature = "macros")]
pub use redlock_macros::distributed_lock_defaults;

#[cfg(all(doc, feature = "macros"))]
#[doc = include_str!("../docs/diagnostics.md")]
pub mod diagnostics {}

#[cfg(doc)]
#[doc = include_str!("../docs/observability.md")]
pub mod observability {}

#[cfg(all(doc, feature = "macros"))]
#[doc = include_str!("../docs/guide/index.md")]
pub mod guide {
    #[doc = include_str!("../docs/guide/ten_minutes.md")]
    pub mod ten_minutes {}

    #[doc = include_str!("../docs/guide/errors.md")]
    pub mod errors {}

    #[doc = include_str!("../docs/guide/which_lock.md")]
    pub mod which_lock {}

    #[doc = include_str!("../docs/guide/choosing.md")]
    pub mod choosing {}

    #[doc = include_str!("../docs/guide/keys.md")]
    pub mod keys {}

    #[doc = include_str!("../docs/guide/what_happens_when.md")]
    pub mod what_happens_when {}

    #[doc = include_str!("../docs/guide/security.md")]
    pub mod security {}

    #[doc = include_str!("../docs/guide/fencing.md")]
    pub mod fencing {}

    #[doc = include_str!("../docs/guide/deploying.md")]
    pub mod deploying {}

    #[doc = include_str!("../docs/guide/watching.md")]
    pub mod watching {}

    #[doc = include_str!("../docs/guide/testing.md")]
    pub mod testing {}

    #[doc = include_str!("../docs/guide/frameworks.md")]
    pub mod frameworks {}

    #[doc = include_str!("../docs/guide/how_it_works.md")]
    pub mod how_it_works {}

    #[doc = include_str!("../docs/guide/proven.md")]
    pub mod proven {}

    #[doc = include_str!("../docs/guide/troubleshooting.md")]
    pub mod troubleshooting {}

    #[doc = include_str!("../docs/guide/limits.md")]
    pub mod limits {}

    #[doc = include_str!("../docs/guide/versions.md")]
    pub mod versions {}

    #[doc = include_str!("../docs/guide/coming_from.md")]
    pub mod coming_from {}
}

#[doc(hidden)]
pub mod __private {
    pub use crate::private::*;
}
