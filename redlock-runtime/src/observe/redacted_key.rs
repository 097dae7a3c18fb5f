//! Key in spans and events: its text, or a hash if keys are redacted.
//!
//! The manager of a call determines the redaction. The key itself cannot, because it may come from elsewhere, for example from a
//! node. So the functions of [`events`](super::events) take a [`RedactedKey`] instead of a key.
//!
//! A client may have chosen the key, with any characters in it. Unsafe ones are escaped ([`SingleLine`]).

use crate::lock::LockKey;
use crate::text::SingleLine;
use hmac_sha256::{HMAC, Hash as Sha256};
use std::fmt;
use std::sync::{PoisonError, RwLock};

/// Number of bytes of the hash that replaces a key. Too small: two keys of one service get the same hash. Too large: the hash is
/// hard to read.
const HASH_BYTES: usize = 6;

/// Representation of keys in spans, events and logs.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Redaction {
    /// Keys are shown.
    #[default]
    None,
    /// A hash replaces each key. It is the same in every process, and can be computed from a guessed key.
    Hash,
    /// A hash with a secret replaces each key. This is the SHA-256 of the secret, so that it has a fixed size.
    Keyed([u8; 32]),
}

impl Redaction {
    /// Hashes keys with `secret`.
    pub(crate) fn keyed(secret: &[u8]) -> Self {
        Self::Keyed(Sha256::hash(secret))
    }

    pub(crate) fn is_none(self) -> bool {
        self == Self::None
    }

    /// Returns the redaction that reveals less.
    const fn stronger(self, other: Self) -> Self {
        match (self, other) {
            (Self::Keyed(_), _) | (Self::Hash, Self::None | Self::Hash) | (Self::None, Self::None) => self,
            (Self::Hash, Self::Keyed(_)) | (Self::None, _) => other,
        }
    }

    /// Returns the hash of `text`.
    fn digest(self, text: &str) -> [u8; 32] {
        match self {
            Self::None | Self::Hash => Sha256::hash(text.as_bytes()),
            Self::Keyed(secret) => HMAC::mac(text.as_bytes(), secret.as_slice()),
        }
    }
}

impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Hash => "Hash",
            Self::Keyed(_) => "Keyed",
        })
    }
}

/// Strongest redaction of the managers of this process.
static OF_PROCESS: RwLock<Redaction> = RwLock::new(Redaction::None);

/// Records the `redaction` of a new manager.
pub(crate) fn redact(redaction: Redaction) {
    let mut of_process = OF_PROCESS.write().unwrap_or_else(PoisonError::into_inner);
    *of_process = of_process.stronger(redaction);
}

/// Returns the redaction for a key of an unknown manager.
#[cfg(any(feature = "actix-web", feature = "axum", feature = "tonic"))]
pub(crate) fn redaction_of_process() -> Redaction {
    *OF_PROCESS.read().unwrap_or_else(PoisonError::into_inner)
}

/// Key as it is shown: its text, or a hash if it is redacted.
#[derive(Clone, Copy)]
pub(crate) struct RedactedKey<'k> {
    key: &'k LockKey,
    redaction: Redaction,
}

impl<'k> RedactedKey<'k> {
    pub(crate) const fn new(key: &'k LockKey, redaction: Redaction) -> Self {
        Self { key, redaction }
    }

    pub(super) fn is_redacted(self) -> bool {
        !self.redaction.is_none()
    }

    /// Returns a key whose text is the representation.
    pub(crate) fn into_key(self) -> LockKey {
        if self.is_redacted() { self.to_string().into() } else { self.key.clone() }
    }
}

impl fmt::Display for RedactedKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_redacted() {
            return SingleLine(self.key).fmt(f);
        }
        let digest = self.redaction.digest(self.key.as_str());
        f.write_str("#")?;
        digest.iter().take(HASH_BYTES).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keyed_hash_needs_the_secret() {
        let key = LockKey::from("customer:4711");
        let told = |redaction| RedactedKey::new(&key, redaction).to_string();
        let secret = || Redaction::keyed(b"0123456789abcdef");
        assert_eq!(told(Redaction::None), "customer:4711");
        let all =
            [told(Redaction::Hash), told(secret()), told(Redaction::keyed(b"another")), told(Redaction::keyed(b""))];
        for (number, one) in all.iter().enumerate() {
            assert!(one.starts_with('#') && one.len() == 1 + 2 * HASH_BYTES, "{one}");
            assert!(!all[..number].contains(one), "{all:?}");
        }
        assert_eq!(told(secret()), told(secret()), "equal secrets have equal hashes");
        assert_eq!(format!("{:?}", secret()), "Keyed", "the secret is not shown");
    }

    #[test]
    fn strongest_redaction_of_a_process_is_kept() {
        let (none, hash, keyed) = (Redaction::None, Redaction::Hash, Redaction::keyed(b"secret"));
        let table = [
            (none, none, none),
            (none, hash, hash),
            (hash, none, hash),
            (hash, keyed, keyed),
            (keyed, hash, keyed),
            (keyed, none, keyed),
        ];
        for (one, other, expected) in table {
            assert_eq!(one.stronger(other), expected, "{one:?} {other:?}");
        }
    }
}
