//! Error for a key that cannot be locked, and the placeholder value that caused it.

use std::borrow::Cow;
use std::fmt;

/// Error for a key or path that cannot be locked: the text, or a value in it, is empty, too long or not a valid path.
///
/// [`LockKey::check`](crate::LockKey::check) and [`LockPath::check`](crate::LockPath::check) return it without a lock. A call returns
/// it in [`LockError::InvalidKey`](crate::LockError::InvalidKey), before it sends a command.
///
/// Log the `Display` text: it shows the rejected text and the remedy. Send the [`reason`](Self::reason) and the
/// [`placeholder`](Self::placeholder) to the client that sent the value: they do not repeat the value.
///
/// # Examples
/// ```
/// # #[cfg(feature = "macros")]
/// # mod program {
/// use redlock_runtime::{LockError, LockManager, distributed_lock};
///
/// #[distributed_lock(path = "/{tenant}/{dir:/}")]
/// async fn store(tenant: &str, dir: &str) -> Result<(), LockError> {
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread")] pub async fn main() -> Result<(), LockError> {
/// LockManager::in_memory().install()?;
/// let error = store("acme", "in/../out").await.unwrap_err();
/// let LockError::InvalidKey { cause, .. } = &error else { return Err(error) };
/// assert_eq!((cause.placeholder(), cause.reason()), (Some("dir"), "has the segment `.` or `..`"));
/// # Ok(()) }
/// # }
/// # #[cfg(feature = "macros")]
/// # fn main() { program::main().unwrap() }
/// # #[cfg(not(feature = "macros"))]
/// # fn main() {}
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidKey {
    message: Cow<'static, str>,
    reason: Reason,
    segment: Option<Segment>,
    placeholder: Option<&'static str>,
}

/// Fault of a key or path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Empty,
    TooLong,
    /// The name is reserved for an internal key of a lock.
    Reserved,
    /// The text is the display text of several keys.
    Several,
    TooManyParts,
    NoSlash,
    Root,
    EmptySegment,
    Dots,
    TooManySegments,
}

/// Index of the wrong segment of a path, from 0, and the number of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) index: usize,
    pub(crate) count: usize,
}

impl InvalidKey {
    /// Creates the error. `message`: fault and remedy.
    pub(crate) fn new(reason: Reason, message: impl Into<Cow<'static, str>>) -> Self {
        Self { message: message.into(), reason, segment: None, placeholder: None }
    }

    pub(crate) fn in_segment(self, segment: Segment) -> Self {
        Self { segment: Some(segment), ..self }
    }

    pub(crate) const fn kind(&self) -> Reason {
        self.reason
    }

    pub(crate) const fn segment(&self) -> Option<Segment> {
        self.segment
    }

    /// Adds the placeholder whose value is the cause. `is_subpath`: the placeholder can be several segments.
    pub(crate) fn of(self, placeholder: &'static str, is_subpath: bool) -> Self {
        let reason = match self.reason {
            Reason::EmptySegment | Reason::Root if !is_subpath => Reason::Empty,
            reason => reason,
        };
        Self { placeholder: Some(placeholder), reason, ..self }
    }

    /// Returns a copy without the rejected text.
    pub(crate) fn untold(&self, instead: &'static str) -> Self {
        Self { message: instead.into(), ..self.clone() }
    }

    /// Returns the placeholder of the attribute whose value is the cause, such as `dir` for `{dir:/}`.
    ///
    /// `None` for a call without the attribute, and if no single value is the cause: several values can be too long together.
    #[must_use]
    pub const fn placeholder(&self) -> Option<&'static str> {
        self.placeholder
    }

    /// Returns the fault as the end of a sentence that begins with the value, such as `is empty`. The text does not repeat the value,
    /// so it can be sent to the client.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self.reason {
            Reason::Empty => "is empty",
            Reason::TooLong => "is too long",
            Reason::Reserved => "is reserved",
            Reason::Several => "is not a single key",
            Reason::TooManyParts => "has too many parts",
            Reason::NoSlash => "does not begin with `/`",
            Reason::Root => "has no segment",
            Reason::EmptySegment => "has an empty segment",
            Reason::Dots => "has the segment `.` or `..`",
            Reason::TooManySegments => "has too many segments",
        }
    }
}

impl fmt::Display for InvalidKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match self.placeholder {
            Some(placeholder) => write!(f, "; the cause is the value of `{{{placeholder}}}`"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for InvalidKey {}
