//! A place in the source.

use std::fmt;
use std::panic::Location;

/// A line of the source: where a lock is asked for. `Display` writes `src/orders.rs:7`.
///
/// It is that of the attribute, or that of the call of [`LockManager`](crate::LockManager).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceLine {
    file: &'static str,
    line: u32,
}

impl SourceLine {
    pub(crate) const fn new(file: &'static str, line: u32) -> Self {
        Self { file, line }
    }

    /// The file, as the compiler was given it.
    #[must_use]
    pub const fn file(&self) -> &'static str {
        self.file
    }

    /// The line in it, from 1.
    #[must_use]
    pub const fn line(&self) -> u32 {
        self.line
    }
}

impl From<&'static Location<'static>> for SourceLine {
    fn from(location: &'static Location<'static>) -> Self {
        Self::new(location.file(), location.line())
    }
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}
