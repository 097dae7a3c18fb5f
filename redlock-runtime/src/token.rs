//! Owner tokens: who holds a lock.

use std::fmt;
use std::sync::Arc;
use uuid::Uuid;

/// Names one manager of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ManagerId(Arc<str>);

impl ManagerId {
    pub(crate) fn random() -> Self {
        Self(Uuid::now_v7().simple().to_string().into())
    }
}

impl fmt::Display for ManagerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who holds a lock: unique per attempt to acquire it, and never used again after its release.
///
/// The text is `<uuidv7>@<manager id>`. It starts with the time, so that tokens sort in the order of the attempts, and
/// it ends with the id of the manager, so that whoever meets a token in Redis can tell whose it is.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct OwnerToken(Arc<str>);

impl OwnerToken {
    pub(crate) fn new(manager: &ManagerId) -> Self {
        let mut text = String::with_capacity(uuid::fmt::Hyphenated::LENGTH + 1 + manager.0.len());
        text.push_str(Uuid::now_v7().hyphenated().encode_lower(&mut Uuid::encode_buffer()));
        text.push('@');
        text.push_str(&manager.0);
        Self(text.into())
    }

    /// The token as it stands in Redis.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnerToken({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_unique_and_sort_by_time() {
        let manager = ManagerId::random();
        let tokens: Vec<_> = (0..10_000).map(|_| OwnerToken::new(&manager)).collect();
        assert!(tokens.is_sorted_by(|a, b| a.as_str() < b.as_str()), "byte order is the order of creation");
    }

    #[test]
    fn a_token_names_its_manager() {
        let manager = ManagerId::random();
        let token = OwnerToken::new(&manager);
        assert_eq!(token.as_str().split_once('@').unwrap().1, manager.to_string());
    }
}
