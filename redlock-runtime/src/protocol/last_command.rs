//! The last command about a token at a node, and what its answer settles.
//!
//! 1. It is a release; or, while a least hold is not over, an extension that keeps the key taken until then.
//! 2. It is *settled* when its answer is conclusive: it was executed. A broken connection leaves that open, and a server that
//!    answers with an error may execute it later: it is sent again until the key has expired by itself.
//! 3. A repeated one may find that the first was executed: that the lock is not ours any more says nothing then.
//! 4. A release of a lock with many absent waiters may be unfinished: it is followed by another one, at once.
//! 5. An extension that finds no key to keep is followed by a release, because a command before it may have been executed
//!    late and have put the token into the queue.

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

/// The last command about a token at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct LastCommand {
    pub(crate) verb: Verb,
    /// The key has expired by then, so that the command has nothing left to do.
    pub(crate) matters_until: Instant,
    /// Until when the key is to stay taken: what is sent by then keeps it, and what is sent later gives it back.
    pub(crate) keeps_until: Option<Instant>,
    /// Whether the node is known to hold the lock for the token, and was asked only once to give it back.
    pub(crate) is_expected: bool,
    /// Whether the node may have something to say about the token on its way, which the command makes an end of: it is a release
    /// behind everything that was sent about the token.
    pub(crate) ends_messages: bool,
    /// Whether it answers a message about a token that this process does not know. Others may have made the token up. Such a release is not
    /// repeated after an error that retries cannot heal, and [few](MOST_STRAYS) are in flight at a time.
    pub(crate) is_stray: bool,
    /// Whether messages about the token are to be heard once it was sent again: what was sent before, over a connection that broke, may
    /// be executed behind it.
    pub(crate) is_heard_about: bool,
}

/// What an answer means for the last command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settlement {
    /// It was executed.
    Settled,
    /// There was no key to keep; the queue is to be left.
    LeavesQueue,
    /// It was executed, and another one has to find the next waiter.
    Unfinished,
    /// It may not have been executed: it is to be sent again.
    Open,
}

impl LastCommand {
    /// Gives back whatever the node has of a token, or takes it out of the queue.
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

    /// Releases a token that this process does not know: its call has ended, its release was lost, or others have made it up.
    pub(crate) fn of_unknown_token(now: Instant) -> Self {
        Self { is_stray: true, ..Self::release(CLAIM, QUEUE_EXPIRY, now) }
    }

    /// Keeps the key for `rest` instead.
    pub(crate) fn keeping(self, rest: Duration, now: Instant) -> Self {
        let end = now.after(rest);
        let matters_until = self.matters_until.max(end);
        let verb = Verb::Keep { ttl: rest };
        Self { verb, keeps_until: Some(end), matters_until, ends_messages: false, ..self }
    }

    /// What is to be done after `answer`.
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

    /// Becomes a release that leaves the queue, when there was no key to keep.
    pub(crate) const fn leave_queue(&mut self) {
        self.keeps_until = None;
        self.verb = Verb::Release { claim: CLAIM };
    }

    /// Becomes a release that finds the next waiter.
    pub(crate) const fn find_next(&mut self) {
        self.is_expected = false;
    }

    /// Is sent once more at `now`.
    pub(crate) fn repeat(&mut self, now: Instant) {
        self.is_expected = false;
        if let Some(until) = self.keeps_until {
            let ttl = lease::whole_millis(until.since(now));
            self.verb = if ttl.is_zero() { Verb::Release { claim: CLAIM } } else { Verb::Keep { ttl } };
        }
    }
}

/// Whether an answer says what has become of a command.
///
/// No error of a command that may not have been executed does, whatever its reason: a server that was busy executes the next one, and so does one that refuses a user
/// when somebody gives him the permission. Until then the key would stay taken.
pub(crate) const fn is_conclusive(answer: &Answer) -> bool {
    matches!(answer, Ok(_) | Err(NodeError::RecentlyRestarted(_) | NodeError::NotReplicated { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_error_settles_anything() {
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
    fn stray_release_is_not_repeated_after_an_error_that_stays() {
        let stray = LastCommand::of_unknown_token(Instant::from_origin(Duration::ZERO));
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
    fn a_window_is_kept_until_its_end_and_then_given_back() {
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
