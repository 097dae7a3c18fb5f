//! What is told to whoever observes the process: the names, fields and levels of all spans and events.
//!
//! Nothing else in the library says one. Whoever has something to tell calls a function of [`events`], or opens a span of
//! [`spans`]; when that is called is decided there. `docs/observability.md` lists the same for users.
//!
//! A subscriber is code of others: it may block, it may come back to us, and it may panic. So nothing is told under the mutex of
//! a line or of an acquisition, which it may want to look at ([`held_back`]), and a panic ends here: it would end the watchdog, or a
//! call that has its lock.

pub(crate) mod events;
pub(crate) mod held_back;
mod named;
pub(crate) mod spans;
mod throttle;
mod told_key;

pub(crate) use self::named::Named;
pub(crate) use self::throttle::Throttle;
#[cfg(any(feature = "axum", feature = "tonic"))]
pub(crate) use self::told_key::redaction_of_process;
pub(crate) use self::told_key::{Redaction, ToldKey, redact};

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// What a filter names: `RUST_LOG=redlock=debug`.
const TARGET: &str = "redlock";

/// Tells, whatever becomes of whoever is told.
fn shielded<T: Default>(tell: impl FnOnce() -> T) -> T {
    // Nothing of ours changes meanwhile.
    catch_unwind(AssertUnwindSafe(tell)).unwrap_or_default()
}

/// Whole milliseconds, as all durations are told.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
