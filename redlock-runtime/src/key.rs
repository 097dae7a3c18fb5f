//! Lock keys: what is locked.

use crate::error::LockError;
use std::fmt;
use std::sync::Arc;

/// What is locked: the text under which the lock stands in Redis, after the manager's namespace.
///
/// Any text from 1 to [`LockKey::MAX_LEN`] bytes is a key. It is checked when a lock is acquired, so that a key can be
/// made anywhere without an error path. A key names the same thing to every manager: the namespace is the manager's.
///
/// # Examples
/// ```
/// use redlock_runtime::LockKey;
///
/// assert_eq!(LockKey::from("order:7").as_str(), "order:7");
/// ```
#[derive(Clone)]
pub struct LockKey {
    /// The name in Redis: the namespace, then the key.
    name: Arc<str>,
    /// Where the key starts in `name`.
    start: usize,
}

impl LockKey {
    /// The longest key, in bytes: 1024. Every waiting caller repeats the key in its commands, so a key is a name and
    /// not a document.
    pub const MAX_LEN: usize = 1024;

    /// The key without the namespace.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.name.get(self.start..).unwrap_or_default()
    }

    /// The name in Redis.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The same key below `namespace`, which is empty or ends in its separator.
    pub(crate) fn below(self, namespace: &str) -> Self {
        if namespace.is_empty() && self.start == 0 {
            return self;
        }
        Self { name: [namespace, self.as_str()].concat().into(), start: namespace.len() }
    }

    /// # Errors
    /// [`LockError::Configuration`] for an empty key and for one that is too long.
    pub(crate) fn check(&self) -> Result<(), LockError> {
        match self.as_str().len() {
            0 => Err(LockError::configuration("the key is empty: a lock needs a name, as in \"order:7\"")),
            length if length > Self::MAX_LEN => Err(LockError::configuration(format!(
                "the key is {length} bytes long and at most {} are allowed: name the thing, or a digest of it",
                Self::MAX_LEN
            ))),
            _ => Ok(()),
        }
    }
}

impl From<&str> for LockKey {
    fn from(key: &str) -> Self {
        Self { name: key.into(), start: 0 }
    }
}

impl From<String> for LockKey {
    fn from(key: String) -> Self {
        Self { name: key.into(), start: 0 }
    }
}

impl From<&String> for LockKey {
    fn from(key: &String) -> Self {
        key.as_str().into()
    }
}

impl PartialEq for LockKey {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for LockKey {}

impl fmt::Display for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LockKey({:?})", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_changes_the_name_and_not_the_key() {
        let key = LockKey::from("order:7").below("shop:");
        assert_eq!((key.name(), key.as_str()), ("shop:order:7", "order:7"));
        assert_eq!(key, LockKey::from("order:7"));
        assert_eq!(LockKey::from("a").below("").name(), "a");
    }

    #[test]
    fn a_key_means_the_same_to_every_manager_whatever_namespace_it_comes_from() {
        let key = LockKey::from("order:7").below("shop:");
        assert_eq!(key.clone().below("").name(), "order:7");
        assert_eq!(key.clone().below("shop:").name(), "shop:order:7");
        assert_eq!(key.below("bank:").name(), "bank:order:7");
    }

    #[test]
    fn keys_are_bounded() {
        assert!(LockKey::from("").check().is_err());
        assert!(LockKey::from("k".repeat(LockKey::MAX_LEN)).below("ns:").check().is_ok());
        let error = LockKey::from("k".repeat(10 * 1024)).check().unwrap_err();
        assert!(error.to_string().contains("10240 bytes"), "{error}");
    }
}
