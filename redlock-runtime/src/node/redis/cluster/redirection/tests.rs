//! Tests of redirections: which commands are forwarded, in which form, and in which order.

use super::*;
use crate::lock::OwnerToken;
use crate::lock::owner_token::ManagerId;
use crate::node::pending::{Pending, Recipient};
use crate::node::redis::answer::refused;
use crate::node::redis::live_connection::LiveConnection;
use crate::node::redis::live_connection::tests::live;
use crate::node::redis::question::{Outgoing, ReplyKind};
use crate::protocol::command::{Command, Subject};
use crate::protocol::timing::CLAIM;
use crate::time::ballot_clock::{Ballot, BallotClock, Believed};
use crate::time::clock::Clock;
use crate::time::token_clock::TokenTime;
use redis::{Cmd, Value};
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

fn asked_by(is_asking: bool) -> Option<Box<MemberAddress>> {
    is_asking.then(|| Box::new(MemberAddress::new("h", 7001, "")))
}

fn taken(live: &LiveConnection) -> Vec<Outgoing> {
    live.outbox.take(&Context::from_waker(Waker::noop()), Vec::new())
}

fn first(outgoing: &Outgoing) -> &Cmd {
    if let Outgoing::Worded(wire, _) = outgoing { &wire.first } else { panic!() }
}

fn words(wire: &Cmd) -> Vec<String> {
    let text = |word| if let redis::Arg::Simple(word) = word { String::from_utf8_lossy(word).into() } else { panic!() };
    wire.args_iter().map(text).collect()
}

fn error(line: &str) -> RedisError {
    value(line).extract_error().unwrap_err()
}

/// Returns a reply that is an error.
fn value(line: &str) -> Value {
    redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap()
}

/// The number of such a lock is unknown, and it may have none.
#[tokio::test]
async fn lock_is_released_if_its_slot_moved_before_its_number_arrived() {
    let clock = BallotClock::new(Clock::Boot);
    clock.believe(Believed::Ours);
    let members: Arc<dyn Redirect> = Arc::new(Nobody);
    for (of_number, is_torn) in [("MOVED 4438 h:7001", true), ("NOPERM no permissions", false)] {
        let (live, (recipient, pending)) = (live(), Recipient::task());
        live.set_redirect(&members);
        live.send(command(SET, clock.draw(7)), recipient);
        let outgoing = taken(&live).pop().unwrap();
        live.answered_in_parts(outgoing.asked(), Value::Okay, &[value(of_number), value(of_number)]);
        let answer = pending.await;
        assert_eq!(matches!(answer, Err(NodeError::UnexpectedReply(_))), is_torn, "{answer:?}");
    }
}

/// A cluster without another member.
struct Nobody;

impl Redirect for Nobody {
    fn on_redirected_execution(&self) {}

    fn redirect(&self, question: Question, _redirection: Redirection, error: &NodeError) {
        question.answer(Err(error.clone()));
    }

    fn leave_queue(&self, question: Question, reply: Reply) {
        question.answer(Ok(reply));
    }

    fn request_map(&self) {}

    fn host(&self) -> &'static str {
        ""
    }
}

#[test]
fn cluster_member_replies_are_parsed() {
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
fn abandoned_command_is_not_redirected_except_a_release() {
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

/// The release was queued after the check for a waiting caller, and before the acquisition was queued.
#[test]
fn redirected_command_is_not_queued_behind_its_release() {
    for (verb, is_asking) in [SET, ACQUIRE, ADOPT, EXTEND].into_iter().flat_map(|verb| [(verb, false), (verb, true)]) {
        let (live, (mut taking, pending)) = (live(), question(verb));
        assert!(may_be_redirected(&taking));
        drop(pending);
        live.send(command(RELEASE, None), Recipient::task().0);
        taking.asked_by = asked_by(is_asking);
        live.send_on(taking);
        assert_eq!(taken(&live).len(), 1, "{verb:?}: the release alone");
    }
}

/// A member to which a slot is moving would redirect the command without the `ASKING`.
#[test]
fn asking_is_repeated_when_the_script_was_lost() {
    let (live, (mut renewal, _pending)) = (live(), question(EXTEND));
    renewal.asked_by = asked_by(true);
    live.send_on(renewal);
    for (_, is_last) in [(1, false), (2, true)] {
        let mut outgoing = taken(&live).into_iter();
        let (asking, renewal) = (outgoing.next().unwrap(), outgoing.next().unwrap());
        assert!(words(first(&asking)) == ["ASKING"] && outgoing.next().is_none());
        if !is_last {
            live.answered(renewal.asked(), value("NOSCRIPT No matching script"));
        }
    }
}

#[test]
fn redirected_acquire_is_queued_before_its_release() {
    let (live, (mut taking, _pending)) = (live(), question(ACQUIRE));
    taking.asked_by = asked_by(true);
    live.send_on(taking);
    live.send(command(RELEASE, None), Recipient::task().0);
    let taken = taken(&live);
    let [asking, taking, release] = &taken[..] else { panic!() };
    assert_eq!(words(first(asking)), ["ASKING"]);
    let verb = |outgoing: &Outgoing| match outgoing {
        Outgoing::Worded(_, ReplyKind::Question(question)) => question.command.verb,
        _ => panic!(),
    };
    assert_eq!([verb(taking), verb(release)], [ACQUIRE, RELEASE]);
}

#[test]
fn command_without_queue_repeats_the_lock_key_and_draws_no_number() {
    let (live, known) = (live(), Ballot::known(7));
    for (verb, fence) in [(RELEASE, None), (EXTEND, None), (EXTEND, Some(known)), (ACQUIRE, None)] {
        let (recipient, _pending) = Recipient::task();
        let mut question = Question::new(command(verb, fence), None, recipient);
        assert!(try_set_alone_form(&mut question), "{verb:?}");
        live.send_on(question);
        let taken = taken(&live);
        let words = words(first(&taken[0]));
        assert_eq!(words[2..5], ["2", "order:7", "order:7"], "{verb:?}");
        let Some(Outgoing::Worded(_, ReplyKind::Question(mut question))) = taken.into_iter().next() else { panic!() };
        assert!(!try_set_alone_form(&mut question), "{verb:?} is not sent so twice");
    }
    let clock = BallotClock::new(Clock::Boot);
    clock.believe(Believed::Ours);
    let (recipient, _pending) = Recipient::task();
    assert!(!try_set_alone_form(&mut Question::new(command(EXTEND, clock.draw(7)), None, recipient)));
}

#[test]
fn moved_command_is_sent_with_its_queue_again() {
    let (mut release, _pending) = question(RELEASE);
    for (form, expected) in [
        (Form::Alone, Form::Whole),
        (Form::Whole, Form::Whole),
        (Form::Queue(Box::new(Reply::Released)), Form::Queue(Box::new(Reply::Released))),
    ] {
        release.form = form;
        set_whole_form(&mut release);
        assert_eq!(release.form, expected);
    }
}

/// Their keys have different slots.
#[test]
fn extensions_at_a_cluster_member_are_not_batched() {
    let live = live();
    let extends_together = |live: &LiveConnection| {
        live.send(command(Verb::Renew { ttl: CLAIM }, None), Recipient::task().0);
        matches!(taken(live)[..], [Outgoing::Extension(_)])
    };
    assert!(extends_together(&live));
    let members: Arc<dyn Redirect> = Arc::new(Nobody);
    live.set_redirect(&members);
    assert!(!extends_together(&live));
}

/// Otherwise the member would execute the next command of any caller although it does not have the slot.
#[test]
fn asking_permission_is_probed_without_affecting_other_commands() {
    let live = live();
    drop(live.try_asking());
    let [outgoing] = &taken(&live)[..] else { panic!() };
    let Outgoing::Worded(wire, ReplyKind::Probe(_)) = outgoing else { panic!() };
    assert_eq!(words(&wire.first), ["ASKING"]);
    assert_eq!(wire.rest.iter().map(words).collect::<Vec<_>>(), [["PING"]]);
}

#[test]
fn reply_without_queue_is_interpreted_by_verb() {
    let (mut question, _pending) = question(RELEASE);
    question.form = Form::Alone;
    for reply in [Reply::Released, Reply::NotOwner] {
        assert!(matches!(next(&question, Ok(reply.clone())), Next::LeaveQueue(left) if left == reply));
    }
    question.command.verb = ACQUIRE;
    let wrong_type = || Err(NodeError::Refused("WRONGTYPE Operation against a key".into()));
    let Next::Answer(answer) = next(&question, wrong_type()) else { panic!() };
    assert!(is_later(&answer), "{answer:?}");
    let queued = Reply::Queued { left: Some(CLAIM), rank: 3 };
    let Next::Answer(answer) = next(&question, Ok(queued.clone())) else { panic!() };
    assert!(is_later(&answer), "{answer:?}");
    question.form = Form::Whole;
    let Next::Answer(answer) = next(&question, Ok(queued.clone())) else { panic!() };
    assert_eq!(answer, Ok(queued));
    let Next::Answer(answer) = next(&question, wrong_type()) else { panic!() };
    assert_eq!(answer, wrong_type());
}

#[test]
fn waiter_keeps_waiting_while_its_keys_are_split() {
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
fn redirected_command_that_was_not_executed_is_a_transient_error() {
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
fn isolated_or_replica_member_errors_are_recognized() {
    let table = [
        ("CLUSTERDOWN The cluster is down", true),
        ("READONLY You can't write against a read only replica.", true),
        ("MASTERDOWN Link with MASTER is down", true),
        ("OOM command not allowed", false),
        ("TRYAGAIN Multiple keys request", false),
    ];
    for (line, expected) in table {
        assert_eq!(is_refusal_to_serve(&refused(&error(line))), expected, "{line}");
    }
}

#[test]
fn redirected_extension_is_marked_late_unless_it_is_final() {
    let live = live();
    let table = [(EXTEND, true), (ADOPT, true), (Verb::Keep { ttl: CLAIM }, false), (RELEASE, false), (ACQUIRE, false)];
    for (verb, is_late) in table {
        let (question, _pending) = question(verb);
        live.send_on(question);
        let taken = taken(&live);
        assert_eq!(words(first(&taken[0])).contains(&"late".to_owned()), is_late, "{verb:?}");
    }
}
