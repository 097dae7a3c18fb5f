//! Line of the source.

use std::fmt;
use std::panic::Location;

/// Line of the source at which a lock is requested. `Display` writes `src/orders.rs:7`.
///
/// This is the line of the attribute, or of the call of a method of [`LockManager`](crate::LockManager).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceLine {
    file: &'static str,
    line: u32,
}

impl SourceLine {
    pub(crate) const fn new(file: &'static str, line: u32) -> Self {
        Self { file, line }
    }

    /// Returns the path of the file, as it was passed to the compiler.
    #[must_use]
    pub const fn file(&self) -> &'static str {
        self.file
    }

    /// Returns the number of the line. The first line is 1.
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
