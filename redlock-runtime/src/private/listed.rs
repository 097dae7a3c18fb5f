//! What stands in the list of an attribute: keys and paths, each with a mode of its own or without.

use crate::{LockKey, LockPart, LockPath, Mode};
use std::fmt;

/// A key or a path of an attribute.
#[derive(Debug)]
#[must_use = "it says what to lock"]
pub struct Listed(pub(super) LockPart);

/// A key. It is formatted at once, as for `acquire`.
pub fn key(key: fmt::Arguments<'_>) -> Listed {
    Listed(LockPart::key(LockKey::from_template(key.to_string())))
}

/// A path, with its segments encoded.
pub fn path(path: fmt::Arguments<'_>) -> Listed {
    Listed(LockPart::path(LockPath::encoded(path.to_string())))
}

impl Listed {
    /// `shared("..")`
    pub fn shared(self) -> Self {
        Self(self.0.mode(Mode::Shared))
    }

    /// `exclusive("..")`
    pub fn exclusive(self) -> Self {
        Self(self.0.mode(Mode::Exclusive))
    }
}
