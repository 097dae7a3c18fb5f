//! Check of `ttl = CONSTANT` at compile time.

use std::time::Duration;

/// Returns `ttl` itself.
///
/// # Panics
/// If it is zero, too short for any answer with the default settings, or longer than the runtime allows. The function is only
/// called for constants, so this is a compile error at the user's token.
#[must_use]
#[track_caller]
pub const fn checked_ttl(ttl: Duration) -> Duration {
    assert!(!ttl.is_zero(), "a lock with a `ttl` of zero is never held");
    assert!(ttl.as_millis() >= 13, "this `ttl` is too short to acquire a lock: write 13 ms at least");
    assert!(ttl.as_millis() <= 30 * 24 * 3_600_000, "this `ttl` is too long: write 30 days at most");
    ttl
}
