//! What is told to whoever observes the process: the names, fields and levels of all spans and events.
//!
//! Nothing else in the library says one. Whoever has something to tell calls a function of [`events`], or opens a span of
//! [`spans`]; when that is called is decided there. `docs/observability.md` lists the same for users.
//!
//! A subscriber is code of others: it may block, and it may come back to us. So nothing is told under a mutex.

pub(crate) mod events;
mod named;
pub(crate) mod spans;
mod throttle;

pub(crate) use self::named::Named;
pub(crate) use self::throttle::Throttle;

use std::time::Duration;

/// What a filter names: `RUST_LOG=redlock=debug`.
const TARGET: &str = "redlock";

/// Whole milliseconds, as all durations are told.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
