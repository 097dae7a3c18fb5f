//! Kinds of locks.

use redlock_runtime::LockRequest;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One key, exclusive. The other kinds are compared with this one.
    Exclusive,
    Shared,
    TwoKeys,
    /// A path of depth 3.
    Path,
}

impl Kind {
    /// Returns a request. Requests with different numbers have no key in common.
    pub(crate) fn request(self, number: usize) -> LockRequest {
        let key = format!("bench:{number}");
        match self {
            Self::Exclusive => LockRequest::new(key),
            Self::Shared => LockRequest::shared(key),
            Self::TwoKeys => LockRequest::all([format!("{key}:a"), format!("{key}:b")]),
            Self::Path => LockRequest::path(format!("/{key}/a/b")),
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Exclusive => "one key",
            Self::Shared => "one key, shared",
            Self::TwoKeys => "two keys",
            Self::Path => "a path of depth 3",
        }
    }
}
