//! Types of guards: with and without a fencing token.

use super::{FencedGuard, LockGuard};
use crate::client::acquire::AcquiredLock;
use crate::error::LockError;
use crate::request::{Fenced, Unfenced};

/// Marker of a request with or without a fencing token: [`Fenced`] or [`Unfenced`].
///
/// This trait is sealed: no other type can implement it.
pub trait Fencing: Sealed<<Self as Fencing>::Guard> {
    /// Type of the guard.
    type Guard;
}

impl Fencing for Unfenced {
    type Guard = LockGuard;
}

impl Fencing for Fenced {
    type Guard = FencedGuard;
}

/// Acquired lock without its guard. Only this crate can create or use it.
#[expect(missing_debug_implementations, reason = "it cannot be named outside of this crate")]
pub struct Acquired(pub(crate) AcquiredLock);

/// Conversions that only this crate can name.
pub trait Sealed<G> {
    /// `true` if a token is requested.
    const IS_FENCED: bool;

    /// Returns the guard of an acquired lock.
    ///
    /// # Errors
    /// [`LockError::NoQuorum`] or [`LockError::Refused`] if a token was requested and too few nodes have accepted one.
    fn guard(acquired: Acquired) -> Result<G, LockError>;

    /// Returns the guard without its token.
    fn unfenced(guard: &G) -> &LockGuard;
}

impl Sealed<LockGuard> for Unfenced {
    const IS_FENCED: bool = false;

    fn guard(acquired: Acquired) -> Result<LockGuard, LockError> {
        Ok(LockGuard::new(acquired.0))
    }

    fn unfenced(guard: &LockGuard) -> &LockGuard {
        guard
    }
}

impl Sealed<FencedGuard> for Fenced {
    const IS_FENCED: bool = true;

    fn guard(acquired: Acquired) -> Result<FencedGuard, LockError> {
        FencedGuard::new(acquired.0)
    }

    fn unfenced(guard: &FencedGuard) -> &LockGuard {
        guard
    }
}
