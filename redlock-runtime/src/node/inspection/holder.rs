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
    /// Calls of this library that [share](crate::LockRequest::shared) the lock, or have something [below](Owner::is_below) it.
    #[non_exhaustive]
    Shared {
        /// In the order in which they have asked for it; of many the first hundred.
        owners: Vec<Owner>,
    },
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
    /// Who it is, if it is a call of this library that has the lock alone.
    #[must_use]
    pub const fn owner(&self) -> Option<&Owner> {
        match self {
            Self::Owner(owner) => Some(owner),
            _ => None,
        }
    }

    /// Who they are, if they are calls of this library: one, or those that have the lock together.
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

    /// Whether two nodes say the same. Those who share a lock come and go, at one node sooner than at another.
    pub(super) fn agrees_with(&self, other: &Self) -> bool {
        self == other || matches!((self, other), (Self::Shared { .. }, Self::Shared { .. }))
    }
}

/// `shared by 3 calls`, or `shared by 1 call, shared below by 2 calls`
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
            // Escaped: whoever has written it may have written anything.
            Self::Foreign { value } => write!(f, "held by another program, as {value:?}"),
            Self::Data => f.write_str("data, which is no lock"),
        }
    }
}
