//! Holder of a lock that another call did not obtain.

use crate::error::source_line::SourceLine;
use crate::lock::OwnerToken;
use std::fmt;

/// Holder of a lock that another call did not obtain, in [`LockError::Contended`](crate::LockError::Contended) and
/// [`LockError::TimedOut`](crate::LockError::TimedOut).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockHolder {
    token: OwnerToken,
    line: Option<SourceLine>,
}

impl LockHolder {
    pub(crate) const fn new(token: OwnerToken, line: Option<SourceLine>) -> Self {
        Self { token, line }
    }

    /// Returns the owner token of the holder.
    #[must_use]
    pub const fn token(&self) -> &OwnerToken {
        &self.token
    }

    /// Returns the line at which the holder acquired the lock. `None` if another manager holds it, for example in another process.
    #[must_use]
    pub const fn line(&self) -> Option<SourceLine> {
        self.line
    }
}

/// Text behind a message about the holder. It is empty if another manager holds the lock.
impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.line.map_or(Ok(()), |line| write!(f, ": the call at {line} in this process"))
    }
}
