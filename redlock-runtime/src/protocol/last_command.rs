//! Last command about a token at a node, and the meaning of its answer.
//!
//! 1. The last command is a release. While a `min_hold` is not over, it is an extension that keeps the key taken until
//!    then.
//! 2. The command is *settled* when its answer is conclusive: it was executed. A broken connection leaves that open,
//!    and a server that replies with an error may execute the command later. So it is sent again until the key has
//!    expired by itself.
//! 3. A repeated command may find that the first one was executed. The reply that the token does not own the lock means
//!    nothing in that case.
//! 4. A release of a lock with many absent waiters may be unfinished. Another release follows at once.
//! 5. If an extension finds no key to keep, a release follows: an earlier command may have been executed late and have
//!    put the token into the queue.

use super::command::{Answer, Reply, Verb};
use super::lease;
use super::timing::{CLAIM, QUEUE_EXPIRY};
use crate::error::NodeError;
use crate::time::clock::Instant;
use std::time::Duration;

/// Maximum number of [stray](LastCommand::is_stray) releases in flight at a node; further ones are dropped. What they would have released
/// expires after [`QUEUE_EXPIRY`] at most. Too small: after many calls have ended at once, others wait for entries to expire. Too large:
/// messages with made-up tokens take memory and server time.
pub(crate) const MOST_STRAYS: usize = 256;

/// Last command about a token at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct LastCommand {
    pub(crate) verb: Verb,
    /// Time at which the key has expired in any case, so that the command has nothing left to do.
    pub(crate) matters_until: Instant,
    /// End of the time for which the key must stay taken. A command sent before that time keeps the key; a later one
    /// releases it.
    pub(crate) keeps_until: Option<Instant>,
    /// Set if the node is known to hold the lock for the token, and was asked to release it only once.
    pub(crate) is_expected: bool,
    /// Set if a message about the token may still be on its way that this command makes obsolete: it is a release
    /// behind everything that was sent about the token.
    pub(crate) ends_messages: bool,
    /// Set if the command answers a message about a token that this process does not know, and that others may have
    /// made up. Such a release is not repeated after a permanent error, and [few](MOST_STRAYS) are in flight at a time.
    pub(crate) is_stray: bool,
    /// Set if messages about the token must be received after the command was sent again. Earlier commands, over a
    /// connection that broke, may be executed behind it.
    pub(crate) is_heard_about: bool,
}

/// Meaning of an answer for the last command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settlement {
    /// Command was executed.
    Settled,
    /// No key was found that could be kept; the token must leave the queue.
    LeavesQueue,
    /// Command was executed, and another one has to find the next waiter.
    Unfinished,
    /// Command may not have been executed, and must be sent again.
    Open,
}

impl LastCommand {
    /// Creates a release that removes the token from the node, as owner and from the queue.
    pub(crate) fn release(claim: Duration, ttl: Duration, now: Instant) -> Self {
        let matters_until = now.after(ttl.max(QUEUE_EXPIRY));
        Self {
            verb: Verb::Release { claim },
            matters_until,
            keeps_until: None,
            is_expected: false,
            ends_messages: false,
            is_stray: false,
            is_heard_about: true,
        }
    }

    /// Creates a release of a token that this process does not know: its call has ended, its release was lost, or
    /// others have made it up.
    pub(crate) fn for_unknown_token(now: Instant) -> Self {
        Self { is_stray: true, ..Self::release(CLAIM, QUEUE_EXPIRY, now) }
    }

    /// Replaces the release by a command that keeps the key for `rest`.
    pub(crate) fn keeping(self, rest: Duration, now: Instant) -> Self {
        let end = now.after(rest);
        let matters_until = self.matters_until.max(end);
        let verb = Verb::Keep { ttl: rest };
        Self { verb, keeps_until: Some(end), matters_until, ends_messages: false, ..self }
    }

    /// Returns the meaning of `answer` for this command.
    pub(crate) fn settled_by(&self, answer: &Answer) -> Settlement {
        if self.keeps_until.is_some() && matches!(answer, Ok(Reply::NotOwner)) {
            Settlement::LeavesQueue
        } else if matches!(answer, Ok(Reply::Unfinished { .. })) {
            Settlement::Unfinished
        } else if is_conclusive(answer) || self.is_stray && answer.as_ref().is_err_and(|error| !error.is_transient()) {
            Settlement::Settled
        } else {
            Settlement::Open
        }
    }

    /// Changes the command into a release that leaves the queue, after it found no key to keep.
    pub(crate) const fn leave_queue(&mut self) {
        self.keeps_until = None;
        self.verb = Verb::Release { claim: CLAIM };
    }

    /// Changes the command into a release that finds the next waiter.
    pub(crate) const fn find_next(&mut self) {
        self.is_expected = false;
    }

    /// Updates the command for another send at `now`.
    pub(crate) fn repeat(&mut self, now: Instant) {
        self.is_expected = false;
        if let Some(until) = self.keeps_until {
            let ttl = lease::whole_millis(until.since(now));
            self.verb = if ttl.is_zero() { Verb::Release { claim: CLAIM } } else { Verb::Keep { ttl } };
        }
    }
}

/// Returns `true` if an answer shows that the command was executed.
///
/// An error never does if the command may not have been executed, whatever its reason. A server that was busy may
/// execute the next command; so may a server that denied a permission, once that permission is granted. Meanwhile, the
/// key would stay taken.
pub(crate) const fn is_conclusive(answer: &Answer) -> bool {
    matches!(answer, Ok(_) | Err(NodeError::RecentlyRestarted(_) | NodeError::NotReplicated { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_answers_of_an_executed_command_are_conclusive() {
        let table = [
            (Ok(Reply::Released), true),
            (Ok(Reply::NotOwner), true),
            (Err(NodeError::RecentlyRestarted(Duration::ZERO)), true),
            (Err(NodeError::NotReplicated { acked: 0, wanted: 1 }), true),
            (Err(NodeError::Disconnected), false),
            (Err(NodeError::Unreachable("".into())), false),
            (Err(NodeError::Refused("BUSY Redis is busy running a script.".into())), false),
            (Err(NodeError::Refused("LOADING Redis is loading the dataset in memory".into())), false),
            (Err(NodeError::Refused("MISCONF Redis is configured to save RDB snapshots".into())), false),
            (Err(NodeError::Refused("READONLY You can't write against a read only replica.".into())), false),
            (Err(NodeError::Refused("NOPERM this user has no permissions".into())), false),
        ];
        for (answer, expected) in table {
            assert_eq!(is_conclusive(&answer), expected, "{answer:?}");
        }
    }

    #[test]
    fn stray_release_is_not_repeated_after_a_permanent_error() {
        let stray = LastCommand::for_unknown_token(Instant::from_origin(Duration::ZERO));
        let table = [
            (Ok(Reply::NotOwner), Settlement::Settled),
            (Err(NodeError::Refused("NOPERM this user has no permissions".into())), Settlement::Settled),
            (Err(NodeError::Refused("BUSY Redis is busy running a script.".into())), Settlement::Open),
            (Err(NodeError::Disconnected), Settlement::Open),
        ];
        for (answer, expected) in table {
            assert_eq!(stray.settled_by(&answer), expected, "{answer:?}");
        }
        let ours = LastCommand { is_stray: false, ..stray };
        assert_eq!(ours.settled_by(&Err(NodeError::Refused("NOPERM".into()))), Settlement::Open);
    }

    #[test]
    fn window_is_kept_until_its_end_and_then_released() {
        let at = |seconds| Instant::from_origin(Duration::from_secs(seconds));
        let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
        let mut last = LastCommand::release(second, second, at(0)).keeping(minute, at(0));
        assert_eq!((last.verb, last.matters_until), (Verb::Keep { ttl: minute }, at(60)));
        last.repeat(at(20));
        assert_eq!(last.verb, Verb::Keep { ttl: minute * 2 / 3 });
        last.repeat(at(60));
        assert_eq!(last.verb, Verb::Release { claim: CLAIM }, "its time is over");
        assert_eq!(last.settled_by(&Ok(Reply::NotOwner)), Settlement::LeavesQueue);
        last.leave_queue();
        assert_eq!(last.settled_by(&Ok(Reply::NotOwner)), Settlement::Settled);
        assert_eq!(last.settled_by(&Err(NodeError::Disconnected)), Settlement::Open);
    }
}
