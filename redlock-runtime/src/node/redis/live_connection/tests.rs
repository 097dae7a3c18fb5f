//! Tests of the commands that are sent with a ballot, and of the evaluation of their replies.

use super::*;
use crate::lock::OwnerToken;
use crate::lock::owner_token::ManagerId;
use crate::node::redis::question::Outgoing;
use crate::protocol::command::{Subject, Verb};
use crate::protocol::timing::CLAIM;
use crate::time::ballot_clock::Believed;
use crate::time::clock::Clock;
use crate::time::token_clock::TokenTime;
use std::convert::Infallible;
use std::task::{Context, Waker};

/// Returns a connection to a member.
pub(in crate::node::redis) fn live() -> LiveConnection {
    let environment = Environment::for_single_node(ManagerId::numbered(7), Clock::Boot);
    let server = Arc::new(ServerFacts::new("member", Arc::clone(&environment.servers)));
    let Ok(scripts) = Scripts::loaded(Channels::of_server(""), || Ok::<_, Infallible>("digest".to_owned()));
    LiveConnection::new(scripts, true, Abstention::default(), server, environment)
}

/// Sends a `SET`, with a ballot if `is_fenced`, and returns the commands that are sent for it.
fn sent(live: &LiveConnection, is_fenced: bool) -> Vec<ReplyKind> {
    let token = OwnerToken::new(ManagerId::numbered(7), TokenTime::new(1, 0));
    let fence = live.environment.servers.ballots.draw(7).filter(|_| is_fenced);
    let subject = Arc::new(Subject::new("order:7".into(), token));
    live.send(Command { verb: Verb::SetNx { ttl: CLAIM }, fence, subject }, Recipient::task().0);
    live.outbox.take(&Context::from_waker(Waker::noop()), Vec::new()).into_iter().map(Outgoing::asked).collect()
}

#[test]
fn server_time_is_requested_with_a_ballot_when_due() {
    let live = live();
    let ballots = &live.environment.servers.ballots;
    live.server.record_handshake_time(live.now(), Duration::from_secs(7), live.now());
    ballots.believe(Believed::Ours);
    assert!(
        matches!(sent(&live, false)[..], [ReplyKind::Question(_)]),
        "nothing is proposed, and the handshake has told the time"
    );
    let asked = sent(&live, true);
    let [ReplyKind::Time(_), ReplyKind::Question(_)] = asked[..] else { panic!() };
    assert!(matches!(sent(&live, true)[..], [ReplyKind::Question(_)]), "it was asked");
    // In the year 2191, or not at all.
    let later = [7_000_000_000_u64.to_string(), 5.to_string()].map(|part| Value::BulkString(part.into_bytes()));
    let error = |line: &str| redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
    let said = [
        (error("NOPERM User u has no permissions to run the 'time' command"), false),
        (Value::Array(later.to_vec()), true),
        (error("BUSY Redis is busy running a script"), true),
        (error("ERR unknown command 'TIME'"), false),
        (Value::Array(later.to_vec()), true),
    ];
    for ((said, is_later), slot) in said.into_iter().zip(8..) {
        live.answered(ReplyKind::Time(live.now()), said);
        let number = ballots.draw(slot).unwrap().number;
        assert_eq!(number > 1 << 45, is_later, "{number} {slot}");
    }
}
