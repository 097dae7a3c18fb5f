//! A lock is handed on alike by whoever stands in its own queue, which random sequences hardly ever come to.

use super::step::{HOUR, MOMENT, WHILE};
use super::{MANAGERS, Pair, TOKENS};
use crate::lock::Mode;
use crate::lock::class::Class::{Exclusive, IntentExclusive, IntentShared, Shared};
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

const MODES: [Mode; 2] = [Mode::Exclusive, Mode::Shared];

/// Two have places below a folder, and yield one after the other to who wants all of it. Any of the processes may listen.
#[tokio::test]
async fn a_folder_is_left_alike_to_who_is_named() {
    let server = RedisServer::start().await;
    let mut pair = Pair::start(&server.url()).await;
    tokio::time::pause();
    let acquire = |holds| Verb::Acquire { ttl: HOUR, claim: HOUR, holds };
    let wished = || [IntentExclusive, IntentShared].into_iter().flat_map(|intent| MODES.map(|mode| (intent, mode)));
    let cases = (0..1 << MANAGERS).flat_map(|listening| wished().map(move |wish| (listening, wish)));
    for (sequence, (listening, (intent, mode))) in (0..).zip(cases) {
        pair.begin(sequence);
        for manager in 0..MANAGERS {
            if (listening >> manager & 1 == 1) != pair.listens(manager) {
                pair.turn(manager);
            }
        }
        let leaf = if intent == IntentExclusive { Exclusive } else { Shared };
        let below = [vec![(0, intent), (1, leaf)], vec![(0, IntentExclusive), (2, Exclusive)]];
        for (place, token) in below.iter().zip(0..) {
            pair.ask_several(acquire(false), place, pair.tokens[token], None).await;
        }
        let named = pair.tokens[2];
        pair.ask(acquire(true), mode, None, 0, named, None).await;
        for (place, token) in below.iter().zip(0..) {
            pair.ask_several(Verb::Yield { claim: HOUR }, place, pair.tokens[token], Some(named)).await;
        }
        pair.clear().await;
    }
}
