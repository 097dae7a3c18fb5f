//! One of several things that a request wants.

use crate::lock::part::Part;
use crate::lock::{InvalidKey, LockKey, LockPath, Mode};

/// One of several things that a [`LockRequest::all`](crate::LockRequest::all) wants: a key or a path, in the mode of the request
/// or in one of its own.
///
/// A text is a key. Whatever takes a part takes a key or a [`LockPath`] as well.
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
    /// If it is not that of the request.
    mode: Option<Mode>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Key(LockKey),
    Path(LockPath),
}

impl LockPart {
    /// A key, in the mode of the request.
    pub fn key(key: impl Into<LockKey>) -> Self {
        Self { what: What::Key(key.into()), mode: None }
    }

    /// A place in a tree, in the mode of the request. [`LockRequest::path`](crate::LockRequest::path) says what it excludes.
    pub fn path(path: impl Into<LockPath>) -> Self {
        Self { what: What::Path(path.into()), mode: None }
    }

    /// A share of a key, whatever the rest of the request wants. The same as `LockPart::key(key).mode(Mode::Shared)`.
    pub fn shared(key: impl Into<LockKey>) -> Self {
        Self::key(key).mode(Mode::Shared)
    }

    /// Whether this part is for the call alone or shared with others, whatever the rest of the request wants.
    #[must_use]
    pub fn mode(self, mode: Mode) -> Self {
        Self { mode: Some(mode), ..self }
    }

    /// Whether it is a key, its mode, and its text.
    pub(super) fn written(&self) -> (bool, Mode, &str) {
        let mode = self.mode.unwrap_or_default();
        match &self.what {
            What::Key(key) => (true, mode, key.as_str()),
            What::Path(path) => (false, mode, path.as_str()),
        }
    }

    /// Whether it is a key, and not a place in a tree.
    pub(crate) const fn is_key(&self) -> bool {
        matches!(self.what, What::Key(_))
    }

    /// The name that stands for it alone, and not what is above.
    #[cfg(feature = "testing")]
    pub(crate) fn leaf(&self) -> LockKey {
        match &self.what {
            What::Key(key) => key.clone(),
            What::Path(path) => path.name(),
        }
    }

    /// Whether it is wanted as a permit, which is no mode of a part.
    pub(super) fn is_permit(&self) -> bool {
        self.mode.is_some_and(Mode::is_permit)
    }

    /// Whether it cannot be locked, in whatever namespace.
    pub(super) fn is_invalid(&self) -> bool {
        match &self.what {
            What::Key(key) => key.check().is_err(),
            What::Path(path) => path.check().is_err(),
        }
    }

    /// What it means at the nodes. `default` is the mode of the request.
    ///
    /// # Errors
    /// For a path that is none, and for a key that is too long.
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
