//! Tools for tests of programs that use locks: in-memory servers with faults, virtual time, a log, and random schedules.
//!
//! Enable the feature `testing` in `[dev-dependencies]`:
//!
//! ```toml
//! [dev-dependencies]
//! redlock-runtime = { version = "0.1", features = ["testing"] }
//! ```
//!
//! - [`TestServers`]: servers for several managers. Methods [hold](TestServers::hold), [lose](TestServers::lose) and
//!   [expire](TestServers::expire) locks, and cause faults of [a server](TestServer) or [a manager](TestServers::cut_off).
//! - [`Log`], [`assert_locked!`](crate::assert_locked) and [`assert_exclusive!`](crate::assert_exclusive): which locks were acquired,
//!   with which `ttl`, and by how many calls at the same time.
//! - [`errors`]: each kind of [`LockError`](crate::LockError), for tests of error handling.
//! - [`install`]: the installed manager of one test, for handlers that run in spawned tasks.
//! - [`explore`]: runs one test with thousands of schedules, each of which can be repeated. [`Explore`] has more settings.
//!
//! Do not use this module in a running service: it panics if a test is wrong. The feature does not change the behaviour of a program;
//! it makes the program a little slower.
//!
#![cfg_attr(
    feature = "macros",
    doc = "[Testing](crate::guide::recipes::testing) in the guide shows how to combine them."
)]
#![allow(clippy::panic, reason = "a panic reports a wrong test")]

pub mod errors;
mod explore;
mod installed;
mod log;
mod node;
mod server;
mod servers;
mod test_server;
mod trouble;

pub use self::explore::{Explore, explore};
pub use self::installed::{Installed, install};
pub use self::log::Log;
pub use self::servers::TestServers;
pub use self::test_server::TestServer;
pub use crate::stats::{LogEntry, LogEvent};
