//! Owner tokens: who holds a lock.

use std::fmt;
use uuid::Uuid;
use uuid::fmt::{Hyphenated, Simple};

/// Names one manager of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ManagerId(Uuid);

impl ManagerId {
    pub(crate) fn random() -> Self {
        Self(Uuid::now_v7())
    }
}

impl fmt::Display for ManagerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.simple().fmt(f)
    }
}

/// Who holds a lock: unique per attempt to acquire it, and never used again after its release.
///
/// The text is `<uuidv7>@<manager id>`. It starts with the time, so that tokens sort in the order of the attempts, and
/// it ends with the id of the manager, so that whoever meets a token in Redis can tell whose it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OwnerToken {
    // In place: a token is made, copied and written for every acquisition.
    text: [u8; Self::LEN],
}

impl OwnerToken {
    pub(crate) const LEN: usize = Hyphenated::LENGTH + 1 + Simple::LENGTH;

    pub(crate) fn new(manager: ManagerId) -> Self {
        let mut text = [b'@'; Self::LEN];
        let (attempt, rest) = text.split_at_mut(Hyphenated::LENGTH);
        Uuid::now_v7().hyphenated().encode_lower(attempt);
        if let Some((_, id)) = rest.split_first_mut() {
            manager.0.simple().encode_lower(id);
        }
        Self { text }
    }

    /// The token as it stands in Redis.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Hexadecimal digits, hyphens and the at sign.
        std::str::from_utf8(&self.text).unwrap_or_default()
    }
}

impl fmt::Display for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnerToken({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_unique_and_sort_by_time() {
        let manager = ManagerId::random();
        let tokens: Vec<_> = (0..10_000).map(|_| OwnerToken::new(manager)).collect();
        assert!(tokens.is_sorted_by(|a, b| a.as_str() < b.as_str()), "byte order is the order of creation");
    }

    #[test]
    fn a_token_names_its_manager() {
        let manager = ManagerId::random();
        let token = OwnerToken::new(manager);
        assert_eq!(token.as_str().split_once('@').unwrap().1, manager.to_string());
    }
}
