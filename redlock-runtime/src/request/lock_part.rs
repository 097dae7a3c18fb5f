//! Part of a request for several locks.

use crate::lock::part::Part;
use crate::lock::{InvalidKey, LockKey, LockPath, Mode};

/// Part of a [`LockRequest::all`](crate::LockRequest::all): a key or a path, in the mode of the request or in its own mode.
///
/// Methods that take a part also take a string or a [`LockKey`], for a key, or a [`LockPath`].
///
/// # Examples
/// ```
/// use redlock_runtime::{LockPart, LockRequest};
///
/// let request = LockRequest::all([LockPart::shared("config"), LockPart::path("/acme/reports"), "job:7".into()]);
/// # let _ = request;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockPart {
    what: What,
    /// `None`: the mode of the request.
    mode: Option<Mode>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Key(LockKey),
    Path(LockPath),
}

impl LockPart {
    /// Creates a part for a key, in the mode of the request.
    pub fn key(key: impl Into<LockKey>) -> Self {
        Self { what: What::Key(key.into()), mode: None }
    }

    /// Creates a part for a path, in the mode of the request. [`LockRequest::path`](crate::LockRequest::path) describes what a path
    /// excludes.
    pub fn path(path: impl Into<LockPath>) -> Self {
        Self { what: What::Path(path.into()), mode: None }
    }

    /// Creates a part for a shared lock of a key, whatever the mode of the request. Short for
    /// `LockPart::key(key).mode(Mode::Shared)`.
    pub fn shared(key: impl Into<LockKey>) -> Self {
        Self::key(key).mode(Mode::Shared)
    }

    /// Sets the mode of this part, whatever the mode of the request. [`Mode::Permit`] is not allowed here.
    #[must_use]
    pub fn mode(self, mode: Mode) -> Self {
        Self { mode: Some(mode), ..self }
    }

    /// Returns whether the part is a key, its mode, and its text.
    pub(super) fn written(&self) -> (bool, Mode, &str) {
        let mode = self.mode.unwrap_or_default();
        match &self.what {
            What::Key(key) => (true, mode, key.as_str()),
            What::Path(path) => (false, mode, path.as_str()),
        }
    }

    /// Returns `true` if the part is a key and not a path.
    pub(crate) const fn is_key(&self) -> bool {
        matches!(self.what, What::Key(_))
    }

    /// Returns the name of the key or path itself, without the parents of a path.
    #[cfg(feature = "testing")]
    pub(crate) fn leaf(&self) -> LockKey {
        match &self.what {
            What::Key(key) => key.clone(),
            What::Path(path) => path.name(),
        }
    }

    /// Returns `true` if the mode is `Permit`, which a part cannot have.
    pub(super) fn is_permit(&self) -> bool {
        self.mode.is_some_and(Mode::is_permit)
    }

    /// Returns `true` if the part is invalid in every namespace.
    pub(super) fn is_invalid(&self) -> bool {
        match &self.what {
            What::Key(key) => key.check().is_err(),
            What::Path(path) => path.check().is_err(),
        }
    }

    /// Returns the names that the part needs at the nodes. `default` is the mode of the request.
    ///
    /// # Errors
    /// [`InvalidKey`] for an invalid path, and for a key that is too long.
    pub(super) fn parts(&self, default: Mode) -> Result<Vec<Part>, InvalidKey> {
        let mode = self.mode.unwrap_or(default);
        match &self.what {
            What::Key(key) => {
                key.check_length()?;
                Ok(vec![Part::of(key.clone(), mode)])
            }
            What::Path(path) => {
                path.check()?;
                Ok(path.parts(mode).collect())
            }
        }
    }
}

impl<K: Into<LockKey>> From<K> for LockPart {
    fn from(key: K) -> Self {
        Self::key(key)
    }
}

impl From<LockPath> for LockPart {
    fn from(path: LockPath) -> Self {
        Self::path(path)
    }
}
