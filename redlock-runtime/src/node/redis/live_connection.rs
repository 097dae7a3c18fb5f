//! One live connection: it encodes commands, and passes replies to the callers.

use super::acl_hint::{is_forbidden_key, with_rules};
use super::answer::{Untold, answer, parse_time_reply, refused, server_time};
use super::channels::Channels;
use super::cluster::redirection::{Next, Redirect, is_refusal_to_serve, is_still_wanted, is_torn, next, redirection};
use super::comparisons::Comparisons;
use super::confirmation::confirmed;
use super::endpoint::Located;
use super::extensions::{self, Together};
use super::lost_script::{is_abandoned, is_script_lost, may_be_repeated, repeat};
use super::needed::Needed;
use super::outbox::Outbox;
use super::question::{Form, Outgoing, Question, ReplyKind, Wire};
use super::script::Scripts;
use super::wording::{ballot, leave_queue, said_to, without_script};
use crate::error::NodeError;
use crate::lock::owner_token::ManagerId;
use crate::node::abstention::{Abstention, worth};
use crate::node::environment::{Environment, Replicas};
use crate::node::pending::Recipient;
use crate::node::report::{Purpose, Refusal};
use crate::node::server_facts::ServerFacts;
use crate::node::server_identity::DataSet;
use crate::protocol::command::{Answer, Command, Reply, Verb};
use crate::time::clock::Instant;
use redis::{Cmd, RedisError, Value};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// One in this many replies measures the round trip to the server, in addition to all replies whose time matters anyway. Too small: many
/// reads of the clock. Too large: a slower network is noticed late.
const SAMPLED: u32 = 64;

pub(super) struct LiveConnection {
    /// Commands that the I/O task must send.
    pub(super) outbox: Outbox,
    /// The scripts, with their digests on this server.
    scripts: Scripts,
    /// The scripts for a server where clients subscribe to patterns that match the channels. Loaded when they are first needed.
    scripts_with_patterns: OnceLock<Box<Scripts>>,
    /// Number of clients that subscribe to such patterns.
    pattern_subscribers: AtomicU64,
    /// `true` if the connection can receive wake-ups: it speaks RESP3, and no message was too long before.
    has_pushes: bool,
    /// `true` if the server has confirmed the subscription on this connection.
    is_listening: AtomicBool,
    /// `true` if the server has refused the subscription.
    is_refused: AtomicBool,
    /// Location of the server as it was reported, if the server has no fixed address.
    located: OnceLock<Located>,
    /// Reason to end the connection although it is intact: the server accepts no locks, or is no longer the master. The next handshake
    /// finds out who the server is.
    end: OnceLock<NodeError>,
    /// The address at the other end, if it is a TCP connection.
    peer: OnceLock<SocketAddr>,
    /// `true` if the name of the server now leads to another server.
    is_left: AtomicBool,
    together: Together,
    /// Commands that the user may not run. A user who lacks one of them acquires no lock.
    pub(super) needed: Needed,
    /// Comparisons of the settings of this process with those of others.
    pub(super) comparisons: Comparisons,
    /// Number of commands sent.
    sent: AtomicU32,
    abstention: Abstention,
    server: Arc<ServerFacts>,
    environment: Environment,
    /// Target of the commands that this server redirects, if it is a member of a cluster.
    redirect: OnceLock<Arc<dyn Redirect>>,
}

impl LiveConnection {
    pub(super) fn new(
        scripts: Scripts,
        has_pushes: bool,
        abstention: Abstention,
        server: Arc<ServerFacts>,
        environment: Environment,
    ) -> Self {
        let [is_listening, is_refused, is_left] = [const { AtomicBool::new(false) }; 3];
        let (outbox, sent, redirect) = (Outbox::default(), AtomicU32::new(0), OnceLock::new());
        let (located, end, peer) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Self {
            outbox,
            scripts,
            scripts_with_patterns: OnceLock::new(),
            pattern_subscribers: AtomicU64::new(0),
            has_pushes,
            is_listening,
            is_refused,
            located,
            end,
            peer,
            is_left,
            together: Together::default(),
            needed: Needed::default(),
            comparisons: Comparisons::default(),
            sent,
            abstention,
            server,
            environment,
            redirect,
        }
    }

    /// Returns the remaining time for which the node abstains, if it does.
    pub(super) fn abstains_for(&self) -> Option<Duration> {
        self.server.abstains_for(self.abstention, self.server.now())
    }

    /// Records the location of the server as it was reported.
    pub(super) fn located_at(&self, located: Located) {
        // It is set only once.
        let _ = self.located.set(located);
    }

    /// Returns the location of the server as it was reported, if the server has no fixed address.
    pub(super) fn located(&self) -> Option<&Located> {
        self.located.get()
    }

    /// Ends the connection because of `error`.
    pub(super) fn end(&self, error: NodeError) {
        // The first reason is kept.
        let _ = self.end.set(error);
        // The I/O task checks the reason when it has a command to send.
        drop(self.probe(&["PING"]));
    }

    /// Records that the connection leads to the address `peer`.
    pub(super) fn connected_to(&self, peer: SocketAddr) {
        // It is set only once.
        let _ = self.peer.set(peer);
    }

    /// Returns the address at the other end, if it is a TCP connection.
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        self.peer.get().copied()
    }

    /// Ends the connection because of `error`: its server is no longer the node.
    pub(super) fn leave(&self, error: NodeError) {
        self.is_left.store(true, Ordering::Release);
        self.end(error);
    }

    /// Returns `true` if the server was left.
    pub(super) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::Acquire)
    }

    /// Returns the reason to end the connection, if there is one.
    pub(super) fn end_reason(&self) -> Option<&NodeError> {
        self.end.get()
    }

    /// Returns `true` if a loss of data by the server would matter.
    pub(super) fn is_distrusted(&self) -> bool {
        self.server.is_distrusted()
    }

    /// Returns `true` if the server, which reports the data set `data`, still has its previous data.
    pub(super) fn has_kept(&self, data: DataSet) -> bool {
        self.server.has_kept(data)
    }

    /// Records that the server has discarded data and has not been replaced.
    pub(super) fn on_data_discarded(&self) {
        self.server.on_data_discarded();
    }

    /// Returns the known facts about the server.
    pub(super) fn server(&self) -> &ServerFacts {
        &self.server
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

    /// Sends a query about the server.
    pub(super) fn probe(&self, words: &[&str]) -> impl Future<Output = Result<Value, NodeError>> + use<> {
        let mut wire = Cmd::new();
        wire.arg(words);
        self.probe_with(wire)
    }

    /// Sends a command that is not about a lock.
    pub(super) fn probe_with(&self, command: Cmd) -> impl Future<Output = Result<Value, NodeError>> + use<> {
        let answer = self.outbox.probe(command);
        async { answer.await.unwrap_or(Err(NodeError::Disconnected)) }
    }

    /// Returns the id of our manager.
    pub(super) fn manager(&self) -> ManagerId {
        self.environment.manager
    }

    /// Checks that the user may run `ASKING`, and nothing else. `ASKING` applies to the next command, which must not be the command of a
    /// caller: the server would execute it although the slot of its key is still on its way there.
    pub(super) fn try_asking(&self) -> impl Future<Output = Result<Value, NodeError>> + use<> {
        let [asking, ping] = ["ASKING", "PING"].map(|word| {
            let mut wire = Cmd::new();
            wire.arg(word);
            wire
        });
        let answer = self.outbox.probe(Wire { first: asking, rest: vec![ping] });
        async { answer.await.unwrap_or(Err(NodeError::Disconnected)) }
    }

    /// Sends commands that the server redirects through `redirect`. Only the first call has an effect.
    pub(super) fn set_redirect(&self, redirect: &Arc<dyn Redirect>) {
        let _ = self.redirect.set(Arc::clone(redirect));
    }

    /// Queues `command` on the connection before it returns.
    pub(super) fn send(&self, command: Command, recipient: Recipient) {
        self.send_to(command, recipient, None);
    }

    /// Like `send`, for a command whose reply proves nothing about a lease before `abstains_until`.
    pub(super) fn send_to(&self, command: Command, recipient: Recipient, abstains_until: Option<Instant>) {
        if let Some(refusal) = self.needed.refusal(&command) {
            return recipient.answer(Err(refusal));
        }
        let is_sample = self.sent.fetch_add(1, Ordering::Relaxed).is_multiple_of(SAMPLED);
        let is_timed = is_sample || abstains_until.is_some() || self.is_timed(&command);
        let sent = is_timed.then(|| self.server.now());
        if let Some(now) = command.fence.and_then(|ballot| ballot.drawn_at()) {
            self.keep_time_fresh(now);
        } else if command.verb.takes_the_lock() {
            self.query_time_if_due();
        } else if let Some(now) = sent {
            self.compare_settings(now);
        }
        let form = self.form_of(&command);
        let question = Question { form, abstains_until, ..Question::new(command, sent, recipient) };
        self.server.counters.sent();
        if self.is_extended_together(&question) {
            self.count_failure_unless(self.outbox.put_extension(question));
        } else {
            self.put(question);
        }
    }

    /// Queries the time of the server, if its last known time is too old.
    pub(super) fn keep_time_fresh(&self, now: Instant) {
        self.compare_settings(now);
        if self.server.try_begin_time_query(now) {
            // `now` may be earlier: a ballot is sent again to nodes that are asked later.
            self.outbox.query_time(self.server.now());
        }
    }

    /// Queries the time of the server if its clock was last compared too long ago: short locks are never renewed, and reveal no clock step.
    fn query_time_if_due(&self) {
        let now = self.server.now();
        self.compare_settings(now);
        if self.server.try_begin_step_check(now) {
            self.outbox.query_time(now);
        }
    }

    /// Requests a comparison of the settings with those of other processes, if the last one was too long ago.
    fn compare_settings(&self, now: Instant) {
        if self.server.try_begin_comparison(now) {
            self.comparisons.request();
        }
    }

    /// Queues `question` on the connection, as a separate command.
    fn put(&self, question: Question) {
        let wire = self.wire(&question);
        self.count_failure_unless(self.outbox.put(question, wire));
    }

    /// Counts a command that could not be queued as failed.
    fn count_failure_unless(&self, is_put: bool) {
        if !is_put {
            self.server.counters.failed(1);
        }
    }

    /// Returns `true` if `question` is sent together with others. The keys of a cluster member have different slots, so its commands are
    /// sent separately.
    fn is_extended_together(&self, question: &Question) -> bool {
        extensions::joins(&question.command).is_some() && self.together.is_taken() && self.redirect.get().is_none()
    }

    /// Queues a command that another member has refused, unless its reply is no longer wanted.
    pub(super) fn send_on(&self, mut question: Question) {
        question.is_late = question.command.verb.may_be_late();
        let wire = self.wire(&question);
        if question.sent.is_none() && (question.abstains_until.is_some() || self.is_timed(&question.command)) {
            question.sent = Some(self.server.now());
        }
        question.is_repeated = false;
        self.server.counters.sent();
        self.count_failure_unless(self.outbox.put_if(question, wire, is_still_wanted));
    }

    fn wire(&self, question: &Question) -> Wire {
        if let Form::Queue(_) = question.form {
            return leave_queue(&question.command);
        }
        let scripts = self.scripts();
        let Some(script) = scripts.for_question(question) else {
            return without_script(&question.command, self.namespace());
        };
        let rest =
            if question.form == Form::Checked { ballot(&question.command, self.namespace()) } else { Vec::new() };
        Wire { first: script.call(question, &scripts.channels), rest }
    }

    /// Returns the keys that `command` names. A plain `SET` names only the lock, so the server does not check the permission for the queue,
    /// which a release needs.
    fn form_of(&self, command: &Command) -> Form {
        let is_plain_set = matches!(command.verb, Verb::SetNx { .. }) && command.subject.is_plain();
        if !is_plain_set || !self.server.forbidden_queue.is_known() {
            return Form::Whole;
        }
        if self.server.forbidden_queue.is_question_due(self.server.now()) {
            // The permission may have been granted in the meantime.
            self.needed.was_refused.notify_one();
        }
        Form::Checked
    }

    /// Records the permissions of the user, as the server has just reported them.
    pub(super) fn record_permissions(&self, refusals: &[Refusal]) {
        self.needed.record(refusals, self.namespace());
        if !refusals.iter().any(|refusal| refusal.purpose == Purpose::SomeLocks) {
            self.server.forbidden_queue.clear();
        }
    }

    /// Returns `true` if the time of sending `command` matters: to an abstention, or to the clock of the server that its reply reveals. A
    /// sample of the other commands measures the round trip; the rest saves the reading of the clock.
    fn is_timed(&self, command: &Command) -> bool {
        let may_abstain = self.abstention.is_any() && self.abstention.is_any_after(self.server.now());
        may_abstain || command.verb.tells_time()
    }

    /// Builds the single command for extensions that are sent together.
    pub(super) fn extension(&self, questions: &[Question]) -> Cmd {
        match questions {
            [alone] => self.wire(alone).first,
            several => {
                let (eval, script) = self.scripts.extend_many.eval(self.channels());
                extensions::call((eval, &script), several)
            }
        }
    }

    /// Returns `true` if the server stores the scripts, so that each command contains only a digest.
    pub(super) const fn stores_scripts(&self) -> bool {
        self.scripts.extend_many.is_loaded()
    }

    /// Returns the scripts to call.
    fn scripts(&self) -> &Scripts {
        let counting = if self.pattern_subscribers() > 0 { self.scripts_with_patterns.get() } else { None };
        counting.map_or(&self.scripts, |scripts| &**scripts)
    }

    /// Returns how many clients subscribed to patterns that match the channels, when they were last counted.
    pub(super) fn pattern_subscribers(&self) -> u64 {
        self.pattern_subscribers.load(Ordering::Relaxed)
    }

    /// Records the number of pattern subscribers.
    pub(super) fn set_pattern_subscribers(&self, number: u64) {
        self.pattern_subscribers.store(number, Ordering::Relaxed);
    }

    /// Returns `true` if the scripts that subtract pattern subscribers are loaded.
    pub(super) fn has_scripts_with_patterns(&self) -> bool {
        self.scripts_with_patterns.get().is_some()
    }

    /// Uses these scripts while there are pattern subscribers. Only the first call has an effect.
    pub(super) fn load_scripts_with_patterns(&self, scripts: Scripts) {
        let _ = self.scripts_with_patterns.set(Box::new(scripts));
    }

    /// Returns the channels on which managers of this server are notified.
    pub(super) const fn channels(&self) -> &Channels {
        &self.scripts.channels
    }

    /// Returns the prefix of the keys of our manager.
    pub(super) fn namespace(&self) -> &str {
        self.channels().namespace()
    }

    /// Returns the channel of our manager.
    pub(super) fn own_channel(&self) -> String {
        self.channels().of(&self.environment.manager.to_string())
    }

    /// Subscribes to the manager's channel, once, before any command that is sent later.
    pub(super) fn listen(&self) {
        if self.has_pushes && !self.is_listening() {
            self.outbox.subscribe(&self.own_channel());
        }
    }

    /// Passes a reply to its caller.
    pub(super) fn answered(&self, asked: ReplyKind, value: Value) {
        match asked {
            ReplyKind::Question(question) => self.replied(question, value.extract_error()),
            ReplyKind::Subscription => self.subscribed(value.extract_error()),
            // If `ASKING` is refused, so is the command behind it.
            ReplyKind::Asking => {}
            ReplyKind::Time(sent) => self.told(sent, value),
            ReplyKind::Probe(answer) => {
                // The caller may be gone.
                let _ = answer.send(value.extract_error().map_err(|error| refused(&error)));
            }
        }
    }

    /// Handles the reply to `TIME`, which a user may be forbidden to run.
    fn told(&self, sent: Instant, value: Value) {
        match parse_time_reply(value) {
            Ok(time) => self.server.told(time, sent),
            Err(Untold::Forbidden) => self.server.on_time_refused(self.server.now()),
            Err(Untold::Failed) => {}
        }
    }

    /// Distributes the reply to extensions that were sent together. Those that were not executed are sent again, each as a separate
    /// command.
    pub(super) fn extended(&self, questions: Vec<Question>, value: Value) {
        let said = value.extract_error();
        if said.as_ref().is_err_and(is_script_lost) {
            // The script is loaded for the next extensions.
            drop(self.probe(&["SCRIPT", "LOAD", &self.scripts.extend_many.source(self.channels())]));
        }
        let answers = self.together.read(questions.len(), said);
        for (mut question, answer) in questions.into_iter().zip(answers) {
            let tells_time = matches!(answer, Some(Value::Array(_)));
            if !tells_time && question.abstains_until.is_none() && !self.abstention.is_any() {
                // The extension whose reply contains the time measures the round trip for all of them.
                question.sent = None;
            }
            match answer {
                Some(answer) => self.replied(question, Ok(answer)),
                None => self.send_late(question),
            }
        }
    }

    /// Sends an extension again that was not executed with others. It now comes behind the commands that were sent in the meantime.
    fn send_late(&self, mut question: Question) {
        (question.sent, question.is_late) = (Some(self.server.now()), true);
        let wire = self.wire(&question);
        self.count_failure_unless(self.outbox.put_if(question, wire, |question| !is_abandoned(question)));
    }

    /// Passes a reply of several parts to the caller. The first part is about the lock, and the others about its fencing number.
    pub(super) fn answered_in_parts(&self, asked: ReplyKind, lock: Value, number: &[Value]) {
        match asked {
            ReplyKind::Question(question) => {
                let ballot = question.command.fence.map_or(0, |ballot| ballot.number);
                if lock == Value::Okay && self.redirect.get().is_some() && number.iter().any(is_redirected) {
                    // The lock was taken, and the slot left before the number was set. The number of the lock is unknown.
                    let said = "the number of a lock whose slot has left".into();
                    return question.answer(Err(NodeError::UnexpectedReply(said)));
                }
                // An error of the other parts must not hide the effect on the lock.
                let parts = lock.extract_error().map(|lock| Value::Array(vec![lock, said_to(ballot, number)]));
                self.replied(question, parts);
            }
            other => self.answered(other, lock),
        }
    }

    /// Reports to all these callers that no reply will come.
    pub(super) fn unanswered(&self, asked: impl Iterator<Item = ReplyKind>) {
        self.server.counters.failed(asked.map(|asked| u64::from(asked.disconnected())).sum());
    }

    /// Closes the connection: commands that were not sent fail, and no others are accepted.
    pub(super) fn close(&self) {
        self.unanswered(self.outbox.close().into_iter().map(Outgoing::asked));
    }

    /// Records the round trip of commands that were sent together.
    pub(super) fn batch_answered(&self, sent: Instant) {
        self.server.counters.answered(self.server.now().nanos_since(sent));
    }

    /// Returns the time by our clock.
    pub(super) fn now(&self) -> Instant {
        self.server.now()
    }

    /// Reads the reply to a command, and passes it to the caller.
    fn replied(&self, question: Question, value: Result<Value, RedisError>) {
        match value {
            Ok(_) if let Form::Queue(reply) = &question.form => {
                let reply = (**reply).clone();
                question.answer(Ok(reply));
            }
            Ok(value) => {
                // A command that was redirected has taken a longer path.
                let came_straight = question.redirects == 0;
                if let Some(redirect) = self.redirect.get().filter(|_| !came_straight) {
                    redirect.on_redirected_execution();
                }
                if let Some(sent) = question.sent.filter(|_| came_straight && self.abstains_for().is_none()) {
                    self.server.answered(sent, self.server.now());
                }
                let (answer, seen) = answer(question.command.verb, &value);
                if answer.is_err() {
                    self.server.counters.failed(1);
                }
                if let Some(seen) = seen {
                    self.environment.token_clock.observe(seen);
                }
                // A step of the server's clock must be known before the reply is used: the proof in the reply depends on it.
                if let (Some(time), Some(sent)) = (server_time(&value), question.sent) {
                    self.server.told(time, sent);
                }
                if question.form == Form::Own && matches!(answer, Ok(Reply::Released | Reply::Extended { .. })) {
                    self.server.on_queue_forbidden(question.command.key());
                }
                if let (Some(proposal), Ok(reply)) = (question.command.proposal(), &answer) {
                    self.environment.servers.on_proposal_reply(&proposal, self.server.node(), reply);
                }
                let left = question.sent.and_then(|sent| self.abstained_for(sent, question.abstains_until));
                self.finish(question, worth(answer, left));
            }
            Err(error) if is_script_lost(&error) && may_be_repeated(&question) => {
                if !repeat(&self.outbox, self.scripts(), question, &error) {
                    self.server.counters.failed(1);
                }
            }
            Err(error) => self.refused(question, &error),
        }
    }

    /// Returns how long after `at` replies prove nothing: while the server abstains, or while the previous owner of its slot does.
    fn abstained_for(&self, at: Instant, place_abstains_until: Option<Instant>) -> Option<Duration> {
        let of_place = place_abstains_until.map(|until| until.since(at)).filter(|left| !left.is_zero());
        self.server.abstains_for(self.abstention, at).max(of_place)
    }

    /// Handles an error: the server has not executed a command, or not completely.
    fn refused(&self, mut question: Question, error: &RedisError) {
        let said = refused(error);
        if may_name_only_locks(&question) && is_forbidden_key(&said) {
            return self.name_only_locks(question);
        }
        self.server.counters.failed(1);
        if is_read_only(&said) {
            let _ = self.end.set(NodeError::Unreachable("the server takes no writes any more".into()));
        }
        match self.redirect.get().map(|redirect| (redirect, redirection(error, redirect.host()))) {
            Some((redirect, Some(redirection))) => {
                // This server may have forgotten a lock. The member that it names has never known that lock.
                let until = self.abstains_for().map(|left| self.server.now().after(left));
                question.abstains_until = question.abstains_until.max(until);
                redirect.redirect(question, redirection, &said);
            }
            Some(_) if is_torn(&said) => question.answer(Err(NodeError::UnexpectedReply(said.to_string().into()))),
            Some((redirect, None)) if is_refusal_to_serve(&said) => {
                redirect.request_map();
                self.finish(question, Err(said));
            }
            _ if is_forbidden_key(&said) => {
                let answer = match &question.form {
                    // The release was executed. A token cannot be in a queue that its user may not use.
                    Form::Queue(reply) => Ok((**reply).clone()),
                    _ => Err(with_rules(said, &question.command, self.namespace())),
                };
                self.finish(question, answer);
            }
            _ => self.finish(question, Err(said)),
        }
    }

    /// Sends a command once more that the server has not executed, because the user may not use one of its keys. It now names only the
    /// locks: a plain `SET` may have taken them even so. Like a command whose script was lost, it comes behind commands that were sent
    /// later; see `lost_script`.
    fn name_only_locks(&self, mut question: Question) {
        (question.form, question.is_late, question.is_repeated) =
            (Form::Own, question.command.verb.may_be_late(), false);
        question.sent = question.sent.map(|_| self.server.now());
        let wire = self.wire(&question);
        self.server.counters.sent();
        self.count_failure_unless(self.outbox.put_if(question, wire, |question| !is_abandoned(question)));
    }

    /// Returns the replicas that have to confirm every lease.
    pub(super) const fn replicas(&self) -> Option<Replicas> {
        self.environment.replicas
    }

    /// Passes the reply to the caller, unless the command needs a further step.
    fn finish(&self, mut question: Question, answer: Answer) {
        let answer = confirmed(answer, question.confirmation.take());
        match (next(&question, answer), self.redirect.get()) {
            (Next::LeaveQueue(reply), Some(redirect)) => redirect.leave_queue(question, reply),
            (Next::LeaveQueue(reply), None) => question.answer(Ok(reply)),
            (Next::Answer(answer), _) => question.answer(answer),
        }
    }

    /// Handles the reply to the subscription.
    fn subscribed(&self, confirmation: Result<Value, RedisError>) {
        match confirmation {
            Ok(_) => {
                self.is_listening.store(true, Ordering::Release);
                self.environment.changed.notify_waiters();
            }
            Err(error) => {
                self.server.on_subscription_refused(&refused(&error));
                self.is_refused.store(true, Ordering::Release);
                self.environment.changed.notify_waiters();
            }
        }
    }
}

/// Returns `true` if the command was sent with the names of queues, and can be sent without them.
fn may_name_only_locks(question: &Question) -> bool {
    let can = match question.command.verb {
        Verb::Release { .. } | Verb::Keep { .. } => true,
        Verb::Extend { .. } | Verb::Renew { .. } | Verb::Adopt { .. } => question.command.fence.is_none(),
        _ => false,
    };
    can && !matches!(question.form, Form::Own | Form::Queue(_))
}

/// Returns `true` if a server refuses to write because it is a replica. Before Redis 7, the error of a script contains the code of the
/// command anywhere in its text.
fn is_read_only(error: &NodeError) -> bool {
    matches!(error, NodeError::Refused(answer) if answer.contains("READONLY "))
}

/// Returns `true` if the value is a redirection by a member of a cluster.
fn is_redirected(value: &Value) -> bool {
    matches!(value, Value::ServerError(error) if redirection(&error.clone().into(), "").is_some())
}

#[cfg(test)]
pub(super) mod tests;
