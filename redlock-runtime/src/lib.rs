//! Distributed locks for async Rust on Redis or Valkey, as an attribute on a function.
//!
//! ```
//! use redlock_runtime::{LockError, LockManager, distributed_lock};
//!
//! #[distributed_lock(key = "order:{id}", wait = 2s)]
//! async fn capture(id: u64) -> Result<String, LockError> {
//!     // Begins only when this call holds the lock "order:<id>".
//!     Ok(format!("order {id} is paid"))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
//! let locks = LockManager::in_memory(); // on Redis: LockManager::from_env()?
//! locks.install()?; // every annotated function uses this manager
//! assert_eq!(capture(7).await?, "order 7 is paid");
//! locks.shutdown().await; // waits until the servers have answered all releases
//! # Ok(()) }
//! ```
//!
//! - **Exclusion.** Calls with the same key run one at a time. Calls with different keys run in parallel. A function never *begins*
//!   without its lock.
//! - **Release.** The lock is released however the function exits: normal return, `?`, panic, or cancellation, even while it is still
//!   being acquired. If the process dies, the lock expires after its `ttl`.
//! - **Renewal.** The lease is renewed while the function runs. If the lock is lost, the function is cancelled at its next `.await` and
//!   the call returns [`LockError::Lost`].
//! - **Fairness.** Waiters are served in order of arrival. A release hands the lock to the next waiter.
//! - **Topologies.** A lock is held on one Redis server, or on a majority of several independent servers. Each of them may be a
//!   cluster, or a master with Sentinels.
//!
//! New here? The [quick start](crate::guide::start::quick_start) leads to a web service on Redis, and
//! [five things to know](crate::guide::start::essentials) is for the time before the first deployment.
//!
//! # Choosing a lock
//!
//! | I want | I write |
//! |---|---|
//! | one call at a time; others wait | `key = "order:{id}"` |
//! | one call at a time; others fail at once | `key = "order:{id}", wait = none` |
//! | one call at a time; others are skipped | `key = "index", wait = none, on_contended = skip` |
//! | a job that runs once per period, on any instance | `key = "report", once_per = 15m, on_contended = skip` |
//! | a leader for as long as it lives | `key("leader", constant), wait = forever` |
//! | many readers or one writer | `mode = shared` on the readers |
//! | at most five calls at a time | `key = "export", permits = 5` |
//! | several keys without deadlocks | `key = ["account:{from}", "account:{to}"]` |
//! | a folder and everything below it | `path = "/{tenant}/{folder}"` |
//! | storage that rejects late writes | `key = "order:{id}", fencing, guard = lock` |
//! | a lock without the attribute | [`locks.lock("order:7").await?`](LockManager::lock), [`LockManager::with_lock`] |
//!
//! [Which lock](crate::guide::start::which_lock) has a decision tree with a recipe for each row, and explains when a lock is the
//! wrong tool.
//!
//! # Choosing a manager
//!
//! A service keeps the [`LockManager`] in its state and names it in the attribute, so that a test can use another one: `manager =
//! state.locks`. A script or a small program [installs](LockManager::install) one for all annotated functions.
//!
//! # Error handling
//!
//! A locked function returns [`LockError`], or an error type with `From<LockError>`. If a call fails with an error about its own
//! lock, the function has not begun, except for [`Lost`](LockError::Lost). [Errors](crate::guide::reference::errors) lists all
//! variants. A [`LockError`] is an axum response with the feature `axum`:
//!
//! ```
//! # #[cfg(feature = "axum")]
//! # mod service {
//! use axum::extract::{Path, State};
//! use axum::{Router, routing::post};
//! use redlock_runtime::{LockError, LockManager, distributed_lock};
//!
//! #[distributed_lock(key = "order:{id}", wait = none, manager = locks)]
//! async fn capture(State(locks): State<LockManager>, Path(id): Path<u64>) -> Result<String, LockError> {
//!     Ok(format!("order {id} is paid")) // 409 if another call holds the lock
//! }
//!
//! pub fn app(locks: LockManager) -> Router {
//!     Router::new().route("/orders/{id}/capture", post(capture)).with_state(locks)
//! }
//! # }
//! # fn main() {}
//! ```
//!
//! # Cargo features
//!
//! | feature | enables |
//! |---|---|
//! | `macros` (default) | the attribute [`distributed_lock`](macro@distributed_lock) |
//! | `axum`, `actix-web` | [`LockError`] as the response of a handler, with status and `Retry-After` |
//! | `tonic` | [`LockError`] as the `Status` of a gRPC service |
//! | `tls-ring`, `tls-aws-lc-rs` | `rediss://` URLs, with the named provider of rustls |
//! | `tls` | `rediss://` URLs, in a program that already has rustls with a provider |
//! | `serde` | serialization of keys, tokens, [`DetachedLock`] and [`FencingToken`], and of the reports in [`admin`] |
//! | `inventory` | `admin::sites()`, the list of all annotated functions |
//! | `testing` | `testing`: in-memory servers with faults, virtual time and a log; for `[dev-dependencies]` |
//!
//! # Documentation
//!
//! - [The guide](crate::guide): first steps, recipes, production, reference.
//! - [`distributed_lock`](macro@distributed_lock): every option of the attribute, with the equivalent code.
//! - [`LockManager`]: locks without the attribute. [`LockError`]: errors. [`admin`]: inspection, checks and statistics. [`tuning`]: rare
//!   settings.
//! - [`diagnostics`]: compiler messages. [`observability`]: spans and events.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod admin;
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
pub mod tuning;

pub use self::error::{
    ErrorReply, FromLockError, HeldLock, LockError, LockHolder, LossCause, NodeError, NodeFailure, SourceLine,
};
pub use self::guard::{FencedGuard, Fencing, LockGuard};
pub use self::lock::{InvalidKey, InvalidToken, LockKey, LockPath, Mode, OwnerToken};
pub use self::manager::{Acquire, Inherited, LockManager, LockManagerBuilder};
pub use self::node::redis::{Credentials, NodeConfig};
pub use self::private::LockKeyPart;
pub use self::protocol::fencing_token::FencingToken;
pub use self::request::{DetachedLock, Fenced, FencedSet, LockPart, LockRequest, OrderCheck, Unfenced, Wait};
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
pub mod guide;

#[doc(hidden)]
pub mod __private {
    pub use crate::private::*;
}

/// Items of `__private` that messages of the compiler name. For an item in a hidden module, the compiler prints the path
/// through a module that is not hidden, if there is one.
#[cfg_attr(doc, doc(hidden))]
pub mod attribute {
    pub use crate::private::{
        Failed, Handler, Integer, KeyInteger, MadeLast, NotAFloat, NotAnOption, Part, Same as RecursiveCall, Settings,
        Skip, Value, handle_lock_error, reopen_if_failed,
    };
}
