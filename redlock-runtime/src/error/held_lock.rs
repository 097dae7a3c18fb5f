//! What keeps a call from a lock for as long as it waits: a lock of its own caller.

use crate::error::source_line::SourceLine;
use crate::lock::LockKey;
use crate::observe::{Redaction, ToldKey};
use std::fmt;

/// The lock of a caller that waits for the call, in a [`LockError::WouldDeadlock`](crate::LockError::WouldDeadlock).
///
/// `Display` says what follows the key that was asked for, with what to do. There are six kinds:
///
/// | the caller has | the call | what to do |
/// |---|---|---|
/// | the same lock | is not [reentrant](crate::LockRequest::reentrant), and would wait for its own caller | make it reentrant, or move what both need into a function without the lock |
/// | some of what is asked for | is reentrant, and wants more | take all of it in the outer call |
/// | a [path](crate::LockRequest::path) below the one that is asked for | wants the whole, reentrant or not | take the place above first |
/// | the same lock, as one of those who share it | wants it alone, reentrant or not | take the exclusive lock in the first place, and [`downgrade`](crate::LockGuard::downgrade) it |
/// | the same lock, by another manager of the same servers | would wait in vain, reentrant or not | use one manager for both |
/// | another lock, which [`key`](Self::key) names | asks for its own in an order that contradicts others, by [`OrderCheck::Deny`](crate::OrderCheck::Deny) | take both in one order everywhere, or say by `order_check` that it cannot happen |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLock {
    key: LockKey,
    taken_at: SourceLine,
    asked_at: SourceLine,
    why: Why,
    /// The part of what is asked for that the caller has, where it is only a part.
    part: Option<LockKey>,
}

/// Why a call would wait for its own caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// It wants the same lock, and not as a nested call.
    Same,
    /// As a nested call, it wants more than its caller has.
    More,
    /// Its caller shares the lock that it wants alone.
    Upgrade,
    /// Its caller has a place below the one that it wants.
    Below,
    /// Its caller has the same lock by another manager.
    OtherManager,
    /// These steps were taken elsewhere, the first from the lock that is asked for and the last to the one that is held.
    Order(Box<[OrderStep]>),
}

/// A lock that was asked for while another one was held.
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

    /// The same about one `part` of what is asked for.
    pub(crate) fn of_part(self, part: LockKey) -> Self {
        Self { part: Some(part), ..self }
    }

    /// Whether the call wants another lock than its caller holds.
    pub(crate) const fn is_about_order(&self) -> bool {
        matches!(self.why, Why::Order(_))
    }

    /// The same about what is told in place of the key, if that `is_redacted`.
    pub(crate) fn told(&self, redaction: Redaction) -> Self {
        let told = |key: &LockKey| ToldKey::new(key, redaction).into_key();
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
