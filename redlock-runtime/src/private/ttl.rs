//! `ttl = CONSTANT`, checked while the program is compiled.

use std::time::Duration;

/// `ttl` itself.
///
/// # Panics
/// It is zero. Only constants come here, so this is a compile error at the user's token.
#[must_use]
#[track_caller]
#[expect(clippy::panic, reason = "the panic of a constant is a compile error")]
pub const fn checked_ttl(ttl: Duration) -> Duration {
    if ttl.is_zero() {
        panic!("a lock with a `ttl` of zero is never held");
    }
    ttl
}
