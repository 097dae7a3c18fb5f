//! Distributed locks on Redis for async Rust, as an attribute on a function.
//!
//! ```
//! use redlock_runtime::{LockError, LockManager, distributed_lock};
//!
//! #[distributed_lock(key = "order:{order_id}", wait = "2s")]
//! async fn capture(order_id: u64) -> Result<String, LockError> {
//!     // Runs only while this call holds "order:<id>", in whatever process or machine it is.
//!     Ok(format!("order {order_id} is paid"))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
//! // On Redis: LockManager::builder().node("redis://127.0.0.1:6379").namespace("locks").build()?
//! let locks = LockManager::in_memory();
//! locks.install()?; // for every annotated function that names no manager
//! assert_eq!(capture(7).await?, "order 7 is paid");
//! locks.shutdown().await; // before the process ends: waits until the last release is answered
//! # Ok(()) }
//! ```
//!
//! - Two calls with one key do not run at the same time; other keys do not wait for each other. A body never runs without the
//!   lock.
//! - The lock is given back on every way out: the end, `return`, `?`, a panic, and a future that is dropped, also in the middle
//!   of acquiring it.
//! - A lease is renewed while the body runs, and the body is stopped when the lock can no longer be proven held.
//! - Calls that wait are served first come, first served, and woken by the release.
//! - The lock is held on one Redis server, or on a majority of several independent ones. A cluster, or a master with Sentinels,
//!   is one of them.
//!
//! # Installation
//!
//! ```toml
//! [dependencies]
//! redlock-runtime = { version = "0.1", features = ["axum"] }
//! ```
//!
//! | feature | for |
//! |---|---|
//! | `macros`, on by default | the attribute [`distributed_lock`](macro@distributed_lock) |
//! | `axum` | [`LockError`] as the answer of a handler, with its status and `Retry-After` |
//! | `tonic` | [`LockError`] as the `Status` of a gRPC service |
//! | `tls-ring`, `tls-aws-lc-rs` | `rediss://` URLs, in a program that has no rustls yet |
//! | `tls` | `rediss://` URLs, in a program that has rustls with a provider |
//! | `serde` | [`DetachedLock`] and [`FencingToken`] in messages |
//! | `inventory` | `sites()`, the list of all annotated functions |
//! | `testing` | `testing`, servers for tests with faults, time and a log; for `[dev-dependencies]` |
//!
//! # Errors
//!
//! A function returns [`LockError`], or an error type of its own with `From<LockError>`. Of what a call says about its own
//! lock, only [`Lost`](LockError::Lost) means that the body has begun: it was stopped at an `.await`. Errors of other locked
//! functions that the body passes on have [their own key](LockError::key). With the feature `axum`:
//!
//! ```
//! # #[cfg(feature = "axum")]
//! # mod service {
//! use axum::{Router, extract::Path, routing::post};
//! use redlock_runtime::{LockError, distributed_lock};
//!
//! #[distributed_lock(key = "order:{id}", wait = none)]
//! async fn capture(Path(id): Path<u64>) -> Result<String, LockError> {
//!     Ok(format!("order {id} is paid")) // or 409, when another call has the lock
//! }
//!
//! pub fn app() -> Router {
//!     Router::new().route("/orders/{id}/capture", post(capture))
//! }
//! # }
//! # fn main() {}
//! ```
//!
//! # Where to go on
//!
//! - [The guide](crate::guide): [ten minutes](crate::guide::ten_minutes), [which lock](crate::guide::which_lock),
//!   [what happens when](crate::guide::what_happens_when) Redis or a process fails, [deploying](crate::guide::deploying),
//!   [testing](crate::guide::testing), [troubleshooting](crate::guide::troubleshooting), and
//!   [coming from](crate::guide::coming_from) another library.
//! - [`distributed_lock`](macro@distributed_lock): every option of the attribute, with the code that one would write by hand.
//! - [`LockManager`]: locks by hand. [`LockError`]: what can go wrong.
//! - [`diagnostics`]: what the compiler says. [`observability`]: what the log says.
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
mod time;

pub use self::error::{FromLockError, HeldLock, LockError, LossCause, NodeError, NodeFailure, SourceLine};
pub use self::guard::{FencedGuard, Inherited, LockGuard};
pub use self::lock::{InvalidKey, LockKey, LockPath, Mode, OwnerToken};
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
pub use self::request::{AfterRestart, DetachedLock, FencedSet, LockPart, LockRequest, OrderCheck, Wait};
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

#[cfg(all(doc, feature = "macros"))]
#[doc = include_str!("../docs/guide/index.md")]
pub mod guide {
    #[doc = include_str!("../docs/guide/ten_minutes.md")]
    pub mod ten_minutes {}

    #[doc = include_str!("../docs/guide/which_lock.md")]
    pub mod which_lock {}

    #[doc = include_str!("../docs/guide/choosing.md")]
    pub mod choosing {}

    #[doc = include_str!("../docs/guide/keys.md")]
    pub mod keys {}

    #[doc = include_str!("../docs/guide/what_happens_when.md")]
    pub mod what_happens_when {}

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
