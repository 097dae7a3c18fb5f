//! Harness: real `redis-server` processes on loopback, and a network that fails on demand.
//!
//! Every helper panics with what it saw instead of returning an error, and every wait is bounded. Nothing here may
//! depend on `redlock-runtime`: its own tests and benchmarks use this crate.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a panic that says what was seen is how a test fails; no user's program links this crate"
)]

mod cli;
mod eventually;
mod external;
mod inspector;
mod port;
mod private_dir;
mod proxy;
mod server;

use std::time::Duration;

pub use cli::redis_cli;
pub use eventually::{eventually, eventually_eq};
pub use inspector::Inspector;
pub use proxy::{Direction, Flow, Proxy, Traffic};
pub use server::{Builder, RedisServer};

/// How long the harness waits for something that should happen at once: 20 s, enough for a loaded machine.
///
/// A test that passes never waits this long; use it where the time itself is not what is tested.
pub const PATIENCE: Duration = Duration::from_secs(20);
