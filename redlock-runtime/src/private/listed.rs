//! Elements of the list of an attribute: keys and paths, each with an optional mode.

use crate::{LockKey, LockPart, LockPath, Mode};
use std::fmt;

/// Key or path of an attribute.
#[derive(Debug)]
#[must_use = "it says what to lock"]
pub struct Listed(pub(super) LockPart);

/// Formats a key immediately, as `acquire` does.
pub fn key(key: fmt::Arguments<'_>) -> Listed {
    Listed(LockPart::key(LockKey::from_template(key.to_string())))
}

/// Formats a path whose segments are encoded.
pub fn path(path: fmt::Arguments<'_>) -> Listed {
    Listed(LockPart::path(LockPath::encoded(path.to_string())))
}

impl Listed {
    /// Sets the mode of `shared("..")`.
    pub fn shared(self) -> Self {
        Self(self.0.mode(Mode::Shared))
    }

    /// Sets the mode of `exclusive("..")`.
    pub fn exclusive(self) -> Self {
        Self(self.0.mode(Mode::Exclusive))
    }
}
