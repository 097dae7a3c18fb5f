//! Harness: real `redis-server` processes on loopback, and a network that fails on demand; and a reader of sources that
//! holds the imports of a crate against its [`Layers`].
//!
//! ```no_run
//! # async fn example() {
//! use redlock_tests::{Nodes, PATIENCE, Proxy, RedisServer};
//!
//! let nodes = Nodes::start(3).await; // three independent masters
//! nodes[2].freeze(); // alive, but answers nobody
//! let slow = Proxy::to(&nodes[0]).await; // give the client `slow.url()` instead of `nodes[0].url()`
//! slow.drop_replies();
//! nodes[2].thaw();
//! nodes.assert_empty(PATIENCE).await;
//!
//! let guarded = RedisServer::builder().password("secret").start().await;
//! assert!(guarded.inspect().keys().await.is_empty());
//! # }
//! ```
//!
//! Every helper panics with what it saw instead of returning an error, and every wait is bounded by tokio's clock: a
//! test that pauses it must start its servers before. Nothing here may depend on `redlock-runtime`: its own tests and
//! benchmarks use this crate.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a panic that says what was seen is how a test fails; no user's program links this crate"
)]

mod cli;
mod cluster;
mod eventually;
mod external;
mod fake_server;
mod inspector;
mod layers;
mod name_service;
mod nodes;
mod port;
mod private_dir;
mod proxy;
mod server;
mod subscribe;
mod warnings;
mod watched;

use std::time::Duration;

pub use cli::redis_cli;
pub use cluster::{Cluster, Migration};
pub use eventually::{eventually, eventually_eq};
pub use fake_server::FakeServer;
pub use inspector::Inspector;
pub use layers::{Layers, Sources};
pub use name_service::NameService;
pub use nodes::Nodes;
pub use proxy::{Direction, Flow, Proxy, Traffic};
pub use server::{Builder, Certificates, RedisServer};
pub use subscribe::subscribe;
pub use warnings::Warnings;
pub use watched::{MASTER, Watched};

/// How long the harness waits for something that should happen at once: 20 s, enough for a loaded machine.
///
/// A test that passes never waits this long; use it where the time itself is not what is tested.
pub const PATIENCE: Duration = Duration::from_secs(20);
