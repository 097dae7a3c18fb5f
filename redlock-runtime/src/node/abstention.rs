//! Answers that prove nothing: the server was restarted, and may have granted the same to another before.

use crate::error::NodeError;
use crate::protocol::command::{Answer, Reply};
use crate::time::clock::Instant;
use std::time::Duration;

/// Until when the commands of one connection prove nothing, if so.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Abstention(Option<Instant>);

impl Abstention {
    pub(crate) const fn until(end: Option<Instant>) -> Self {
        Self(end)
    }

    /// Whether it matters when a command was sent.
    pub(crate) const fn is_any(self) -> bool {
        self.0.is_some()
    }

    /// For how much longer than `now` the server does not count, if so.
    pub(crate) fn left(self, now: Instant) -> Option<Duration> {
        let left = self.0?.since(now);
        (!left.is_zero()).then_some(left)
    }

    /// What an answer proves, to a command that was `sent` when the server may not have counted.
    pub(crate) fn worth(self, answer: Answer, sent: Option<Instant>) -> Answer {
        match (answer, sent.and_then(|sent| self.left(sent))) {
            (Ok(Reply::Granted { .. } | Reply::Extended { .. } | Reply::Kept), Some(left)) => {
                Err(NodeError::Abstains(left))
            }
            (answer, _) => answer,
        }
    }
}
