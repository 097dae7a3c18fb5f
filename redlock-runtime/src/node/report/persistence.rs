//! Data of a server that survives a crash.

use std::fmt;

/// Data of a server that survives a crash.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Persistence {
    /// No data survives.
    None,
    /// The last snapshot survives, if there is one. It lacks the latest locks.
    Snapshots,
    /// The append-only file survives. It has every lock if `fsync` is `always`, and otherwise lacks the latest locks.
    #[non_exhaustive]
    AppendOnly {
        /// Setting `appendfsync`. `None` if the user may not query it.
        fsync: Option<Box<str>>,
    },
}

impl fmt::Display for Persistence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("no persistence"),
            Self::Snapshots => f.write_str("snapshots"),
            Self::AppendOnly { fsync: Some(fsync) } => write!(f, "append-only file (fsync {fsync})"),
            Self::AppendOnly { fsync: None } => f.write_str("append-only file"),
        }
    }
}
