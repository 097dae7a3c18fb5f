//! What becomes of a command that a member of a cluster does not execute, because the slot of its key is elsewhere.
//!
//! A member refuses such a command as a whole and says where to go: `MOVED` when another member has the slot; `ASK` when the
//! slot is on its way to another one and the key is not here any more; `TRYAGAIN` when the slot is on its way and of the
//! names of a command some are here and some are not, which is so of a lock and its queue nearly always.
//!
//! 1. A command that was refused with `MOVED` or `ASK` is put into the order of the member that was named, behind an
//!    `ASKING` in the second case, with nothing between the two. It goes on so at most [`MOST`] times. A command that ends
//!    there, or meets a member without a connection, has not been executed and is answered so. Two members that each send it
//!    to the other one, which nothing mends but an operator, are so left after a few round trips.
//! 2. A command that was refused with `TRYAGAIN` is sent once more to the member that has the slot, which is who has refused it or
//!    has sent it to who has, whatever the map says; and in a form that names the lock alone ([`Form::Alone`]): whatever its script would do with the queue it does with the name of the lock, where it
//!    finds none. So holders renew and release while a slot is on its way, which may take minutes; whoever waits comes by
//!    its timers; and no queue is made at the new member while one is left at the old one, which could never be brought
//!    together. A release takes its token out of the queue after that by a command of its own.
//! 3. A command other than a release is not sent again when nobody waits for its answer any more. That is looked at under the
//!    mutex of the outbox that it goes into, as in `lost_script`, and for the same reason: the last command about the token may
//!    stand in the order already. One that takes the lock would take it for good then, and a renewal would undo that the key
//!    ends soon.
//!
//! **No release is overtaken by an acquisition.** Let A take the lock for a token, and R be its release. The answer to A is
//! dropped before R is sent (`Verb::Acquire`), and only A can do harm behind R: all other commands change nothing for a token
//! that has no lock, `Yield` included. Wherever A and R are sent, by whatever map, and however often the slot moves:
//!
//! - *Both are put into the order of one member.* If A was put in first, it is executed first or refused there. If R was,
//!   A is redirected after R, and rule 3 has seen that nobody waits: it is not put in.
//! - *A is on its way to a member, and R goes to another one*, because the map has changed or R was redirected. R is executed
//!   only where the slot is, or is coming to for a key that has left. So the member that A is sent to does not have the slot
//!   any more, or sends it away and takes no new key in it: A finds the key there only if it was brought from there later than
//!   A, and then R is executed behind that. Otherwise A is refused, redirected after R, and rule 3 holds.
//! - *A was executed before the key or the slot went elsewhere.* The key goes along, since a member gives up a slot only when
//!   no key is left in it; R finds it there.
//!
//! What is left is no order of commands but a fault of the cluster: a member that takes writes for a slot which it has lost,
//! as an old master that is cut off does. What it grants is gone when it comes back, and counts as any grant that was lost in
//! a failover. A slot that comes back to a member while A is on its way to it leaves the key until its lease ends.
//!
//! Commands about one token that do not take the lock may change places with others where a slot moves between them. A
//! candidate sends nothing behind a `Yield` that is not answered, and what it has sent before proves nothing; extensions find
//! the token or do not.

use super::address::MemberAddress;
use crate::error::NodeError;
use crate::node::redis::question::{Form, Question};
use crate::protocol::command::{Answer, Reply, Verb};
use redis::{ErrorKind, RedisError, ServerErrorKind};
use std::time::Duration;

/// How often one command is redirected. Fewer, and a slot that moves twice while a command is on its way costs an error;
/// more, and members that disagree on where a slot is keep a command for longer.
pub(in crate::node::redis) const MOST: u8 = 5;

/// When who has found a lock taken asks again while it cannot wait in the queue: after one to five times as long, so that all who
/// wait do not ask together. Smaller, more commands while a slot is on its way; larger, the next one has the lock later.
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// As if it stood in the queue, and the lock were free soon.
fn ask_later() -> Reply {
    Reply::Queued { left: Some(ASK_AGAIN.mul_f64(1.0 + 4.0 * fastrand::f64())), rank: 0 }
}

/// Why a member has not executed a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::node::redis) enum Redirection {
    /// This member has the slot.
    Moved(MemberAddress),
    /// This member may have the key, since the slot is on its way to it.
    Ask(MemberAddress),
    /// Not all keys of the command are at one member.
    TryAgain,
}

/// Sends commands to other members.
pub(in crate::node::redis) trait Redirect: Send + Sync {
    /// Sends `question` on, which a member has refused with `error`. Called in the task of that member's connection.
    fn redirect(&self, question: Question, redirection: Redirection, error: &NodeError);

    /// Sends what takes the token out of its queue, wherever that is, after its release has had this `reply`.
    fn leave_queue(&self, question: Question, reply: Reply);

    /// The member has refused a command for a reason that others would not have: it may not have the slot any more.
    fn want_map(&self);

    /// The host of the member.
    fn host(&self) -> &str;
}

/// Where a command is to go, if `error` says that; `answered` is the host of the member that does.
pub(in crate::node::redis) fn redirection(error: &RedisError, answered: &str) -> Option<Redirection> {
    let ErrorKind::Server(kind) = error.kind() else { return None };
    let named = || error.redirect_node().and_then(|(address, _)| MemberAddress::parse(address, answered));
    match kind {
        ServerErrorKind::Moved => named().map(Redirection::Moved),
        ServerErrorKind::Ask => named().map(Redirection::Ask),
        ServerErrorKind::TryAgain => Some(Redirection::TryAgain),
        _ => None,
    }
}

/// Whether a command may be sent on once more.
pub(in crate::node::redis) fn may_be_redirected(question: &Question) -> bool {
    question.redirects < MOST && is_wanted_still(question)
}

/// Whether a command is to be executed although another member has refused it before: a release always, and any other one for
/// as long as somebody waits for the answer.
pub(in crate::node::redis) fn is_wanted_still(question: &Question) -> bool {
    matches!(question.command.verb, Verb::Release { .. }) || !question.recipient.is_gone()
}

/// Brings a command into a form for which its keys need not be together. `false` when there is none.
pub(in crate::node::redis) fn make_alone(question: &mut Question) -> bool {
    let proposes = question.command.fence.is_some_and(|ballot| !ballot.is_known());
    if question.form != Form::Whole || proposes {
        // A number can be drawn only where the register is.
        return false;
    }
    // A number that the token has already is told to nodes that come late, and there is none in this cluster.
    question.command.fence = None;
    question.form = Form::Alone;
    true
}

/// Brings a command back into the form that names all its keys: where the whole slot is, a release can hand the lock over.
pub(in crate::node::redis) fn make_whole(question: &mut Question) {
    if question.form == Form::Alone {
        question.form = Form::Whole;
    }
}

/// The answer to a command whose keys are not together, and which needs all of them. Who waits for the lock goes on with that.
pub(in crate::node::redis) fn unanswerable(question: &Question, error: &NodeError) -> Answer {
    match question.command.verb {
        Verb::Acquire { .. } => Ok(ask_later()),
        _ => Err(not_executed(error, question.redirects)),
    }
}

/// That a command was not executed, because of this answer of a member after so many `redirects`; another try may have more
/// luck.
pub(in crate::node::redis) fn not_executed(error: &NodeError, redirects: u8) -> NodeError {
    match error {
        NodeError::Refused(answer) if redirects >= MOST => NodeError::Refused(format!("{IN_CIRCLES}: {answer}").into()),
        NodeError::Refused(answer) if !error.is_transient() => {
            NodeError::Refused(format!("{ON_ITS_WAY}: {answer}").into())
        }
        error => error.clone(),
    }
}

const ON_ITS_WAY: &str = "TRYAGAIN the slot of the key is on its way";
const IN_CIRCLES: &str = "TRYAGAIN the members of the cluster send the command to one another; if that goes on, they do not agree \
                          on who has the slot: run redis-cli --cluster check";

/// What becomes of an answer.
pub(in crate::node::redis) enum Next {
    /// Whoever asked gets it.
    Answer(Answer),
    /// The release has done this, and could not leave the queue.
    LeaveQueue(Reply),
}

/// What becomes of the `answer` to `question`, whose script was perhaps given the name of the lock in place of its queue.
pub(in crate::node::redis) fn next(question: &Question, answer: Answer) -> Next {
    if question.form != Form::Alone {
        return Next::Answer(answer);
    }
    match (question.command.verb, answer) {
        (Verb::Release { .. }, Ok(reply)) => Next::LeaveQueue(reply),
        // It has told who has the lock that it waits, and could not join the queue.
        (Verb::Acquire { .. }, Ok(Reply::Queued { .. })) => Next::Answer(Ok(ask_later())),
        // It would have joined the queue of a lock that another program has, and has found that lock there.
        (Verb::Acquire { .. }, Err(NodeError::Refused(error))) if error.contains("WRONGTYPE") => {
            Next::Answer(Ok(ask_later()))
        }
        (_, answer) => Next::Answer(answer),
    }
}

/// Whether a member refuses to serve at all: it is cut off from the others, or follows one of them.
pub(in crate::node::redis) fn is_out_of_office(error: &NodeError) -> bool {
    let answers = ["CLUSTERDOWN ", "READONLY ", "MASTERDOWN "];
    matches!(error, NodeError::Refused(answer) if answers.iter().any(|start| answer.contains(start)))
}

/// The error of a script that has met a key which is not at this member: it may have done something before.
pub(in crate::node::redis) fn is_torn(error: &NodeError) -> bool {
    matches!(error, NodeError::Refused(answer) if answer.contains("a non local key"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::OwnerToken;
    use crate::lock::owner_token::ManagerId;
    use crate::node::abstention::Abstention;
    use crate::node::environment::Environment;
    use crate::node::pending::{Pending, Recipient};
    use crate::node::redis::answer::refused;
    use crate::node::redis::live_connection::LiveConnection;
    use crate::node::redis::question::{Asked, Outgoing};
    use crate::node::redis::script::Scripts;
    use crate::node::server_facts::ServerFacts;
    use crate::protocol::command::{Command, Subject};
    use crate::protocol::timing::CLAIM;
    use crate::time::ballot_clock::Ballot;
    use crate::time::clock::Clock;
    use crate::time::token_clock::TokenTime;
    use redis::{Cmd, Value};
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::task::{Context, Waker};

    const SET: Verb = Verb::SetNx { ttl: CLAIM };
    const ACQUIRE: Verb = Verb::Acquire { ttl: CLAIM, claim: CLAIM, holds: false };
    const ADOPT: Verb = Verb::Adopt { ttl: CLAIM };
    const EXTEND: Verb = Verb::Extend { ttl: CLAIM };
    const YIELD: Verb = Verb::Yield { claim: CLAIM };
    const RELEASE: Verb = Verb::Release { claim: CLAIM };

    fn command(verb: Verb, fence: Option<Ballot>) -> Command {
        let token = OwnerToken::new(ManagerId::numbered(7), TokenTime::new(1, 0));
        Command { verb, fence, subject: Arc::new(Subject::new("order:7".into(), token)) }
    }

    fn question(verb: Verb) -> (Question, Pending) {
        let (recipient, pending) = Recipient::task();
        (Question::new(command(verb, None), None, recipient), pending)
    }

    /// A connection to a member.
    fn live() -> LiveConnection {
        let environment = Environment::of_lone_node(ManagerId::numbered(7), Clock::Boot);
        let server = Arc::new(ServerFacts::new("member", Arc::clone(&environment.servers)));
        let Ok(scripts) = Scripts::loaded(|| Ok::<_, Infallible>("digest".to_owned()));
        LiveConnection::new(scripts, true, Abstention::default(), server, environment)
    }

    fn asked_by(is_asking: bool) -> Option<Box<MemberAddress>> {
        is_asking.then(|| Box::new(MemberAddress::new("h", 7001, "")))
    }

    fn taken(live: &LiveConnection) -> Vec<Outgoing> {
        live.outbox.take(&Context::from_waker(Waker::noop()), Vec::new())
    }

    fn words(wire: &Cmd) -> Vec<String> {
        let text =
            |word| if let redis::Arg::Simple(word) = word { String::from_utf8_lossy(word).into() } else { panic!() };
        wire.args_iter().map(text).collect()
    }

    fn error(line: &str) -> RedisError {
        value(line).extract_error().unwrap_err()
    }

    /// An answer that is an error.
    fn value(line: &str) -> Value {
        redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap()
    }

    /// Nobody knows which number it has, or whether it has any.
    #[tokio::test]
    async fn a_lock_whose_slot_left_before_its_number_was_said_is_given_back() {
        let clock = crate::time::ballot_clock::BallotClock::new(Clock::Boot);
        let members: Arc<dyn Redirect> = Arc::new(Nobody);
        for (of_number, is_torn) in [("MOVED 4438 h:7001", true), ("NOPERM no permissions", false)] {
            let (live, (recipient, pending)) = (live(), Recipient::task());
            live.redirect_with(&members);
            live.send(command(SET, clock.draw(7)), recipient);
            let outgoing = taken(&live).pop().unwrap();
            live.answered_in_parts(outgoing.asked, Value::Okay, &[value(of_number), value(of_number)]);
            let answer = pending.await;
            assert_eq!(matches!(answer, Err(NodeError::Unintelligible(_))), is_torn, "{answer:?}");
        }
    }

    /// Where no command can go.
    struct Nobody;

    impl Redirect for Nobody {
        fn redirect(&self, question: Question, _redirection: Redirection, error: &NodeError) {
            question.answer(Err(error.clone()));
        }

        fn leave_queue(&self, question: Question, reply: Reply) {
            question.answer(Ok(reply));
        }

        fn want_map(&self) {}

        fn host(&self) -> &str {
            ""
        }
    }

    #[test]
    fn what_members_say() {
        let at = |port| MemberAddress::new("h", port, "");
        let table = [
            ("MOVED 4438 h:7001", Some(Redirection::Moved(at(7001)))),
            ("MOVED 4438 :7001", Some(Redirection::Moved(MemberAddress::new("answered", 7001, "")))),
            ("ASK 4438 h:7002", Some(Redirection::Ask(at(7002)))),
            ("TRYAGAIN Multiple keys request during rehashing of slot", Some(Redirection::TryAgain)),
            ("MOVED", None),
            ("ASK 4438 h", None),
            ("CLUSTERDOWN Hash slot not served", None),
            ("NOSCRIPT No matching script", None),
            ("ERR MOVED 4438 h:7001", None),
        ];
        for (line, expected) in table {
            assert_eq!(redirection(&error(line), "answered"), expected, "{line}");
        }
        let torn = "ERR Script attempted to access a non local key in a cluster node script: 5a3f, on @user_script:7.";
        assert!(is_torn(&refused(&error(torn))) && !is_torn(&refused(&error("ERR unknown command"))));
    }

    #[test]
    fn what_nobody_waits_for_is_not_sent_on_but_for_a_release() {
        for verb in [SET, ACQUIRE, ADOPT, EXTEND, YIELD, RELEASE] {
            let (awaited, _pending) = question(verb);
            assert!(may_be_redirected(&awaited), "{verb:?}");
            let (abandoned, _) = question(verb);
            assert_eq!(may_be_redirected(&abandoned), verb == RELEASE, "{verb:?}");
        }
        let (mut question, _pending) = question(RELEASE);
        question.redirects = MOST;
        assert!(!may_be_redirected(&question));
    }

    /// The release was put in after the look at whether somebody waits, and before the acquisition was.
    #[test]
    fn nothing_is_put_behind_the_last_command() {
        for (verb, is_asking) in
            [SET, ACQUIRE, ADOPT, EXTEND].into_iter().flat_map(|verb| [(verb, false), (verb, true)])
        {
            let (live, (mut taking, pending)) = (live(), question(verb));
            assert!(may_be_redirected(&taking));
            drop(pending);
            live.send(command(RELEASE, None), Recipient::task().0);
            taking.asked_by = asked_by(is_asking);
            live.send_on(taking);
            assert_eq!(taken(&live).len(), 1, "{verb:?}: the release alone");
        }
    }

    /// A member to which a slot is on its way would send it away without the `ASKING`.
    #[test]
    fn what_was_asked_for_is_asked_for_again_when_its_script_was_lost() {
        let (live, (mut renewal, _pending)) = (live(), question(EXTEND));
        renewal.asked_by = asked_by(true);
        live.send_on(renewal);
        for (_, is_last) in [(1, false), (2, true)] {
            let mut outgoing = taken(&live).into_iter();
            let (asking, renewal) = (outgoing.next().unwrap(), outgoing.next().unwrap());
            assert!(words(&asking.wire.first) == ["ASKING"] && outgoing.next().is_none());
            if !is_last {
                live.answered(renewal.asked, value("NOSCRIPT No matching script"));
            }
        }
    }

    #[test]
    fn an_acquisition_that_is_awaited_stands_before_its_release() {
        let (live, (mut taking, _pending)) = (live(), question(ACQUIRE));
        taking.asked_by = asked_by(true);
        live.send_on(taking);
        live.send(command(RELEASE, None), Recipient::task().0);
        let taken = taken(&live);
        let [asking, taking, release] = &taken[..] else { panic!() };
        assert_eq!(words(&asking.wire.first), ["ASKING"]);
        let verb = |outgoing: &Outgoing| match &outgoing.asked {
            Asked::Question(question) => question.command.verb,
            _ => panic!(),
        };
        assert_eq!([verb(taking), verb(release)], [ACQUIRE, RELEASE]);
    }

    #[test]
    fn a_command_alone_names_the_lock_in_place_of_its_queue_and_draws_no_number() {
        let (live, known) = (live(), Ballot::known(7));
        for (verb, fence) in [(RELEASE, None), (EXTEND, None), (EXTEND, Some(known)), (ACQUIRE, None)] {
            let (recipient, _pending) = Recipient::task();
            let mut question = Question::new(command(verb, fence), None, recipient);
            assert!(make_alone(&mut question), "{verb:?}");
            live.send_on(question);
            let taken = taken(&live);
            let words = words(&taken[0].wire.first);
            assert_eq!(words[2..5], ["2", "order:7", "order:7"], "{verb:?}");
            let Some(Outgoing { asked: Asked::Question(mut question), .. }) = taken.into_iter().next() else {
                panic!()
            };
            assert!(!make_alone(&mut question), "{verb:?} is not sent so twice");
        }
        let clock = crate::time::ballot_clock::BallotClock::new(Clock::Boot);
        let (recipient, _pending) = Recipient::task();
        assert!(!make_alone(&mut Question::new(command(EXTEND, clock.draw(7)), None, recipient)));
    }

    #[test]
    fn what_has_arrived_is_given_back_with_its_queue() {
        let (mut release, _pending) = question(RELEASE);
        for (form, expected) in [
            (Form::Alone, Form::Whole),
            (Form::Whole, Form::Whole),
            (Form::Queue(Reply::Released), Form::Queue(Reply::Released)),
        ] {
            release.form = form;
            make_whole(&mut release);
            assert_eq!(release.form, expected);
        }
    }

    /// Otherwise the member would execute the next command of anybody although the slot is not there.
    #[test]
    fn who_may_say_asking_is_found_out_without_a_command_of_others() {
        let live = live();
        drop(live.try_asking());
        let [outgoing] = &taken(&live)[..] else { panic!() };
        assert_eq!(words(&outgoing.wire.first), ["ASKING"]);
        assert_eq!(outgoing.wire.rest.iter().map(words).collect::<Vec<_>>(), [["PING"]]);
    }

    #[test]
    fn what_an_answer_means_that_was_given_without_the_queue() {
        let (mut question, _pending) = question(RELEASE);
        question.form = Form::Alone;
        for reply in [Reply::Released, Reply::NotOwner] {
            assert!(matches!(next(&question, Ok(reply)), Next::LeaveQueue(left) if left == reply));
        }
        question.command.verb = ACQUIRE;
        let wrong_type = || Err(NodeError::Refused("WRONGTYPE Operation against a key".into()));
        let Next::Answer(answer) = next(&question, wrong_type()) else { panic!() };
        assert!(is_later(&answer), "{answer:?}");
        let queued = Reply::Queued { left: Some(CLAIM), rank: 3 };
        let Next::Answer(answer) = next(&question, Ok(queued)) else { panic!() };
        assert!(is_later(&answer), "{answer:?}");
        question.form = Form::Whole;
        let Next::Answer(answer) = next(&question, Ok(queued)) else { panic!() };
        assert_eq!(answer, Ok(queued));
        let Next::Answer(answer) = next(&question, wrong_type()) else { panic!() };
        assert_eq!(answer, wrong_type());
    }

    #[test]
    fn who_waits_goes_on_with_that_while_the_keys_are_not_together() {
        let error = refused(&error("TRYAGAIN Multiple keys request"));
        assert!(is_later(&unanswerable(&question(ACQUIRE).0, &error)));
        for verb in [SET, EXTEND] {
            assert_eq!(unanswerable(&question(verb).0, &error), Err(error.clone()), "{verb:?}");
        }
    }

    fn is_later(answer: &Answer) -> bool {
        matches!(answer, Ok(Reply::Queued { left: Some(left), rank: 0 }) if (ASK_AGAIN..=5 * ASK_AGAIN).contains(left))
    }

    #[test]
    fn what_was_not_executed_may_be_tried_again() {
        for line in ["MOVED 4438 h:7001", "ASK 4438 h:7001", "TRYAGAIN Multiple keys request"] {
            for (redirects, expected) in [(1, ON_ITS_WAY), (MOST, IN_CIRCLES)] {
                let said = not_executed(&refused(&error(line)), redirects);
                let (is_said, text) = (line.starts_with("TRYAGAIN"), said.to_string());
                assert!(said.is_transient() && text.contains(line), "{said}");
                assert!(text.contains(expected) || is_said && redirects < MOST, "{said}");
            }
        }
    }

    #[test]
    fn who_is_cut_off_or_follows_another_one_refuses_for_reasons_of_its_own() {
        let table = [
            ("CLUSTERDOWN The cluster is down", true),
            ("READONLY You can't write against a read only replica.", true),
            ("MASTERDOWN Link with MASTER is down", true),
            ("OOM command not allowed", false),
            ("TRYAGAIN Multiple keys request", false),
        ];
        for (line, expected) in table {
            assert_eq!(is_out_of_office(&refused(&error(line))), expected, "{line}");
        }
    }
}
