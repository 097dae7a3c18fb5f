//! The guard that a request results in.

use super::{FencedGuard, LockGuard};
use crate::client::acquire::Obtained;
use crate::error::LockError;
use crate::request::{Fenced, Unfenced};

/// Whether a lock is acquired with a fencing token: [`Unfenced`] or [`Fenced`].
///
/// This trait is sealed: no other type can implement it.
pub trait Fencing: Sealed<<Self as Fencing>::Guard> {
    /// The guard of the lock.
    type Guard;
}

impl Fencing for Unfenced {
    type Guard = LockGuard;
}

impl Fencing for Fenced {
    type Guard = FencedGuard;
}

/// A lock before it has its guard. Only this crate can make or use one.
#[expect(missing_debug_implementations, reason = "it cannot be named outside of this crate")]
pub struct Acquired(pub(crate) Obtained);

/// Conversions that only this crate can name.
pub trait Sealed<G> {
    /// Whether a token is requested.
    const IS_FENCED: bool;

    /// # Errors
    /// [`LockError::NoQuorum`] if a token was requested and too few nodes have accepted one.
    fn guard(acquired: Acquired) -> Result<G, LockError>;

    /// The guard without its token.
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
