//! What stands under a key.

use super::owner::Owner;
use std::fmt;

/// What has a key at one node, or at a majority of them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Holder {
    /// The node has not said.
    Unknown,
    /// The key is free.
    Nobody,
    /// A call of this library, in this process or another one. A lock that [lingers](crate::LockManagerBuilder::linger) looks
    /// like one that is used.
    Owner(Owner),
    /// A lock of another library or program: a text with an expiry that is no token of ours.
    #[non_exhaustive]
    Foreign {
        /// The text, which that program knows the lock by; of a long one the first 256 bytes.
        value: Box<str>,
    },
    /// No lock of anybody: a value without an expiry, or of another type than text. What it is stays with whoever stored it.
    Data,
}

impl Holder {
    /// Who it is, if it is a call of this library.
    #[must_use]
    pub const fn owner(&self) -> Option<&Owner> {
        match self {
            Self::Owner(owner) => Some(owner),
            _ => None,
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("unknown"),
            Self::Nobody => f.write_str("free"),
            Self::Owner(owner) => write!(f, "held by {owner}"),
            // Escaped: whoever has written it may have written anything.
            Self::Foreign { value } => write!(f, "held by another program, as {value:?}"),
            Self::Data => f.write_str("data, which is no lock"),
        }
    }
}
