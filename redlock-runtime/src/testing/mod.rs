//! For tests of programs that use this library: servers in memory with faults, virtual time, a log, and many schedules.
//!
//! It is behind the feature `testing`, for `[dev-dependencies]`:
//!
//! ```toml
//! [dev-dependencies]
//! redlock-runtime = { version = "0.1", features = ["testing"] }
//! ```
//!
//! - [`TestServers`]: servers that several managers share, with calls that [hold](TestServers::hold), [lose](TestServers::lose) and
//!   [end](TestServers::expire) locks, and [what can befall a server](TestServer) or [a manager](TestServers::cut_off).
//! - [`Log`], [`assert_locked!`](crate::assert_locked) and [`assert_exclusive!`](crate::assert_exclusive): what was locked, for how
//!   long, and by how many at the same time.
//! - [`errors`]: each [`LockError`](crate::LockError), to see what a program makes of it.
//! - [`install`]: a manager in the place of the installed one, for handlers that run in spawned tasks of a test.
//! - [`explore`]: one test in thousands of schedules, each of which can be repeated; [`Explore`] for other settings.
//!
//! Nothing here is for a running service: it panics where a test has made a mistake. With the feature, a program does the same as
//! without, a little slower.
//!
#![cfg_attr(
    feature = "macros",
    doc = "[Testing](crate::guide::recipes::testing), in the guide, shows how they go together."
)]
#![allow(clippy::panic, reason = "it is for tests, which are told by a panic what is wrong with them")]

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
