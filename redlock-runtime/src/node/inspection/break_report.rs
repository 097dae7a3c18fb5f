//! What has become of a lock that somebody breaks.

use super::owner::spoken;
use crate::error::NodeError;
use crate::lock::{LockKey, OwnerToken};
use crate::text::SingleLine;
use std::fmt;
use std::time::Duration;

/// What [`LockManager::break_lock`](crate::LockManager::break_lock) has done, node by node.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BreakReport {
    /// Whose holder was to lose it.
    pub key: LockKey,
    /// The token that was to lose it, or the value of another program; 300 characters of it at most.
    pub holder: Box<str>,
    /// Token of this manager for the attempt. The event `broken` has it, and [`LossCause::Revoked`](crate::LossCause::Revoked) of a
    /// holder that was notified.
    pub by: OwnerToken,
    /// The [reason](crate::admin::BreakRequest::reason) of the request.
    pub reason: Option<Box<str>>,
    /// In the order in which the manager was given them.
    pub nodes: Vec<NodeBreak>,
    /// How many of them must agree on a lock.
    pub needed: usize,
    /// Whether somebody has received what the holder was told, as far as the nodes know. One that was not told goes on until it asks
    /// its nodes by itself: when it renews, after a third of its `ttl` or so; or, if it does not renew, until its lease ends.
    pub is_told: bool,
    /// Whether the holder has said that it has stopped. Whoever waits is served then.
    ///
    /// This is not proof. The message is not authenticated: a client that can read the key and publish on the channels of the namespace can
    /// send it while the body still runs. Use [fencing tokens](crate::LockManager::acquire_fenced) against two bodies.
    pub has_stopped: bool,
    /// What has the place of a holder that has not said so: nobody else gets the lock until that is over. `None` by force.
    pub stand_in: Option<StandIn>,
}

/// What keeps a lock that was broken from others, because its holder may be at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StandIn {
    /// Has the lock instead of the holder. Broken [by force](crate::LockManager::break_lock_by_force), it serves whoever waits
    /// at once.
    pub token: OwnerToken,
    /// For how much longer: what was left of the lease.
    pub left: Duration,
}

/// What has become of it at one node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeBreak {
    /// Its address: host and port, or the path of a socket.
    pub node: Box<str>,
    /// What happened there.
    pub outcome: BreakOutcome,
}

/// What has become of a lock that was to be broken, at one node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BreakOutcome {
    /// The token had the lock there, and has it no more.
    Broken,
    /// The token did not have the lock there.
    NotHeld,
    /// It is the lock of another program, which cannot be told and is only broken by force.
    NeedsForce,
    /// The node could not be asked, or refused. The token may have the lock there still; see
    /// [`is_broken`](BreakReport::is_broken).
    Failed(NodeError),
}

impl BreakReport {
    /// Whether the token had the lock, or what was left of it, and has it no more for certain: it can have no majority, or its
    /// holder says that it has stopped. A holder that is told soon may have given the lock back at the other nodes before they were
    /// asked. Then, as where the token had too few nodes, somebody else may have the lock by now.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.had_majority() || self.took_any() && self.has_stopped
    }

    /// Whether the token was taken so many nodes that it may have had a majority, and can have none any more.
    fn had_majority(&self) -> bool {
        let (broken, failed) = (self.count(|outcome| *outcome == BreakOutcome::Broken), self.count(is_failed));
        self.took_any() && broken + failed >= self.needed
    }

    /// Whether the token had any node, and can have no majority any more.
    pub(crate) fn took_any(&self) -> bool {
        self.count(|outcome| *outcome == BreakOutcome::Broken) > 0 && self.is_heard()
    }

    /// Whether so many nodes have answered that the rest of them are no majority.
    #[must_use]
    pub fn is_heard(&self) -> bool {
        self.count(is_failed) < self.needed
    }

    /// The outcome as one word, for events.
    pub(crate) fn word(&self, is_forced: bool) -> &'static str {
        match (self.is_heard(), self.is_broken()) {
            _ if self.count(|outcome| *outcome == BreakOutcome::NeedsForce) > 0 => "needs_force",
            (false, _) => "unknown",
            (true, false) => "not_held",
            (true, true) if is_forced => "forced",
            (true, true) if self.has_stopped => "stopped",
            (true, true) => "broken",
        }
    }

    fn count(&self, is_counted: impl Fn(&BreakOutcome) -> bool) -> usize {
        self.nodes.iter().filter(|node| is_counted(&node.outcome)).count()
    }

    /// What has become of it, in words.
    fn outcome(&self) -> &'static str {
        match (self.is_heard(), self.is_broken()) {
            _ if self.count(|outcome| *outcome == BreakOutcome::NeedsForce) > 0 => {
                "the lock of another program, if of anybody: only by force, because its holder cannot be told"
            }
            (false, _) => "too few nodes answered, so that it may be held still",
            (true, false) if self.took_any() => "not held by that token, of which something was left",
            (true, false) => "not held by that token",
            (true, true) if !self.had_majority() => {
                "broken; the holder has stopped, and has given back most of it before: look who has the lock now"
            }
            (true, true) if self.has_stopped => "broken; the holder has stopped, and whoever waits is served",
            (true, true) if self.stand_in.is_none() => "broken",
            (true, true) if self.is_told => "broken; the holder was told, and has not said that it has stopped",
            (true, true) => "broken; the holder was not told, and goes on until it notices by itself",
        }
    }
}

fn is_failed(outcome: &BreakOutcome) -> bool {
    matches!(outcome, BreakOutcome::Failed(_))
}

impl fmt::Display for BreakOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken => f.write_str("broken"),
            Self::NotHeld => f.write_str("not held by that token"),
            Self::NeedsForce => f.write_str("left alone"),
            Self::Failed(error) => write!(f, "{error}"),
        }
    }
}

impl fmt::Display for BreakReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.key.as_str(), self.outcome())?;
        if let Some(StandIn { token, left }) = self.stand_in.filter(|_| self.is_broken()) {
            write!(
                f,
                "; nobody else gets it for {}, until its lease is over, unless {token} is broken by force",
                spoken(left)
            )?;
        }
        self.nodes.iter().try_for_each(|node| write!(f, "\n  {}: {}", SingleLine(&node.node), node.outcome))?;
        write!(f, "\n  holder {}, breaker {}", SingleLine(&self.holder), self.by)?;
        self.reason.iter().try_for_each(|reason| write!(f, ", reason: {reason}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::owner_token::ManagerId;
    use crate::time::token_clock::TokenTime;

    #[test]
    fn a_lock_is_broken_when_the_token_can_have_no_majority() {
        use BreakOutcome::{Broken, NeedsForce, NotHeld};
        let failed = || BreakOutcome::Failed(NodeError::Disconnected);
        let table = [
            ([Broken, Broken, Broken], true, (true, true), "broken; the holder has stopped"),
            ([Broken, Broken, NotHeld], true, (true, true), "broken; the holder has stopped"),
            ([Broken, NotHeld, failed()], true, (true, true), "broken; the holder has stopped"),
            ([Broken, NotHeld, NotHeld], true, (true, true), "has given back most of it before"),
            ([Broken, NotHeld, NotHeld], false, (false, true), "not held by that token, of which something was left"),
            ([Broken, Broken, failed()], false, (true, true), "broken; the holder was told"),
            ([Broken, failed(), failed()], false, (false, false), "too few nodes answered"),
            ([NotHeld, NotHeld, failed()], false, (false, true), "not held by that token"),
            ([NeedsForce, NeedsForce, NeedsForce], false, (false, true), "the lock of another program"),
        ];
        let token = OwnerToken::new(ManagerId::numbered(7), TokenTime::new(1, 0));
        let stands = StandIn { token, left: Duration::from_secs(1) };
        for (outcomes, has_stopped, expected, words) in table {
            let nodes = outcomes.map(|outcome| NodeBreak { node: "a".into(), outcome }).into();
            let key = "order:7".into();
            let stand_in = (!has_stopped).then_some(stands);
            let (holder, reason) = ("theirs\n".into(), Some("it hangs".into()));
            let report =
                BreakReport { key, holder, by: token, reason, nodes, needed: 2, is_told: true, has_stopped, stand_in };
            let trail = format!("\n  holder theirs\\u000a, breaker {token}, reason: it hangs");
            assert!(report.to_string().ends_with(&trail), "{report}");
            assert_eq!((report.is_broken(), report.is_heard()), expected, "{report}");
            assert!(report.to_string().contains(words), "{report}");
        }
    }
}
