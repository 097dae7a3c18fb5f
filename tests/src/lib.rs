//! Test harness: real `redis-server` processes on loopback, and a network that fails on demand.
//! It also contains a reader of sources that compares the imports of a crate with its [`Layers`].
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
//! Every helper panics with the observed state instead of returning an error.
//! Every wait is bounded by tokio's clock, so a test that pauses the clock must start its servers first.
//! The harness must not depend on `redlock-runtime`, because that crate's own tests and benchmarks use it.
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
pub use fake_server::{FakeServer, ReceivedCommand};
pub use inspector::Inspector;
pub use layers::{Layers, Sources};
pub use name_service::NameService;
pub use nodes::Nodes;
pub use proxy::{Direction, Flow, Proxy, Traffic};
pub use server::{Builder, Certificates, RedisServer};
pub use subscribe::subscribe;
pub use warnings::Warnings;
pub use watched::{MASTER, Watched};

/// Time limit of the harness for events that should happen at once: 20 s, enough for a loaded machine.
///
/// A test that passes never waits this long. Use it if the test does not measure the time itself.
pub const PATIENCE: Duration = Duration::from_secs(20);
