//! Result of breaking a lock.

use super::owner::spoken;
use crate::error::NodeError;
use crate::lock::{LockKey, OwnerToken};
use crate::text::SingleLine;
use std::fmt;
use std::time::Duration;

/// Result of [`LockManager::break_lock`](crate::LockManager::break_lock), node by node.
///
/// `Display` writes the outcome in words, then one line for each node, then the tokens of the holder and of the breaker.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BreakReport {
    /// Key of the lock.
    pub key: LockKey,
    /// Token of the holder, or the value of another program. Only the first 300 characters are kept.
    pub holder: Box<str>,
    /// Token of this manager for the attempt.
    ///
    /// The event `broken` contains it, and so does [`LossCause::Revoked`](crate::LossCause::Revoked) of a notified holder.
    pub by: OwnerToken,
    /// [Reason](crate::admin::BreakOptions::reason) for the attempt.
    pub reason: Option<Box<str>>,
    /// Outcome at each node, in the order of the manager's configuration.
    pub nodes: Vec<NodeBreak>,
    /// Number of nodes that form a majority.
    pub needed: usize,
    /// `true` if a client received the notification for the holder, as far as the nodes know.
    ///
    /// A holder that is not notified continues until its next renewal, after about a third of its `ttl`. If it does not renew, it continues
    /// until its lease ends.
    pub holder_notified: bool,
    /// `true` if the holder has reported that it stopped. The next waiter is then served.
    ///
    /// This is not proof. The message is not authenticated: a client that can read the key and publish on the channels of the namespace can
    /// send it while the body still runs. Use [fencing tokens](crate::FencingToken) against two bodies at once.
    pub holder_stopped: bool,
    /// Token that keeps the key locked until the lease of the holder ends, because the holder has not reported that it stopped.
    ///
    /// `None` if the lock was broken by force, or if nothing was broken.
    pub placeholder: Option<PlaceholderOwner>,
}

/// Token that replaces the holder of a broken lock until the holder's lease ends.
///
/// The holder may still be running. The key therefore stays locked as long as the holder may rely on its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct PlaceholderOwner {
    /// Token that holds the lock. Breaking it [by force](crate::admin::BreakOptions::by_force) serves the next waiter at once.
    pub token: OwnerToken,
    /// Time until the key is free: the remaining lease of the holder.
    pub remaining: Duration,
}

/// Outcome of breaking a lock at one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct NodeBreak {
    /// Address of the node: host and port, or the path of a socket.
    pub node: Box<str>,
    /// Outcome at the node.
    pub outcome: BreakOutcome,
}

/// Outcome of breaking a lock, at one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BreakOutcome {
    /// The token held the lock at this node, and no longer does.
    Broken,
    /// The token did not hold the lock at this node.
    NotHeld,
    /// The lock belongs to another program. Its holder cannot be notified, so it is broken by force only.
    NeedsForce,
    /// The node could not be reached, or it refused. The token may still hold the lock there; see
    /// [`is_broken`](BreakReport::is_broken).
    Failed(NodeError),
}

impl BreakReport {
    /// Returns `true` if the token held the lock, or a part of it, and certainly does not hold it any longer.
    ///
    /// That is certain if the token can no longer have a majority, or if the holder has reported that it stopped. A holder that is
    /// notified quickly may release the lock at the other nodes before they are asked. Another call may then already hold the lock.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.had_majority() || self.has_broken_majority() && self.holder_stopped
    }

    /// Returns `true` if the token may have had a majority and can no longer have one.
    fn had_majority(&self) -> bool {
        let (broken, failed) = (self.count(|outcome| *outcome == BreakOutcome::Broken), self.count(is_failed));
        self.has_broken_majority() && broken + failed >= self.needed
    }

    /// Returns `true` if the token was removed from a node and can no longer have a majority.
    pub(crate) fn has_broken_majority(&self) -> bool {
        self.count(|outcome| *outcome == BreakOutcome::Broken) > 0 && self.has_quorum()
    }

    /// Returns `true` if enough nodes answered: the others do not form a majority.
    #[must_use]
    pub fn has_quorum(&self) -> bool {
        self.count(is_failed) < self.needed
    }

    /// Returns the outcome as one word, for events.
    pub(crate) fn word(&self, is_forced: bool) -> &'static str {
        match (self.has_quorum(), self.is_broken()) {
            _ if self.count(|outcome| *outcome == BreakOutcome::NeedsForce) > 0 => "needs_force",
            (false, _) => "unknown",
            (true, false) => "not_held",
            (true, true) if is_forced => "forced",
            (true, true) if self.holder_stopped => "stopped",
            (true, true) => "broken",
        }
    }

    fn count(&self, is_counted: impl Fn(&BreakOutcome) -> bool) -> usize {
        self.nodes.iter().filter(|node| is_counted(&node.outcome)).count()
    }

    /// Returns the outcome in words.
    fn outcome(&self) -> &'static str {
        match (self.has_quorum(), self.is_broken()) {
            _ if self.count(|outcome| *outcome == BreakOutcome::NeedsForce) > 0 => {
                "not broken: this is not a token of this library, and the holder of a foreign lock cannot be notified; only by force"
            }
            (false, _) => "too few nodes answered; the lock may still be held",
            (true, false) if self.has_broken_majority() => {
                "not held by that token, except for a remainder at some nodes"
            }
            (true, false) => "not held by that token",
            (true, true) if !self.had_majority() => {
                "broken; the holder has stopped, and had already released most nodes: inspect the key for the current holder"
            }
            (true, true) if self.holder_stopped => "broken; the holder has stopped, and the next waiter is served",
            (true, true) if self.placeholder.is_none() => "broken",
            (true, true) if self.holder_notified => {
                "broken; the holder was notified, but has not reported that it stopped"
            }
            (true, true) => "broken; the holder was not notified, and continues until it notices the loss by itself",
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
            Self::NeedsForce => f.write_str("not broken: not a token of this library"),
            Self::Failed(error) => write!(f, "{error}"),
        }
    }
}

impl fmt::Display for BreakReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.key.as_str(), self.outcome())?;
        if let Some(PlaceholderOwner { token, remaining }) = self.placeholder.filter(|_| self.is_broken()) {
            write!(
                f,
                "; the key stays locked for {} until the holder's lease ends, unless {token} is broken by force",
                spoken(remaining)
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
    fn lock_is_broken_if_its_token_cannot_have_a_majority() {
        use BreakOutcome::{Broken, NeedsForce, NotHeld};
        let failed = || BreakOutcome::Failed(NodeError::Disconnected);
        let table = [
            ([Broken, Broken, Broken], true, (true, true), "broken; the holder has stopped"),
            ([Broken, Broken, NotHeld], true, (true, true), "broken; the holder has stopped"),
            ([Broken, NotHeld, failed()], true, (true, true), "broken; the holder has stopped"),
            ([Broken, NotHeld, NotHeld], true, (true, true), "had already released most nodes"),
            ([Broken, NotHeld, NotHeld], false, (false, true), "not held by that token, except for a remainder"),
            ([Broken, Broken, failed()], false, (true, true), "broken; the holder was notified"),
            ([Broken, failed(), failed()], false, (false, false), "too few nodes answered"),
            ([NotHeld, NotHeld, failed()], false, (false, true), "not held by that token"),
            ([NeedsForce, NeedsForce, NeedsForce], false, (false, true), "not a token of this library"),
        ];
        let token = OwnerToken::new(ManagerId::numbered(7), TokenTime::new(1, 0));
        let stands = PlaceholderOwner { token, remaining: Duration::from_secs(1) };
        for (outcomes, holder_stopped, expected, words) in table {
            let nodes = outcomes.map(|outcome| NodeBreak { node: "a".into(), outcome }).into();
            let key = "order:7".into();
            let placeholder = (!holder_stopped).then_some(stands);
            let (holder, reason) = ("theirs\n".into(), Some("it hangs".into()));
            let report = BreakReport {
                key,
                holder,
                by: token,
                reason,
                nodes,
                needed: 2,
                holder_notified: true,
                holder_stopped,
                placeholder,
            };
            let trail = format!("\n  holder theirs\\u000a, breaker {token}, reason: it hangs");
            assert!(report.to_string().ends_with(&trail), "{report}");
            assert_eq!((report.is_broken(), report.has_quorum()), expected, "{report}");
            assert!(report.to_string().contains(words), "{report}");
        }
    }
}
