//! Lock errors to test with: what a program makes of each of them.
//!
//! The variants of [`LockError`] are not to be written by hand, because they may get more fields. These functions make one of each
//! kind, with whatever a program may look at.
//!
//! # Examples
//! ```
//! use redlock_runtime::LockError;
//! use redlock_runtime::testing::errors;
//! use std::time::Duration;
//!
//! fn retry_after(error: &LockError) -> Option<u64> {
//!     error.is_transient().then(|| error.retry_after().map_or(1, |time| time.as_secs()))
//! }
//!
//! assert_eq!(retry_after(&errors::contended("order:7", Some(Duration::from_secs(20)))), Some(20));
//! assert_eq!(retry_after(&errors::no_quorum("order:7")), Some(1));
//! assert_eq!(retry_after(&errors::closed()), None);
//! ```

use crate::error::{HeldLock, LockError, LockHolder, LossCause, NodeError, NodeFailure, OrderStep, SourceLine, Why};
use crate::lock::invalid_key::Reason;
use crate::lock::owner_token::ManagerId;
use crate::lock::{InvalidKey, LockKey, OwnerToken};
use crate::time::clock::Clock;
use crate::time::token_clock::TokenClock;
use std::borrow::Cow;
use std::panic::Location;
use std::time::Duration;

/// [`LockError::Contended`]: another owner has the lock, and so much of its lease is left, if that is known.
#[must_use]
pub fn contended(key: impl Into<LockKey>, lease_left: Option<Duration>) -> LockError {
    LockError::Contended { key: key.into(), lease_left, holder: None }
}

/// [`LockError::TimedOut`]: another owner had the lock during the whole wait.
#[must_use]
pub fn timed_out(key: impl Into<LockKey>, waited: Duration, lease_left: Option<Duration>) -> LockError {
    LockError::TimedOut { key: key.into(), waited, lease_left, holder: None }
}

/// [`LockError::TooManyWaiting`]: `limit` calls of this process wait for the key already.
#[must_use]
pub fn too_many_waiting(key: impl Into<LockKey>, limit: usize) -> LockError {
    LockError::TooManyWaiting { key: key.into(), limit }
}

/// The same [`Contended`](LockError::Contended) or [`TimedOut`](LockError::TimedOut) error with a
/// [`holder`](LockError::holder); any other as it is.
#[must_use]
pub fn with_holder(error: LockError, token: OwnerToken) -> LockError {
    match error {
        LockError::Contended { key, lease_left, .. } => {
            LockError::Contended { key, lease_left, holder: Some(Box::new(LockHolder::new(token, None))) }
        }
        LockError::TimedOut { key, waited, lease_left, .. } => {
            LockError::TimedOut { key, waited, lease_left, holder: Some(Box::new(LockHolder::new(token, None))) }
        }
        other => other,
    }
}

/// A token of a manager that does not exist, made just now.
#[must_use]
pub fn token() -> OwnerToken {
    OwnerToken::new(ManagerId::random(), TokenClock::new(Clock::Boot).next())
}

/// [`LockError::WindowTaken`]: the window of that number is another call's.
#[must_use]
pub fn window_taken(key: impl Into<LockKey>, window: i64, ends_in: Duration) -> LockError {
    LockError::WindowTaken { key: key.into(), window, ends_in }
}

/// [`LockError::NoQuorum`]: the only server cannot be reached.
#[must_use]
pub fn no_quorum(key: impl Into<LockKey>) -> LockError {
    no_quorum_of(Some(key.into()), 1, [("test-1:6379", NodeError::Unreachable("Connection refused".into()))])
}

/// [`LockError::NoQuorum`] of so many `nodes`, a majority of which had to agree, and of which these have not, each by its
/// address and for a reason. Without a key it is that of [`ready`](crate::LockManager::ready).
#[must_use]
pub fn no_quorum_of<'n>(
    key: Option<LockKey>,
    nodes: usize,
    causes: impl IntoIterator<Item = (&'n str, NodeError)>,
) -> LockError {
    LockError::NoQuorum { key, needed: nodes / 2 + 1, nodes, causes: failures(causes) }
}

/// [`LockError::Refused`]: the only server answers with an error that does not pass, such as
/// `NOPERM this user has no permissions to run the 'evalsha' command`.
#[must_use]
pub fn refused(key: impl Into<LockKey>, answer: &str) -> LockError {
    refused_of(Some(key.into()), 1, [("test-1:6379", NodeError::Refused(answer.into()))])
}

/// [`LockError::Refused`] of so many `nodes`, with causes as in [`no_quorum_of`].
#[must_use]
pub fn refused_of<'n>(
    key: Option<LockKey>,
    nodes: usize,
    causes: impl IntoIterator<Item = (&'n str, NodeError)>,
) -> LockError {
    LockError::Refused { key, needed: nodes / 2 + 1, nodes, causes: failures(causes) }
}

/// [`LockError::Lost`]: the lock was held for so long, and is not any more. For [`NotRenewed`](LossCause::NotRenewed), there is
/// [`not_renewed`].
#[must_use]
pub fn lost(key: impl Into<LockKey>, held_for: Duration, cause: LossCause) -> LockError {
    LockError::Lost { key: key.into(), held_for, cause }
}

/// [`LossCause::NotRenewed`], with one cause for each server that has not renewed the lock.
#[must_use]
pub fn not_renewed<'n>(causes: impl IntoIterator<Item = (&'n str, NodeError)>) -> LossCause {
    LossCause::NotRenewed { causes: failures(causes) }
}

/// [`LossCause::Revoked`]: an operator has broken the lock with the token `by`, for example that of another guard.
#[must_use]
pub fn revoked(by: OwnerToken) -> LossCause {
    LossCause::Revoked { by: Box::new(by) }
}

/// [`LockError::WouldDeadlock`]: the body of a call asks for the lock of its own call. Both lines are the one that calls this.
#[track_caller]
#[must_use]
pub fn would_deadlock(key: impl Into<LockKey>) -> LockError {
    let (key, line) = (key.into(), SourceLine::from(Location::caller()));
    LockError::WouldDeadlock { held: Box::new(HeldLock::new(key.clone(), line, line, Why::Same)), key }
}

/// [`LockError::WouldDeadlock`] by [`OrderCheck::Deny`](crate::OrderCheck::Deny): `key` is asked for in the lock of `held`, and
/// elsewhere it is the other way round. All lines are the one that calls this.
#[track_caller]
#[must_use]
pub fn wrong_order(key: impl Into<LockKey>, held: impl Into<LockKey>) -> LockError {
    let line = SourceLine::from(Location::caller());
    let why = Why::Order(Box::new([OrderStep { taken_at: line, asked_at: line }]));
    LockError::WouldDeadlock { key: key.into(), held: Box::new(HeldLock::new(held.into(), line, line, why)) }
}

/// [`LockError::InvalidKey`]: the value of this placeholder is empty. That of a text which
/// [`LockKey::check`] or [`LockPath::check`](crate::LockPath::check) refuses is made by `LockError::from`.
#[must_use]
pub fn invalid_key(placeholder: &'static str) -> LockError {
    let invalid = InvalidKey::new(Reason::Empty, "the key is empty: a lock needs a name, as in \"order:7\"");
    invalid.of(placeholder, false).into()
}

/// [`LockError::Configuration`], with this text.
#[must_use]
pub fn configuration(message: impl Into<Cow<'static, str>>) -> LockError {
    LockError::configuration(message)
}

/// [`LockError::NotInstalled`].
#[must_use]
pub const fn not_installed() -> LockError {
    LockError::NotInstalled
}

/// [`LockError::Closed`].
#[must_use]
pub const fn closed() -> LockError {
    LockError::Closed
}

fn failures<'n>(causes: impl IntoIterator<Item = (&'n str, NodeError)>) -> Box<[NodeFailure]> {
    causes.into_iter().map(|(node, error)| NodeFailure { node: node.into(), error }).collect()
}
