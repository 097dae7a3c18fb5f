//! Lock errors for tests of error handling.
//!
//! A program cannot construct the variants of [`LockError`], because they are `#[non_exhaustive]`. These functions create an error of
//! each kind, with all fields that a program can read.
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

/// Returns a [`LockError::Contended`]: another owner holds the lock. `lease_left`: remaining lease of that owner, if known.
#[must_use]
pub fn contended(key: impl Into<LockKey>, lease_left: Option<Duration>) -> LockError {
    LockError::Contended { key: key.into(), lease_left, holder: None }
}

/// Returns a [`LockError::TimedOut`]: another owner held the lock for the whole wait.
#[must_use]
pub fn timed_out(key: impl Into<LockKey>, waited: Duration, lease_left: Option<Duration>) -> LockError {
    LockError::TimedOut { key: key.into(), waited, lease_left, holder: None }
}

/// Returns a [`LockError::TooManyWaiting`]: `limit` calls of this process already wait for the key.
#[must_use]
pub fn too_many_waiting(key: impl Into<LockKey>, limit: usize) -> LockError {
    LockError::TooManyWaiting { key: key.into(), limit }
}

/// Sets the [`holder`](LockError::holder) of a [`Contended`](LockError::Contended) or [`TimedOut`](LockError::TimedOut) error.
/// Returns any other error unchanged.
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

/// Returns a new token of a manager that does not exist.
#[must_use]
pub fn token() -> OwnerToken {
    OwnerToken::new(ManagerId::random(), TokenClock::new(Clock::Boot).next())
}

/// Returns a [`LockError::WindowTaken`]: another call has taken the window with this number.
#[must_use]
pub fn window_taken(key: impl Into<LockKey>, window: i64, ends_in: Duration) -> LockError {
    LockError::WindowTaken { key: key.into(), window, ends_in }
}

/// Returns a [`LockError::NoQuorum`]: the only server cannot be reached.
#[must_use]
pub fn no_quorum(key: impl Into<LockKey>) -> LockError {
    no_quorum_of(Some(key.into()), 1, [("test-1:6379", NodeError::Unreachable("Connection refused".into()))])
}

/// Returns a [`LockError::NoQuorum`] for the given number of `nodes`, of which a majority had to agree. `causes`: address and error
/// of each node that did not agree. Without a key, it is an error of [`ready`](crate::LockManager::ready).
#[must_use]
pub fn no_quorum_of<'n>(
    key: Option<LockKey>,
    nodes: usize,
    causes: impl IntoIterator<Item = (&'n str, NodeError)>,
) -> LockError {
    LockError::NoQuorum { key, needed: nodes / 2 + 1, nodes, causes: failures(causes) }
}

/// Returns a [`LockError::Refused`]: the only server answers with a permanent error, such as `NOPERM this user has no permissions
/// to run the 'evalsha' command`.
#[must_use]
pub fn refused(key: impl Into<LockKey>, answer: &str) -> LockError {
    refused_of(Some(key.into()), 1, [("test-1:6379", NodeError::Refused(answer.into()))])
}

/// Returns a [`LockError::Refused`] for the given number of `nodes`, with `causes` as in [`no_quorum_of`].
#[must_use]
pub fn refused_of<'n>(
    key: Option<LockKey>,
    nodes: usize,
    causes: impl IntoIterator<Item = (&'n str, NodeError)>,
) -> LockError {
    LockError::Refused { key, needed: nodes / 2 + 1, nodes, causes: failures(causes) }
}

/// Returns a [`LockError::Lost`]: the lock was lost after `held_for`. [`not_renewed`] creates the cause
/// [`NotRenewed`](LossCause::NotRenewed).
#[must_use]
pub fn lost(key: impl Into<LockKey>, held_for: Duration, cause: LossCause) -> LockError {
    LockError::Lost { key: key.into(), held_for, cause }
}

/// Returns a [`LossCause::NotRenewed`], with one cause for each server that did not renew the lock.
#[must_use]
pub fn not_renewed<'n>(causes: impl IntoIterator<Item = (&'n str, NodeError)>) -> LossCause {
    LossCause::NotRenewed { causes: failures(causes) }
}

/// Returns a [`LossCause::Revoked`]: an operator has broken the lock with the token `by`, for example the token of another guard.
#[must_use]
pub fn revoked(by: OwnerToken) -> LossCause {
    LossCause::Revoked { by: Box::new(by) }
}

/// Returns a [`LockError::WouldDeadlock`]: a nested call needs the lock of its own caller. Both lines are the line that calls this
/// function.
#[track_caller]
#[must_use]
pub fn would_deadlock(key: impl Into<LockKey>) -> LockError {
    let (key, line) = (key.into(), SourceLine::from(Location::caller()));
    LockError::WouldDeadlock { held: Box::new(HeldLock::new(key.clone(), line, line, Why::Same)), key }
}

/// Returns a [`LockError::WouldDeadlock`] by [`OrderCheck::Deny`](crate::OrderCheck::Deny): `key` is requested while `held` is
/// held, and elsewhere in the opposite order. All lines are the line that calls this function.
#[track_caller]
#[must_use]
pub fn wrong_order(key: impl Into<LockKey>, held: impl Into<LockKey>) -> LockError {
    let line = SourceLine::from(Location::caller());
    let why = Why::Order(Box::new([OrderStep { taken_at: line, asked_at: line }]));
    LockError::WouldDeadlock { key: key.into(), held: Box::new(HeldLock::new(held.into(), line, line, why)) }
}

/// Returns a [`LockError::InvalidKey`]: the value of this placeholder is empty. For another fault, convert the error of
/// [`LockKey::check`] or [`LockPath::check`](crate::LockPath::check) with `LockError::from`.
#[must_use]
pub fn invalid_key(placeholder: &'static str) -> LockError {
    let invalid = InvalidKey::new(Reason::Empty, "the key is empty: a lock needs a name, as in \"order:7\"");
    invalid.of(placeholder, false).into()
}

/// Returns a [`LockError::Configuration`] with this text.
#[must_use]
pub fn configuration(message: impl Into<Cow<'static, str>>) -> LockError {
    LockError::configuration(message)
}

/// Returns a [`LockError::NotInstalled`].
#[must_use]
pub const fn not_installed() -> LockError {
    LockError::NotInstalled
}

/// Returns a [`LockError::Closed`].
#[must_use]
pub const fn closed() -> LockError {
    LockError::Closed
}

fn failures<'n>(causes: impl IntoIterator<Item = (&'n str, NodeError)>) -> Box<[NodeFailure]> {
    causes.into_iter().map(|(node, error)| NodeFailure { node: node.into(), error }).collect()
}
