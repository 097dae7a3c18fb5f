//! Classes of errors for clients of a service.
//!
//! A response names the class only: no key, no node, no internal setting. The log contains the full error.

use super::lock_error::LockError;
use crate::observe::{events, redaction_of_process};

/// Outcome of a request, as far as its client can distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PublicError {
    /// Another request holds the lock. A later retry may succeed.
    Busy,
    /// Another request has run the job of this window, or is running it. There is nothing to do.
    Done,
    /// Servers are unavailable or this process is stopping. A later retry, or a retry at another process, may succeed.
    Unavailable,
    /// The request contains a value that can never be locked.
    Invalid,
    /// The body was stopped halfway. A blind retry would be wrong.
    Interrupted,
    /// A retry fails again until an operator changes the service.
    Broken,
}

impl PublicError {
    /// Returns the class of `error`.
    pub(super) const fn kind_of_error(error: &LockError) -> Self {
        match error {
            LockError::Contended { .. } | LockError::TimedOut { .. } | LockError::TooManyWaiting { .. } => Self::Busy,
            LockError::WindowTaken { .. } => Self::Done,
            LockError::NoQuorum { .. } | LockError::Closed => Self::Unavailable,
            LockError::Lost { .. } => Self::Interrupted,
            LockError::InvalidKey { .. } => Self::Invalid,
            LockError::Refused { .. }
            | LockError::WouldDeadlock { .. }
            | LockError::Configuration { .. }
            | LockError::NotInstalled => Self::Broken,
        }
    }

    /// Returns the class of `error`, and logs the error unless another request has caused it.
    pub(super) fn of(error: &LockError) -> Self {
        let public_error = Self::kind_of_error(error);
        // The error does not name its manager, so the redaction of the whole process applies.
        let told = || error.told(redaction_of_process());
        match public_error {
            Self::Busy | Self::Done => {}
            Self::Invalid => events::request_invalid(told()),
            // The cause passes by itself: an orderly shutdown, or servers that come back.
            Self::Unavailable => events::request_unavailable(told()),
            Self::Interrupted | Self::Broken => events::request_broken(told()),
        }
        public_error
    }

    /// Returns the text of the response.
    pub(super) const fn message(self) -> &'static str {
        match self {
            Self::Busy => "another request is working on this: try again later",
            Self::Done => "another request has already done this or is doing it",
            Self::Unavailable => "this cannot be done at the moment: try again later",
            Self::Invalid => "a part of this is empty, too long or not allowed",
            Self::Interrupted => "this was stopped midway: check what was done before you try again",
            Self::Broken => "this cannot be done, and trying again will not help",
        }
    }
}

#[cfg(any(feature = "actix-web", feature = "axum"))]
impl PublicError {
    /// Returns the HTTP status.
    pub(super) const fn status(self) -> u16 {
        match self {
            Self::Busy | Self::Done => 409,
            Self::Invalid => 400,
            Self::Unavailable => 503,
            Self::Interrupted | Self::Broken => 500,
        }
    }
}

/// Longest `Retry-After` for a held lock, in seconds. Too small: clients retry too early. Too large: a client waits for the end of
/// a lease that the holder released long before.
const LONGEST_FOR_AN_OWNER: u64 = 5;

/// Retry delay in seconds for a missing quorum without a known end. Too small: clients add load to a service that cannot serve
/// them. Too large: clients come back long after a short outage.
const WITHOUT_QUORUM: u64 = 2;

/// Returns the retry delay in whole seconds, at least 1. `None` if the delay is unknown, or if there is nothing to do.
pub(super) fn seconds_to_retry(error: &LockError, public_error: PublicError) -> Option<u64> {
    let Some(rest) = error.retry_after() else {
        return matches!(error, LockError::NoQuorum { .. }).then_some(WITHOUT_QUORUM);
    };
    let seconds = rest.as_secs().saturating_add(u64::from(rest.subsec_nanos() > 0)).max(1);
    match public_error {
        PublicError::Busy => Some(seconds.min(LONGEST_FOR_AN_OWNER)),
        PublicError::Done => None,
        PublicError::Unavailable | PublicError::Invalid | PublicError::Interrupted | PublicError::Broken => {
            Some(seconds)
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::error::{HeldLock, LossCause, NodeError, NodeFailure, SourceLine, Why};
    use crate::lock::LockPath;
    use std::time::Duration;

    /// One error of each kind, full of internal details, with its class and its retry delay.
    pub(in crate::error) fn every_kind() -> Vec<(LockError, PublicError, Option<u64>)> {
        let key = || "order:7-secret".into();
        let millis = |millis| Some(Duration::from_millis(millis));
        let failures = |error: NodeError| -> Box<[_]> {
            Box::new([
                NodeFailure { node: "10.0.0.1:6379".into(), error },
                NodeFailure {
                    node: "redis.internal:6380".into(),
                    error: NodeError::Refused("NOPERM redis://alice:hunter2@10.0.0.2/3".into()),
                },
            ])
        };
        let (down, rest) =
            (NodeError::Unreachable("os error 111".into()), NodeError::RecentlyRestarted(Duration::from_secs(9)));
        let lost = |cause| LockError::Lost { key: key(), held_for: Duration::from_secs(29), cause };
        let no_quorum = |error| LockError::NoQuorum { key: Some(key()), needed: 1, nodes: 2, causes: failures(error) };
        let waited = Duration::from_secs(2);
        let at = |line| SourceLine::new("src/secret.rs", line);
        let would_deadlock =
            LockError::WouldDeadlock { key: key(), held: Box::new(HeldLock::new(key(), at(637), at(638), Why::Same)) };
        vec![
            (LockError::Contended { key: key(), lease_left: None, holder: None }, PublicError::Busy, None),
            (LockError::Contended { key: key(), lease_left: millis(29_001), holder: None }, PublicError::Busy, Some(5)),
            (LockError::Contended { key: key(), lease_left: millis(0), holder: None }, PublicError::Busy, Some(1)),
            (LockError::TimedOut { key: key(), waited, lease_left: None, holder: None }, PublicError::Busy, None),
            (
                LockError::TimedOut { key: key(), waited, lease_left: millis(2000), holder: None },
                PublicError::Busy,
                Some(2),
            ),
            (LockError::TooManyWaiting { key: key(), limit: 16 }, PublicError::Busy, None),
            (
                LockError::WindowTaken { key: key(), window: 5, ends_in: Duration::from_millis(411_500) },
                PublicError::Done,
                None,
            ),
            (no_quorum(down.clone()), PublicError::Unavailable, Some(2)),
            (no_quorum(rest), PublicError::Unavailable, Some(9)),
            (LockError::Closed, PublicError::Unavailable, None),
            (lost(LossCause::NotRenewed { causes: failures(down.clone()) }), PublicError::Interrupted, None),
            (lost(LossCause::Taken), PublicError::Interrupted, None),
            (
                LockError::Refused { key: Some(key()), needed: 2, nodes: 2, causes: failures(down) },
                PublicError::Broken,
                None,
            ),
            (LockPath::from("/order:7-secret/..").check().unwrap_err().into(), PublicError::Invalid, None),
            (would_deadlock, PublicError::Broken, None),
            (LockError::configuration("the URL redis://alice:hunter2@10.0.0.2 is wrong"), PublicError::Broken, None),
            (LockError::NotInstalled, PublicError::Broken, None),
        ]
    }

    /// Asserts that a text contains no detail of `every_kind` and no internal term.
    #[track_caller]
    pub(in crate::error) fn assert_no_internals(text: &str) {
        let inside = ["order:7", "secret", "10.0.0", "redis", "637", "6380", "alice", "hunter2", "NOPERM", "error 111"];
        let found: Vec<_> =
            inside.into_iter().filter(|word| text.to_lowercase().contains(&word.to_lowercase())).collect();
        assert!(found.is_empty() && text.len() < 100 && !text.contains('\n'), "{text:?}: {found:?}");
    }

    #[test]
    fn each_error_has_its_public_error_and_retry_time() {
        for (error, public_error, seconds) in every_kind() {
            assert_eq!(
                (PublicError::of(&error), seconds_to_retry(&error, public_error)),
                (public_error, seconds),
                "{error}"
            );
            assert_no_internals(public_error.message());
        }
    }
}
