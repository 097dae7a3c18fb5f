//! Handling of commands whose script the server has lost.
//!
//! 1. A command is sent with the digest of its script. A server answers `NOSCRIPT` after `SCRIPT FLUSH`, and has executed nothing.
//! 2. The command is sent once more, with the source of the script, which also loads it. It then comes behind all commands that were queued
//!    on the connection in the meantime.
//! 3. If the server does not know the script even then, the command is not sent a third time: the error is its answer.
//! 4. A command that takes the lock, or extends its lease, is not sent again if no caller waits for its answer any more. The last command
//!    of its token may already be queued. An acquisition behind a release would take the lock for a token that no caller knows. An
//!    extension behind the command that keeps the key of a window would end the window too soon. A caller that releases a token must
//!    therefore drop the answers to these commands first; see `Verb::Acquire`. An extension that is sent again for a waiting caller is
//!    marked as late. It makes no lease shorter, because a longer one may have been sent before it (`lua/late.lua`).
//! 5. The check for a waiting caller runs under the mutex of the outbox. There are two cases for a release of the token. If it was queued
//!    before, the check sees that the caller no longer waits. Otherwise it is queued behind the command.

use super::answer::refused;
use super::outbox::Outbox;
use super::question::Question;
use super::script::Scripts;
use crate::protocol::command::Verb;
use redis::{ErrorKind, RedisError, ServerErrorKind};

/// Returns `true` if the server has answered that it does not have the script.
pub(super) fn is_script_lost(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

/// Returns `true` if a command that was not executed must be sent again.
pub(super) fn may_be_repeated(question: &Question) -> bool {
    !question.is_repeated && !is_abandoned(question)
}

/// Sends the command again, with the source of its script. `error` is the answer of the server that has lost the script. Returns `false` if
/// the command fails instead.
pub(super) fn repeat(outbox: &Outbox, scripts: &Scripts, mut question: Question, error: &RedisError) -> bool {
    let Some(script) = scripts.for_question(&question) else {
        // A command without a script has no script to lose.
        question.answer(Err(refused(error)));
        return false;
    };
    question.is_late = question.command.verb.may_be_late();
    let wire = script.by_source(&question, &scripts.channels);
    question.is_repeated = true;
    // Behind an `ASKING`, if it was sent with one.
    outbox.put_if(question, wire.into(), |question| !is_abandoned(question))
}

/// Returns `true` if the command takes the lock or extends its lease, and no caller waits for its answer.
pub(super) fn is_abandoned(question: &Question) -> bool {
    let takes = match question.command.verb {
        // A `SetNx` is a script for a shared lock, and for a lock whose queue the user may not use.
        Verb::SetNx { .. }
        | Verb::Acquire { .. }
        | Verb::Enter { .. }
        | Verb::Adopt { .. }
        | Verb::Revoke
        | Verb::Extend { .. }
        | Verb::Renew { .. } => true,
        Verb::Keep { .. } | Verb::Yield { .. } | Verb::Release { .. } | Verb::Raise { .. } => false,
    };
    takes && question.recipient.is_gone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::NodeError;
    use crate::lock::OwnerToken;
    use crate::lock::owner_token::ManagerId;
    use crate::node::pending::{Pending, Recipient};
    use crate::node::redis::channels::Channels;
    use crate::node::redis::question::{Outgoing, ReplyKind, Wire};
    use crate::protocol::command::{Command, Subject};
    use crate::protocol::timing::CLAIM;
    use crate::time::token_clock::TokenTime;
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::task::{Context, Waker};

    const ACQUIRE: Verb = Verb::Acquire { ttl: CLAIM, claim: CLAIM, holds: false };
    const RELEASE: Verb = Verb::Release { claim: CLAIM };

    fn question(verb: Verb) -> (Question, Pending) {
        let token = OwnerToken::new(ManagerId::random(), TokenTime::new(1, 0));
        let subject = Arc::new(Subject::new("order:7".into(), token));
        let (recipient, pending) = Recipient::task();
        (Question::new(Command { verb, fence: None, subject }, None, recipient), pending)
    }

    fn repeat(outbox: &Outbox, question: Question) -> bool {
        let scripts = Scripts::loaded(Channels::of_server(""), || Ok::<_, Infallible>(String::new())).unwrap();
        let error = RedisError::from((ErrorKind::Server(ServerErrorKind::NoScript), "no matching script"));
        super::repeat(outbox, &scripts, question, &error)
    }

    fn taken(outbox: &Outbox) -> Vec<Outgoing> {
        outbox.take(&Context::from_waker(Waker::noop()), Vec::new())
    }

    #[test]
    fn abandoned_acquire_is_not_repeated() {
        let adopt = Verb::Adopt { ttl: CLAIM };
        let table = [
            (ACQUIRE, false, true),
            (ACQUIRE, true, false),
            (Verb::SetNx { ttl: CLAIM }, false, true),
            (Verb::SetNx { ttl: CLAIM }, true, false),
            (adopt, false, true),
            (adopt, true, false),
            (Verb::Revoke, false, true),
            (Verb::Revoke, true, false),
            (RELEASE, true, true),
            (Verb::Extend { ttl: CLAIM }, false, true),
            (Verb::Extend { ttl: CLAIM }, true, false),
            (Verb::Renew { ttl: CLAIM }, true, false),
            (Verb::Keep { ttl: CLAIM }, true, true),
        ];
        for (verb, is_abandoned, expected) in table {
            let (question, pending) = question(verb);
            if is_abandoned {
                drop(pending);
            }
            assert_eq!(may_be_repeated(&question), expected, "{verb:?} {is_abandoned}");
        }
    }

    #[test]
    fn repeated_extension_is_marked_late_unless_it_is_final() {
        let ttl = CLAIM;
        let table = [
            (Verb::Extend { ttl }, true),
            (Verb::Renew { ttl }, true),
            (Verb::Adopt { ttl }, true),
            (Verb::Keep { ttl }, false),
            (RELEASE, false),
        ];
        for (verb, is_late) in table {
            let outbox = Outbox::default();
            let (question, _pending) = question(verb);
            assert!(repeat(&outbox, question));
            let [Outgoing::Worded(Wire { first, .. }, _)] = &taken(&outbox)[..] else { panic!() };
            let says_so = first.args_iter().any(|word| matches!(word, redis::Arg::Simple(b"late")));
            assert_eq!(says_so, is_late, "{verb:?}");
        }
    }

    #[test]
    fn command_is_repeated_at_most_once() {
        let outbox = Outbox::default();
        let (question, _pending) = question(RELEASE);
        assert!(repeat(&outbox, question));
        let Some(Outgoing::Worded(_, ReplyKind::Question(question))) = taken(&outbox).pop() else { panic!() };
        assert!(!may_be_repeated(&question));
    }

    #[test]
    fn repeat_of_abandoned_acquire_is_not_queued_behind_its_release() {
        let outbox = Outbox::default();
        let (taking, pending) = question(ACQUIRE);
        assert!(may_be_repeated(&taking));
        drop(pending);
        let (release, _pending) = question(RELEASE);
        outbox.put(release, redis::Cmd::new());
        assert!(!repeat(&outbox, taking));
        assert_eq!(taken(&outbox).len(), 1, "the release alone");
    }

    #[test]
    fn command_without_script_fails_with_the_error() {
        let outbox = Outbox::default();
        let (question, mut pending) = question(Verb::SetNx { ttl: CLAIM });
        assert!(!repeat(&outbox, question));
        assert!(matches!(pending.try_answer(), Some(Err(NodeError::Refused(_)))));
    }
}
