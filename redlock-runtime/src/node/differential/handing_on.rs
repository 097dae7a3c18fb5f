//! A lock is handed on alike by whoever stands in its own queue, which random sequences hardly ever come to.

use super::step::{HOUR, MOMENT, WHILE};
use super::{MANAGERS, Pair, TOKENS};
use crate::lock::Mode;
use crate::protocol::command::Verb;
use redlock_tests::RedisServer;

/// Who has a lock after its key had expired may stand in its own queue as well, at any place. Of the processes in the queue,
/// any may listen.
#[tokio::test]
async fn a_lock_is_handed_on_alike_by_whoever_stands_in_its_queue() {
    let server = RedisServer::start().await;
    let mut pair = Pair::start(&server.url()).await;
    tokio::time::pause();
    let (claim, last) = (HOUR, TOKENS - 1);
    let acquire = Verb::Acquire { ttl: HOUR, claim, holds: false };
    for sequence in 0..8 * last {
        pair.begin(sequence as u64);
        let (listening, owner) = (sequence / last, sequence % last);
        for manager in 0..MANAGERS {
            if listening >> manager & 1 != usize::from(pair.listens(manager)) {
                pair.turn(manager);
            }
        }
        pair.ask(Verb::SetNx { ttl: MOMENT }, Mode::Exclusive, None, 0, pair.tokens[last], None).await;
        for waiter in 0..last {
            pair.ask(acquire, Mode::Exclusive, None, 0, pair.tokens[waiter], None).await;
        }
        pair.pass(WHILE).await;
        for (verb, token) in [(Verb::SetNx { ttl: HOUR }, owner), (acquire, last), (Verb::Release { claim }, owner)] {
            pair.ask(verb, Mode::Exclusive, None, 0, pair.tokens[token], None).await;
        }
        pair.clear().await;
    }
}
