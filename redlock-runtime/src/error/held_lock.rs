//! Lock of a caller that its nested call would wait for.

use crate::error::source_line::SourceLine;
use crate::lock::LockKey;
use crate::observe::{RedactedKey, Redaction};
use std::fmt;

/// Lock of the caller of a nested call, in a [`LockError::WouldDeadlock`](crate::LockError::WouldDeadlock).
///
/// `Display` writes the rest of a sentence that begins with the requested key, with the remedy. There are six kinds:
///
/// | the caller holds | the nested call | remedy |
/// |---|---|---|
/// | the same lock | is not [reentrant](crate::LockRequest::reentrant), and would wait for its own caller | Make the nested call reentrant, or move the common code into a function without the lock. |
/// | a part of the requested keys | is reentrant, and needs more keys | Lock all of them in the outer call. |
/// | a [path](crate::LockRequest::path) below the requested path | needs the upper path, reentrant or not | Lock the upper path in the outer call. |
/// | the same lock, shared | needs it exclusively, reentrant or not | Take the exclusive lock in the outer call, and [`downgrade`](crate::LockGuard::downgrade) it. |
/// | the same lock, by another manager of the same servers | would wait for its own caller, reentrant or not | Use one manager for both calls. |
/// | another lock ([`key`](Self::key)) | takes its lock in an order that contradicts other calls, and the manager has [`OrderCheck::Deny`](crate::OrderCheck::Deny) | Use one order everywhere, or call [`without_order_check`](crate::LockRequest::without_order_check) if the calls never run at the same time. |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLock {
    key: LockKey,
    taken_at: SourceLine,
    asked_at: SourceLine,
    why: Why,
    /// Part of the request that the caller holds, if it does not hold all of it.
    part: Option<LockKey>,
}

/// Reason for a call to wait for its own caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// The call needs the same lock, and is not reentrant.
    Same,
    /// The reentrant call needs more than its caller holds.
    More,
    /// The caller shares the lock that the call needs exclusively.
    Upgrade,
    /// The caller holds a path below the requested path.
    Below,
    /// The caller holds the same lock with another manager.
    OtherManager,
    /// Other calls have taken these steps, from the requested lock to the held lock.
    Order(Box<[OrderStep]>),
}

/// Step of a lock order: a lock was requested while another lock was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OrderStep {
    pub(crate) taken_at: SourceLine,
    pub(crate) asked_at: SourceLine,
}

impl fmt::Display for OrderStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {} while the lock of {} is held", self.asked_at, self.taken_at)
    }
}

impl HeldLock {
    pub(crate) const fn new(key: LockKey, taken_at: SourceLine, asked_at: SourceLine, why: Why) -> Self {
        Self { key, taken_at, asked_at, why, part: None }
    }

    /// Limits the message to one `part` of the request.
    pub(crate) fn of_part(self, part: LockKey) -> Self {
        Self { part: Some(part), ..self }
    }

    /// Returns `true` if the call requested another lock than its caller holds.
    pub(crate) const fn is_about_order(&self) -> bool {
        matches!(self.why, Why::Order(_))
    }

    /// Returns a copy with redacted keys, if redaction is on.
    pub(crate) fn told(&self, redaction: Redaction) -> Self {
        let told = |key: &LockKey| RedactedKey::new(key, redaction).into_key();
        Self { key: told(&self.key), part: self.part.as_ref().map(told), ..self.clone() }
    }

    /// Returns the key that the caller holds.
    #[must_use]
    pub const fn key(&self) -> &LockKey {
        &self.key
    }

    /// Returns the line at which the caller acquired it.
    #[must_use]
    pub const fn acquire_line(&self) -> SourceLine {
        self.taken_at
    }

    /// Returns the line of the call that would wait for the caller.
    #[must_use]
    pub const fn request_line(&self) -> SourceLine {
        self.asked_at
    }
}

/// Rest of a sentence that begins with the requested key.
impl fmt::Display for HeldLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, taken_at, asked_at, why, part } = self;
        if let Some(part) = part {
            write!(f, "needs {}, which ", part.quoted())?;
        }
        match why {
            Why::Same => write!(
                f,
                "is held by the call at {taken_at}, and the nested call at {asked_at} would wait for its own caller: \
                 make the nested call `reentrant`, or move the common code into a function without the lock"
            ),
            Why::More => write!(
                f,
                "is held by the call at {taken_at}, and the nested call at {asked_at} needs more than the outer call \
                 holds: take all of it in the outer call, or nothing that the nested call needs"
            ),
            Why::Below => write!(
                f,
                "is above {}, which is held by the call at {taken_at}, and the nested call at {asked_at} would wait \
                 for its own caller: lock the upper path in the outer call",
                key.quoted()
            ),
            Why::Upgrade => write!(
                f,
                "is shared by the call at {taken_at}, and the nested call at {asked_at} needs it exclusively and \
                 would wait for its own caller: take the exclusive lock in the outer call, and `downgrade` it to \
                 admit readers"
            ),
            Why::OtherManager => write!(
                f,
                "is held by the call at {taken_at} with another manager of the same servers, and the nested call at \
                 {asked_at} would wait for its own caller: use one manager for both"
            ),
            Why::Order(steps) => {
                write!(
                    f,
                    "is requested at {asked_at} while the lock of {taken_at} ({}) is held, and elsewhere in the \
                     opposite order: ",
                    key.quoted()
                )?;
                for (n, step) in steps.iter().enumerate() {
                    write!(f, "{}{step}", if n == 0 { "" } else { ", then " })?;
                }
                f.write_str(
                    ". Such calls can wait for each other: use one order everywhere, or write `order_check = off`, in \
                     code `without_order_check()`, if they never run at the same time",
                )
            }
        }
    }
}
