//! Names, fields and levels of all spans and events.
//!
//! All other modules call the functions of [`events`] and [`spans`]. `docs/observability.md` lists the events and spans for users.
//!
//! A subscriber is foreign code. It may block, call this library again, or panic. So no event is written under the mutex of a local
//! queue or of an acquisition, which the subscriber may need ([`held_back`]). A panic of the subscriber is caught here: it would
//! end the watchdog, or a call that holds its lock.

pub(crate) mod events;
pub(crate) mod held_back;
mod named;
mod redacted_key;
pub(crate) mod spans;
mod throttle;

pub(crate) use self::named::Named;
#[cfg(any(feature = "actix-web", feature = "axum", feature = "tonic"))]
pub(crate) use self::redacted_key::redaction_of_process;
pub(crate) use self::redacted_key::{RedactedKey, Redaction, redact};
pub(crate) use self::throttle::Throttle;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Target of all spans and events, for filters such as `RUST_LOG=redlock=debug`.
const TARGET: &str = "redlock";

/// Runs `tell`, and catches a panic of the subscriber.
fn shielded<T: Default>(tell: impl FnOnce() -> T) -> T {
    // No state of the library changes inside.
    catch_unwind(AssertUnwindSafe(tell)).unwrap_or_default()
}

/// Returns whole milliseconds, the unit of all durations in spans and events.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
