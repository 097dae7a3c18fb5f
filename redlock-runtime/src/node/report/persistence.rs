//! What is left of the data of a server after a crash.

use std::fmt;

/// What is left of the data of a server after a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Persistence {
    /// Nothing.
    None,
    /// What was there at the last snapshot, if any: not the latest locks.
    Snapshots,
    /// What was written to the append-only file. With `always`, that is every lock; otherwise not the latest.
    #[non_exhaustive]
    AppendOnly {
        /// Its `appendfsync`; `None` when the user may not ask for it.
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
