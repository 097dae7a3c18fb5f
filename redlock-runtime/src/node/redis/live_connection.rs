//! One connection while it lasts: it words commands, and passes answers to whoever asked.

use super::answer::{answer, refused, server_time};
use super::lost_script::{is_script_lost, may_be_repeated, repeat};
use super::outbox::Outbox;
use super::question::{Asked, Question, Wire};
use super::script::{MEMBER, Scripts, millis};
use super::side_key::register_name;
use crate::error::NodeError;
use crate::node::abstention::{Abstention, worth};
use crate::node::environment::Environment;
use crate::node::pending::Recipient;
use crate::node::server_facts::ServerFacts;
use crate::node::server_identity::DataSet;
use crate::protocol::command::{Command, Verb};
use crate::protocol::wakeup::channel;
use crate::time::ballot_clock::Ballot;
use crate::time::clock::Instant;
use redis::{Cmd, RedisError, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// The answer to one command in so many shows how far away the server is, and to all those whose time matters anyway. Smaller,
/// more looks at the clock; larger, a network that became slower is noticed later.
const SAMPLED: u32 = 64;

pub(super) struct LiveConnection {
    /// What the courier is to send.
    pub(super) outbox: Outbox,
    /// With their digests on this server.
    scripts: Scripts,
    /// Whether wake-ups can come on this connection: it speaks RESP3.
    has_pushes: bool,
    /// Whether the server has confirmed the subscription on this connection.
    is_listening: AtomicBool,
    /// Whether the server has refused the subscription.
    is_refused: AtomicBool,
    /// Whether the server has said that it is a replica: whoever it is, the next handshake shall find out.
    is_read_only: AtomicBool,
    /// How many commands were sent.
    sent: AtomicU32,
    abstention: Abstention,
    server: Arc<ServerFacts>,
    environment: Environment,
}

impl LiveConnection {
    pub(super) fn new(
        scripts: Scripts,
        has_pushes: bool,
        abstention: Abstention,
        server: Arc<ServerFacts>,
        environment: Environment,
    ) -> Self {
        let [is_listening, is_refused, is_read_only] = [const { AtomicBool::new(false) }; 3];
        let (outbox, sent) = (Outbox::default(), AtomicU32::new(0));
        Self {
            outbox,
            scripts,
            has_pushes,
            is_listening,
            is_refused,
            is_read_only,
            sent,
            abstention,
            server,
            environment,
        }
    }

    /// For how much longer the node abstains, if so.
    pub(super) fn abstains_for(&self) -> Option<Duration> {
        self.server.abstains_for(self.abstention, self.server.now())
    }

    /// Whether the server takes no writes, so that the connection is to end.
    pub(super) fn is_read_only(&self) -> bool {
        self.is_read_only.load(Ordering::Acquire)
    }

    /// Whether it matters that the server has forgotten something.
    pub(super) fn is_distrusted(&self) -> bool {
        self.server.is_distrusted()
    }

    /// Whether the server, which says that its data is `data`, still has what it had.
    pub(super) fn has_kept(&self, data: DataSet) -> bool {
        self.server.has_kept(data)
    }

    pub(super) const fn has_pushes(&self) -> bool {
        self.has_pushes
    }

    pub(super) fn is_listening(&self) -> bool {
        self.is_listening.load(Ordering::Acquire)
    }

    pub(super) fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Acquire)
    }

    /// Asks something about the server.
    pub(super) fn probe(&self, words: &[&str]) -> impl Future<Output = Result<Value, NodeError>> + use<> {
        let mut wire = Cmd::new();
        wire.arg(words);
        let answer = self.outbox.probe(wire);
        async { answer.await.unwrap_or(Err(NodeError::Disconnected)) }
    }

    /// Puts `command` into the order of the connection before it returns.
    pub(super) fn send(&self, command: Command, recipient: Recipient) {
        let script = self.scripts.of(&command);
        let wire = script.map_or_else(|| set_nx(&command), |script| script.by_digest(&command).into());
        self.server.counters.sent();
        // When a command was sent matters to an abstention, and to what its answer says of the server's clock; and of some, how
        // far away the server is. For all other commands the look at our clock is saved.
        let is_sample = self.sent.fetch_add(1, Ordering::Relaxed).is_multiple_of(SAMPLED);
        let is_timed = is_sample || self.abstention.is_any() || command.verb.tells_time();
        let sent = is_timed.then(|| self.server.now());
        if !self.outbox.put(Question::new(command, sent, recipient), wire) {
            self.server.counters.failed(1);
        }
    }

    /// Subscribes to the manager's channel, once, before any command that is sent later.
    pub(super) fn listen(&self) {
        if self.has_pushes && !self.is_listening() {
            self.outbox.subscribe(&channel(&self.environment.manager.to_string()));
        }
    }

    /// Hands an answer to whoever asked.
    pub(super) fn answered(&self, asked: Asked, value: Value) {
        match asked {
            Asked::Question(question) => self.replied(question, value.extract_error()),
            Asked::Subscription => self.subscribed(value.extract_error()),
            Asked::Probe(answer) => {
                // Whoever asked may be gone.
                let _ = answer.send(value.extract_error().map_err(|error| refused(&error)));
            }
        }
    }

    /// Hands an answer that came in parts to whoever asked. The first one is about the lock, and the others about its number.
    pub(super) fn answered_in_parts(&self, asked: Asked, lock: Value, number: &[Value]) {
        match asked {
            Asked::Question(question) => {
                let ballot = question.command.fence.map_or(0, |ballot| ballot.number);
                // An error of the others must not hide what was done to the lock.
                let parts = lock.extract_error().map(|lock| Value::Array(vec![lock, said_to(ballot, number)]));
                self.replied(question, parts);
            }
            other => self.answered(other, lock),
        }
    }

    /// There will be no answers to these: whoever waits for one is told.
    pub(super) fn unanswered(&self, asked: impl Iterator<Item = Asked>) {
        self.server.counters.failed(asked.map(|asked| u64::from(asked.disconnected())).sum());
    }

    /// Ends it: commands that were not sent are answered, and there will be no others.
    pub(super) fn close(&self) {
        self.unanswered(self.outbox.close().into_iter().map(|outgoing| outgoing.asked));
    }

    /// Commands that were sent together were answered after so long.
    pub(super) fn batch_answered(&self, sent: Instant) {
        self.server.counters.answered(self.server.now().nanos_since(sent));
    }

    /// The time by our clock.
    pub(super) fn now(&self) -> Instant {
        self.server.now()
    }

    /// Reads the answer to a command, and hands it to whoever asked.
    fn replied(&self, question: Question, value: Result<Value, RedisError>) {
        match value {
            Ok(value) => {
                if let Some(sent) = question.sent.filter(|_| self.abstains_for().is_none()) {
                    self.server.answered(sent, self.server.now());
                }
                let (answer, seen) = answer(question.command.verb, &value);
                if answer.is_err() {
                    self.server.counters.failed(1);
                }
                if let Some(seen) = seen {
                    self.environment.token_clock.observe(seen);
                }
                // A step of the server's clock has to be known before the answer, since what that proves depends on it.
                if let (Some(time), Some(sent)) = (server_time(&value), question.sent) {
                    self.server.told(time, sent);
                }
                if let (Some(ballot), Ok(reply)) = (question.command.fence, &answer) {
                    self.environment.servers.heard_of(&question.command.subject.key, ballot, reply);
                }
                let left = question.sent.and_then(|sent| self.server.abstains_for(self.abstention, sent));
                question.answer(worth(answer, left));
            }
            Err(error) if is_script_lost(&error) && may_be_repeated(&question) => {
                if !repeat(&self.outbox, &self.scripts, question, &error) {
                    self.server.counters.failed(1);
                }
            }
            Err(error) => {
                self.server.counters.failed(1);
                let error = refused(&error);
                if is_read_only(&error) {
                    self.is_read_only.store(true, Ordering::Release);
                }
                question.answer(Err(error));
            }
        }
    }

    /// Takes in the answer to the subscription.
    fn subscribed(&self, confirmation: Result<Value, RedisError>) {
        match confirmation {
            Ok(_) => {
                self.is_listening.store(true, Ordering::Release);
                self.environment.changed.notify_waiters();
            }
            Err(error) => {
                self.server.does_not_tell(&refused(&error));
                self.is_refused.store(true, Ordering::Release);
                self.environment.changed.notify_waiters();
            }
        }
    }
}

/// Whether a server refuses to write because it follows another one. Before Redis 7, the error of a script has the code of
/// the command in it somewhere in its text.
fn is_read_only(error: &NodeError) -> bool {
    matches!(error, NodeError::Refused(answer) if answer.contains("READONLY "))
}

/// The plain `SET key token NX PX ttl`, which needs no script; and behind it the ballot, if there is one, which needs none
/// either: whether the lock was free does not matter to it.
fn set_nx(command: &Command) -> Wire {
    let (key, token) = (command.key(), command.token());
    let mut set = Cmd::with_capacity(6, key.len() + token.len() + 32);
    set.arg("SET").arg(key).arg(token).arg("NX");
    if let Verb::SetNx { ttl } = command.verb {
        set.arg("PX").arg(millis(ttl));
    }
    let Some(ballot) = command.fence else { return set.into() };
    let register = register_name(key);
    let (mut propose, mut read) = (Cmd::new(), Cmd::new());
    propose.arg("ZADD").arg(&register);
    if ballot == Ballot::LOOK {
        propose.arg("XX");
    }
    propose.arg("GT").arg("CH").arg(ballot.number).arg(MEMBER);
    read.arg("ZSCORE").arg(&register).arg(MEMBER);
    Wire { first: set, rest: vec![propose, read] }
}

/// What a node says to a ballot by its answers to `ZADD` and `ZSCORE`, in the words of `lua/fence.lua`.
fn said_to(ballot: u64, answers: &[Value]) -> Value {
    let ballot = i64::try_from(ballot).unwrap_or(0);
    match answers {
        [Value::Int(1), _] => Value::Int(ballot),
        [Value::Int(0), largest] => Value::Int(-score(largest).unwrap_or(0)),
        _ => Value::Int(0),
    }
}

/// A score that is a whole number.
#[expect(clippy::cast_possible_truncation, reason = "what is no whole number below 2^53 becomes none that is used")]
pub(super) fn score(value: &Value) -> Option<i64> {
    let score = match value {
        Value::Double(score) => *score,
        // Some servers write a number with many zeros as `1.4e+12`.
        Value::BulkString(text) => str::from_utf8(text).ok()?.parse::<f64>().ok()?,
        _ => return None,
    };
    Some(score as i64)
}
