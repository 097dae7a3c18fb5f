//! Holder of a key.

use super::owner::Owner;
use std::fmt;

/// Holder of a key at one node, or at a majority of the nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Holder {
    /// The node has not answered.
    Unknown,
    /// The key is free.
    Nobody,
    /// One call of this library holds the key exclusively, in this process or another one.
    ///
    /// A [lingering](crate::LockManagerBuilder::linger) lock looks the same as a lock that is in use.
    Owner(Owner),
    /// Calls of this library [share](crate::LockRequest::shared) the lock, or hold a [descendant](Owner::is_descendant) of the key.
    #[non_exhaustive]
    Shared {
        /// The first 100 owners, in the order of their requests.
        owners: Vec<Owner>,
    },
    /// Another library or program holds the lock: the key has an expiry, and its value is not a token of this library.
    #[non_exhaustive]
    Foreign {
        /// Value of the key, at most 256 bytes.
        value: Box<str>,
    },
    /// The key holds data that is not a lock: a value without an expiry, or a value that is not a string.
    Data,
}

impl Holder {
    /// Returns the owner if one call of this library holds the key exclusively.
    #[must_use]
    pub const fn owner(&self) -> Option<&Owner> {
        match self {
            Self::Owner(owner) => Some(owner),
            _ => None,
        }
    }

    /// Returns the owners that are calls of this library: one exclusive owner, or all that share the lock.
    #[must_use]
    pub fn owners(&self) -> &[Owner] {
        match self {
            Self::Owner(owner) => std::slice::from_ref(owner),
            Self::Shared { owners } => owners,
            _ => &[],
        }
    }

    pub(crate) fn owners_mut(&mut self) -> &mut [Owner] {
        match self {
            Self::Owner(owner) => std::slice::from_mut(owner),
            Self::Shared { owners } => owners,
            _ => &mut [],
        }
    }

    /// Returns `true` if two nodes agree. Owners that share a lock may differ, because they come and go at different times.
    pub(super) fn agrees_with(&self, other: &Self) -> bool {
        self == other || matches!((self, other), (Self::Shared { .. }, Self::Shared { .. }))
    }
}

/// Writes `shared by 3 calls`, or `shared by 1 call, descendant shared by 2 calls`.
fn write_counts(owners: &[Owner], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for words in owners.iter().map(Owner::has) {
        match counts.iter_mut().find(|(other, _)| *other == words) {
            Some((_, count)) => *count += 1,
            None => counts.push((words, 1)),
        }
    }
    counts.iter().enumerate().try_for_each(|(at, (words, count))| {
        let (comma, calls) = (if at > 0 { ", " } else { "" }, if *count > 1 { "calls" } else { "call" });
        write!(f, "{comma}{words} {count} {calls}")
    })
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("unknown"),
            Self::Nobody => f.write_str("free"),
            Self::Owner(owner) => write!(f, "held by {owner}"),
            Self::Shared { owners } => match owners.as_slice() {
                [only] => write!(f, "{} {only}", only.has()),
                several => write_counts(several, f),
            },
            // Escaped: another program may have written anything.
            Self::Foreign { value } => write!(f, "held by another program, as {value:?}"),
            Self::Data => f.write_str("data that is not a lock"),
        }
    }
}
