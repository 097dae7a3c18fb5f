//! What nothing can be locked by, and which value made it so.

use std::borrow::Cow;
use std::fmt;

/// Why nothing can be locked by a key or a path: it, or a value in it, is empty, too long or no place.
///
/// [`LockKey::check`](crate::LockKey::check) and [`LockPath::check`](crate::LockPath::check) tell it before a call, and
/// [`LockError::InvalidKey`](crate::LockError::InvalidKey) is what a call says, before anything was sent.
///
/// `Display` is for the log: it shows the text that was refused, and what to write instead. Whoever has sent a value is told the
/// [`reason`](Self::reason), which shows nothing, and the [`placeholder`](Self::placeholder).
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

/// What is wrong with a key or a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Empty,
    TooLong,
    /// Something beside a lock has that name.
    Reserved,
    /// It is the display text of several keys.
    Several,
    TooManyParts,
    NoSlash,
    Root,
    EmptySegment,
    Dots,
    TooManySegments,
}

/// Which segment of a path is wrong, from 0 on, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) index: usize,
    pub(crate) count: usize,
}

impl InvalidKey {
    /// What is wrong with it, and what to write instead.
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

    /// The value of this placeholder is to blame, which stands for one segment or for several.
    pub(crate) fn of(self, placeholder: &'static str, is_subpath: bool) -> Self {
        let reason = match self.reason {
            Reason::EmptySegment | Reason::Root if !is_subpath => Reason::Empty,
            reason => reason,
        };
        Self { placeholder: Some(placeholder), reason, ..self }
    }

    /// The same without the text that was refused.
    pub(crate) fn untold(&self, instead: &'static str) -> Self {
        Self { message: instead.into(), ..self.clone() }
    }

    /// The placeholder of the attribute whose value is to blame, as `dir` of `{dir:/}`. `None` for a call by hand, and where it
    /// cannot be told, as of several values that are too long together.
    #[must_use]
    pub const fn placeholder(&self) -> Option<&'static str> {
        self.placeholder
    }

    /// What is wrong, as the end of a sentence that begins with the value, such as `is empty`. It is fit for whoever has sent the
    /// value.
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
