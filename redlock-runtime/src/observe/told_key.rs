//! A key as it is told: its text, or a hash where keys are kept from whoever observes the process.
//!
//! Whether they are is known to whoever tells, and not to the key: a key that came from elsewhere, as from a node, would not
//! know. So the functions of [`events`](super::events) take a [`ToldKey`], and no key.
//!
//! A client may have chosen the key, with any characters in it. Unsafe ones are escaped ([`SingleLine`]).

use crate::lock::LockKey;
use crate::text::SingleLine;
use hmac_sha256::Hash as Sha256;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// So many bytes of the hash stand for a key that is not told. Fewer, and two keys of one service look like one; more, and it is
/// harder to read.
const HASH_BYTES: usize = 6;

/// Whether any manager of this process does not tell keys.
static IS_ANY_REDACTED: AtomicBool = AtomicBool::new(false);

/// A manager does not tell keys.
pub(crate) fn redact() {
    IS_ANY_REDACTED.store(true, Ordering::Relaxed);
}

/// Whether whoever does not know of which manager a key is may not tell it.
#[cfg(any(feature = "axum", feature = "tonic"))]
pub(crate) fn is_any_redacted() -> bool {
    IS_ANY_REDACTED.load(Ordering::Relaxed)
}

/// What is told in the place of a key: the key, or a hash if it `is_redacted`. The hash is the same in every process; whoever
/// can guess the key can compare it.
#[derive(Clone, Copy)]
pub(crate) struct ToldKey<'k> {
    key: &'k LockKey,
    is_redacted: bool,
}

impl<'k> ToldKey<'k> {
    pub(crate) const fn new(key: &'k LockKey, is_redacted: bool) -> Self {
        Self { key, is_redacted }
    }

    pub(super) const fn is_redacted(self) -> bool {
        self.is_redacted
    }

    /// A key that consists of what is told.
    pub(crate) fn into_key(self) -> LockKey {
        if self.is_redacted { self.to_string().into() } else { self.key.clone() }
    }
}

impl fmt::Display for ToldKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_redacted {
            return SingleLine(self.key).fmt(f);
        }
        let digest = Sha256::hash(self.key.as_str().as_bytes());
        f.write_str("#")?;
        digest.iter().take(HASH_BYTES).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
