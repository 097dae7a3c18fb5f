//! Renewal of several leases in one command.
//!
//! The watchdog renews many locks at a time, and no caller waits for them. Adjacent renewals in the order of a connection are therefore
//! sent as one script call, which executes `extend_alone.lua` for each lock.
//!
//! 1. Only renewals with an equal ttl are combined, and none at a member of a cluster, where their slots differ. Extensions of a waiting
//!    caller, or of a lock with known waiters, are sent separately.
//! 2. The script skips a lock that others wait for, or that we do not hold. Such a lock is then extended by a separate command. If the
//!    server has not executed the script, this happens for each lock.
//! 3. A separate extension may then come behind commands that were sent later. It is safe for the reasons in `lost_script`, where the
//!    server has lost the script. It never creates a lock. It is not sent if no caller waits for its reply any more, because the last
//!    command of its token may already have been sent. It makes no lease shorter, because a longer extension may have been sent.
//! 4. A server may refuse the script permanently, because some of the keys are forbidden or not at this server. It gets no further call of
//!    this script on this connection.

use super::answer::refused;
use super::lost_script::is_script_lost;
use super::question::{Outgoing, Question};
use super::script::millis;
use crate::protocol::command::{Command, Verb};
use redis::{Cmd, RedisError, Value};
use std::iter::{self, Peekable};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Maximum number of extensions in one call. Too small: each lock costs more. Too large: the server is blocked for longer, by about a
/// microsecond for each lock.
const LARGEST: usize = 64;

/// Returns the ttl of a `command` that may be combined with similar ones.
pub(super) fn joins(command: &Command) -> Option<Duration> {
    match (command.verb, &command.fence) {
        (Verb::Renew { ttl }, None) if command.subject.is_plain() => Some(ttl),
        _ => None,
    }
}

/// Returns the extensions to combine with `first`: itself, and the next matching ones in `gathered`.
pub(super) fn beside(
    first: Question,
    gathered: &mut Peekable<impl Iterator<Item = Outgoing>>,
) -> impl Iterator<Item = Question> {
    let ttl = joins(&first.command);
    let is_beside =
        move |next: &Outgoing| matches!(next, Outgoing::Extension(question) if joins(&question.command) == ttl);
    let rest = iter::from_fn(move || match gathered.next_if(is_beside)? {
        Outgoing::Extension(question) => Some(question),
        Outgoing::Worded(..) => None,
    });
    iter::once(first).chain(rest).take(LARGEST)
}

/// Builds the call of a script by the command `eval`, with its digest or source.
pub(super) fn call((eval, script): (&str, &str), questions: &[Question]) -> Cmd {
    let mut call = Cmd::with_capacity(4 + 2 * questions.len(), questions.len() * 128);
    call.arg(eval).arg(script).arg(questions.len());
    for question in questions {
        call.arg(question.command.key());
    }
    let ttl = questions.first().and_then(|first| joins(&first.command)).unwrap_or_default();
    call.arg(millis(ttl));
    for question in questions {
        call.arg(question.command.token());
    }
    call
}

/// Records if the server has permanently refused combined extensions.
#[derive(Default)]
pub(super) struct Together {
    is_refused: AtomicBool,
}

impl Together {
    pub(super) fn is_taken(&self) -> bool {
        !self.is_refused.load(Ordering::Relaxed)
    }

    /// Reads the reply to the call for `many` locks. Returns a reply for each lock, and `None` for a lock that was not extended.
    pub(super) fn read(&self, many: usize, said: Result<Value, RedisError>) -> Vec<Option<Value>> {
        let answers = match said {
            Ok(answer) => read(many, &answer),
            // The script is loaded again, or will be permitted.
            Err(error) if is_script_lost(&error) || refused(&error).is_transient() => return vec![None; many],
            Err(_) => None,
        };
        answers.unwrap_or_else(|| {
            self.is_refused.store(true, Ordering::Relaxed);
            vec![None; many]
        })
    }
}

/// Reads the reply to the call for `many` locks. Returns `None` if the reply has another format.
fn read(many: usize, answer: &Value) -> Option<Vec<Option<Value>>> {
    let Value::Array(parts) = answer else { return None };
    let (time, left) = parts.split_first()?;
    let mut answers = vec![Some(EXTENDED); many];
    for number in left {
        let Value::Int(number) = number else { return None };
        let index = usize::try_from(*number).ok()?.checked_sub(1)?;
        *answers.get_mut(index)? = None;
    }
    // One copy of the server's time is enough.
    if let Some(first) = answers.iter_mut().flatten().next() {
        *first = Value::Array(vec![EXTENDED, time.clone()]);
    }
    Some(answers)
}

/// The reply to an extension of a lock without waiters.
const EXTENDED: Value = Value::Int(0);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::OwnerToken;
    use crate::lock::owner_token::ManagerId;
    use crate::node::Environment;
    use crate::node::abstention::Abstention;
    use crate::node::pending::Recipient;
    use crate::node::redis::channels::Channels;
    use crate::node::redis::live_connection::LiveConnection;
    use crate::node::redis::question::ReplyKind;
    use crate::node::redis::script::Scripts;
    use crate::node::server_facts::ServerFacts;
    use crate::protocol::command::{Claim, Notice, Subject};
    use crate::time::ballot_clock::Ballot;
    use crate::time::clock::Clock;
    use crate::time::token_clock::TokenTime;
    use std::convert::Infallible;
    use std::sync::Arc;
    use tokio::time::advance;

    const TTL: Duration = Duration::from_secs(30);
    const RENEW: Verb = Verb::Renew { ttl: TTL };

    fn question(verb: Verb) -> Question {
        let token = OwnerToken::new(ManagerId::numbered(7), TokenTime::new(1, 0));
        let command = Command { verb, fence: None, subject: Arc::new(Subject::new("order:7".into(), token)) };
        Question::new(command, None, Recipient::task().0)
    }

    #[test]
    fn only_plain_renewals_are_batched() {
        let joins = |verb, fence| joins(&Command { verb, fence, ..question(verb).command });
        assert_eq!(joins(RENEW, None), Some(TTL));
        for (verb, fence) in [
            (RENEW, Some(Ballot::known(7))),
            (Verb::Extend { ttl: TTL }, None),
            (Verb::Keep { ttl: TTL }, None),
            (Verb::Adopt { ttl: TTL }, None),
            (Verb::SetNx { ttl: TTL }, None),
            (Verb::Release { claim: TTL }, None),
        ] {
            assert_eq!(joins(verb, fence), None, "{verb:?} {fence:?}");
        }
    }

    #[test]
    fn adjacent_extensions_with_equal_ttl_are_batched_up_to_a_limit() {
        let extension = |ttl| Outgoing::Extension(question(Verb::Renew { ttl }));
        let other = || Outgoing::Worded(Cmd::new().into(), ReplyKind::Subscription);
        let many = || (0..=LARGEST).map(|_| extension(TTL)).collect::<Vec<_>>();
        let table = [
            (vec![], 1),
            (vec![extension(TTL), extension(TTL)], 3),
            (vec![extension(TTL), other(), extension(TTL)], 2),
            (vec![extension(TTL), extension(2 * TTL)], 2),
            (many(), LARGEST),
        ];
        for (next, expected) in table {
            let (all, mut next) = (next.len() + 1, next.into_iter().peekable());
            assert_eq!(beside(question(RENEW), &mut next).count(), expected);
            assert_eq!(next.count(), all - expected, "nothing is lost");
        }
    }

    /// The proofs of later replies depend on the time.
    #[tokio::test(start_paused = true)]
    async fn batch_reply_records_server_time_even_if_first_lock_is_skipped() {
        for left_alone in [vec![], vec![Value::Int(1)]] {
            let environment = Environment::for_single_node(ManagerId::numbered(7), Clock::tokio());
            let server = Arc::new(ServerFacts::new("node", Arc::clone(&environment.servers)));
            let Ok(scripts) = Scripts::loaded(Channels::of_server(""), || Ok::<_, Infallible>("digest".to_owned()));
            let live = LiveConnection::new(scripts, true, Abstention::default(), Arc::clone(&server), environment);
            // No time is earlier than the origin of the clock.
            advance(TTL).await;
            let sent = Some(server.now());
            let questions = [RENEW; 3].map(|verb| Question { sent, ..question(verb) }).into();
            let answer = [Value::BulkString(b"@1700000000.000000".into())].into_iter().chain(left_alone);
            live.extended(questions, Value::Array(answer.collect()));
            let claim = Claim { length: TTL, begun: Duration::from_secs(1_700_000_000) };
            assert!(matches!(server.proven(Notice::Claimed(claim)), Notice::Proven(_)));
        }
    }

    #[test]
    fn batched_call_lists_keys_before_ttl_and_tokens() {
        let questions = [question(RENEW), question(RENEW)];
        let [first, second] = [0, 1].map(|i: usize| questions[i].command.token().to_string());
        let call = call(("EVALSHA", "digest"), &questions);
        let words = call.args_iter().map(|word| match word {
            redis::Arg::Simple(word) => String::from_utf8(word.to_vec()).unwrap(),
            _ => panic!(),
        });
        let expected = ["EVALSHA", "digest", "2", "order:7", "order:7", "30000", &first, &second];
        assert_eq!(words.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn batch_reply_lists_skipped_locks() {
        let time = || Value::BulkString(b"@7.42".to_vec());
        let with =
            |left: &[i64]| Value::Array([time()].into_iter().chain(left.iter().map(|i| Value::Int(*i))).collect());
        let first = || Some(Value::Array(vec![EXTENDED, time()]));
        let table = [
            (with(&[]), Some(vec![first(), Some(EXTENDED)])),
            (with(&[2]), Some(vec![first(), None])),
            (with(&[1]), Some(vec![None, first()])),
            (with(&[1, 2]), Some(vec![None, None])),
            (with(&[0]), None),
            (with(&[3]), None),
            (with(&[-1]), None),
            (Value::Array(vec![]), None),
            (Value::Array(vec![time(), time()]), None),
            (Value::Okay, None),
        ];
        for (answer, expected) in table {
            assert_eq!(read(2, &answer), expected, "{answer:?}");
        }
        assert_eq!(read(0, &with(&[])), Some(vec![]));
    }

    #[test]
    fn only_a_permanent_refusal_disables_batching() {
        let said = |text: &str| redis::parse_redis_value(format!("-{text}\r\n").as_bytes()).unwrap().extract_error();
        let table =
            [("NOPERM no permission", true), ("CROSSSLOT keys", true), ("BUSY a script", false), ("OOM full", false)];
        for (text, is_refused) in table {
            let together = Together::default();
            assert_eq!(together.read(2, said(text)), [None, None]);
            assert_eq!(together.is_taken(), !is_refused, "{text}");
        }
        let together = Together::default();
        assert_eq!(together.read(1, Ok(Value::Okay)), [None]);
        assert!(!together.is_taken());
    }
}
