//! Comparison of hand-offs by a holder that is in its own queue, which random sequences rarely reach.

use super::step::{HOUR, MOMENT, WHILE, Wish};
use super::{KEYS, MANAGERS, Pair, Redis, TOKENS};
use crate::error::NodeError;
use crate::lock::class::Class::{Exclusive, IntentExclusive, IntentShared, Shared};
use crate::lock::owner_token::ManagerId;
use crate::lock::part::Part;
use crate::lock::parts::Parts;
use crate::lock::{Mode, OwnerToken};
use crate::node::Node;
use crate::node::redis::queue_name;
use crate::protocol::command::{Command, Reply, Subject, Verb};
use crate::protocol::node_state::{FINDING_COST, GONE_BUDGET};
use crate::time::token_clock::TokenTime;
use redis::Commands;
use redlock_tests::RedisServer;
use std::sync::Arc;

/// A holder whose key had expired before may be at any position in its own queue. Any of the queued processes may listen.
#[tokio::test]
async fn handoff_from_any_queue_position_is_equal_on_memory_and_redis() {
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

/// A folder has more waiters below it than one command notifies: a notified waiter notifies the next ones. Some have asked for a taken key,
/// some are gone, and some of the processes do not listen.
#[tokio::test]
async fn notification_of_many_waiters_below_a_path_is_equal_on_memory_and_redis() {
    const CROWD: usize = 150;
    let server = RedisServer::start().await;
    let mut pair = Pair { is_brief: false, ..Pair::start(&server.url()).await };
    tokio::time::pause();
    let (acquire, release) = (Verb::Acquire { ttl: HOUR, claim: HOUR, holds: false }, Verb::Release { claim: HOUR });
    for (sequence, deaf) in [(0, None), (1, Some(1)), (2, None)] {
        pair.begin(sequence);
        for manager in 0..MANAGERS {
            if (Some(manager) == deaf) == pair.listens(manager) {
                pair.turn(manager);
            }
        }
        let millis = (sequence + 1) * 1000;
        let token = |at: usize| OwnerToken::new(pair.managers[at % MANAGERS], TokenTime::new(millis + at as u64, 0));
        let all: Vec<_> = (0..CROWD).map(token).collect();
        pair.ask(acquire, Mode::Exclusive, None, 0, pair.tokens[0], None).await;
        let wish = |at: usize| {
            // Some want the folder, and the waiters below it block them.
            if sequence == 2 && (2..80).contains(&at) {
                return vec![(0, Shared), (1, IntentShared)];
            }
            let intent = if at.is_multiple_of(3) { IntentShared } else { IntentExclusive };
            let leaf = if intent == IntentShared { Shared } else { Exclusive };
            vec![(0, intent), (1 + usize::from(at.is_multiple_of(5)), leaf)]
        };
        for (at, token) in all.iter().enumerate().skip(1) {
            pair.redis.refresh_heartbeats();
            pair.ask_several(acquire, None, &wish(at), *token, None).await;
        }
        pair.ask(release, Mode::Exclusive, None, 0, pair.tokens[0], None).await;
        for (at, token) in all.iter().enumerate().skip(1) {
            pair.redis.refresh_heartbeats();
            let verb = if at.is_multiple_of(7) { release } else { acquire };
            pair.ask_several(verb, None, &wish(at), *token, None).await;
        }
        for (at, token) in all.iter().enumerate().skip(1) {
            pair.redis.refresh_heartbeats();
            pair.ask_several(release, None, &wish(at), *token, None).await;
        }
        pair.clear().await;
    }
    assert!(pair.seen.contains("told that it is free"));
}

/// The queue has more absent waiters than one command examines: the first command is unfinished, and the repeated one finds the live
/// waiter.
#[tokio::test]
async fn removal_of_many_absent_waiters_is_equal_on_memory_and_redis() {
    let server = RedisServer::start().await;
    let mut pair = Pair { is_brief: false, ..Pair::start(&server.url()).await };
    tokio::time::pause();
    let acquire = Verb::Acquire { ttl: HOUR, claim: HOUR, holds: false };
    let release = Verb::Release { claim: HOUR };
    pair.begin(0);
    for manager in 0..MANAGERS {
        if !pair.listens(manager) {
            pair.turn(manager);
        }
    }
    let live = |pair: &Pair, millis: u64| OwnerToken::new(pair.managers[0], TokenTime::new(millis, 0));
    let mut millis = 1000;
    for mode in [Mode::Exclusive, Mode::Shared] {
        // Each waiter of a separate process; then all of one process; then the first ones of one, and the others of another one; then all of
        // one process, in turns exclusive and shared.
        let processes = |number| std::iter::repeat_with(ManagerId::random).take(number).collect::<Vec<_>>();
        for (processes, takes_turns, is_finished) in [
            (processes(0), false, false),
            (processes(1), false, true),
            (processes(2), false, true),
            (processes(1), true, false),
        ] {
            // A reader that finds the lock free waits only for writers.
            for is_released in [true, false].into_iter().filter(|is_released| *is_released || !takes_turns) {
                let (holder, waiter) = (live(&pair, millis), live(&pair, millis + 900));
                let ttl = if is_released { HOUR } else { MOMENT };
                let absent_mode = if is_released { mode } else { Mode::Exclusive };
                let other_mode = if takes_turns && mode == Mode::Exclusive { Mode::Shared } else { Mode::Exclusive };
                pair.ask(Verb::SetNx { ttl }, Mode::Exclusive, None, 0, holder, None).await;
                for at in 0..(GONE_BUDGET / FINDING_COST) as u64 + 20 {
                    let manager = processes.get(usize::from(at >= 64 && processes.len() > 1));
                    let manager = manager.copied().unwrap_or_else(ManagerId::random);
                    let absent = OwnerToken::new(manager, TokenTime::new(millis + 1 + at, 0));
                    pair.redis.refresh_heartbeats();
                    let mode = if takes_turns && at % 2 == 1 { other_mode } else { absent_mode };
                    pair.ask(acquire, mode, None, 0, absent, None).await;
                }
                if is_released {
                    pair.ask(acquire, mode, None, 0, waiter, None).await;
                    pair.seen.clear();
                    pair.ask(release, Mode::Exclusive, None, 0, holder, None).await;
                    assert_eq!(pair.seen.contains("unfinished"), !is_finished, "{:?}", pair.seen);
                    pair.ask(release, Mode::Exclusive, None, 0, holder, None).await;
                    assert!(pair.seen.contains("claim with its times"), "{:?}", pair.seen);
                } else {
                    pair.pass(WHILE).await;
                    pair.redis.refresh_heartbeats();
                    pair.seen.clear();
                    pair.ask(acquire, mode, None, 0, waiter, None).await;
                    assert_eq!(pair.seen.contains("granted"), is_finished, "{:?}", pair.seen);
                    pair.ask(acquire, mode, None, 0, waiter, None).await;
                    assert!(pair.seen.contains("granted"), "{:?}", pair.seen);
                }
                pair.ask(release, mode, None, 0, waiter, None).await;
                pair.clear().await;
                millis += 1000;
            }
        }
    }
}

/// Another program uses the key of a queue: a token that wants several keys gets none, hands none off and waits for none.
#[tokio::test]
async fn foreign_value_at_a_queue_name_leaves_all_keys_unchanged() {
    let server = RedisServer::start().await;
    let mut pair = Pair::start(&server.url()).await;
    let acquire = Verb::Acquire { ttl: HOUR, claim: HOUR, holds: false };
    let (both, queues) = (vec![(0, Exclusive), (1, Exclusive)], [0, 1].map(|key| queue_name(KEYS[key])));
    pair.begin(0);
    pair.turn(0);
    let [first, second, ..] = *pair.tokens else { unreachable!() };
    // Another token holds one of the keys.
    pair.ask(Verb::SetNx { ttl: HOUR }, Mode::Exclusive, None, 0, second, None).await;
    let _: () = pair.redis.server.set(queues[1].as_str(), "something else").unwrap();
    pair.assert_refused(acquire, &both, first).await;
    assert_eq!(pair.redis.keys(), sorted([KEYS[0], &queues[1]]));
    pair.ask(Verb::Release { claim: HOUR }, Mode::Exclusive, None, 0, second, None).await;
    // The token holds both keys, and another token waits for one of them.
    let _: () = pair.redis.server.del(queues[1].as_str()).unwrap();
    pair.ask_several(acquire, None, &both, second, None).await;
    pair.ask(acquire, Mode::Exclusive, None, 0, first, None).await;
    let _: () = pair.redis.server.set(queues[1].as_str(), "something else").unwrap();
    pair.assert_refused(Verb::Yield { claim: HOUR }, &both, second).await;
    assert_eq!(pair.redis.keys(), sorted([KEYS[0], KEYS[1], &queues[0], &queues[1]]));
    let owner = |key: &str, pair: &mut Pair| pair.redis.server.get::<_, String>(key).unwrap();
    assert_eq!([owner(KEYS[0], &mut pair), owner(KEYS[1], &mut pair)], [format!("{second}+"), second.to_string()]);
    // Its hold continues, and is released.
    for verb in [Verb::Extend { ttl: HOUR }, Verb::Release { claim: HOUR }] {
        let answer = pair.answer_of_redis(verb, &both, second).await.unwrap();
        assert!(matches!(answer, Reply::Extended { waiters: 1, .. } | Reply::Released), "{answer:?}");
    }
    assert_eq!(owner(KEYS[0], &mut pair), first.to_string());
}

/// The clock of a server was set back by an hour: a waiter that last asked before this is treated as silent after the usual time, and not
/// an hour later.
#[tokio::test]
async fn waiter_time_from_before_a_clock_set_back_is_reset() {
    let server = RedisServer::start().await;
    let mut pair = Pair::start(&server.url()).await;
    let acquire = Verb::Acquire { ttl: HOUR, claim: HOUR, holds: false };
    pair.begin(0);
    pair.turn(0);
    pair.turn(1);
    let [writer, reader, other, ..] = *pair.tokens else { unreachable!() };
    pair.ask(acquire, Mode::Shared, None, 0, other, None).await;
    pair.ask(acquire, Mode::Exclusive, None, 0, writer, None).await;
    let (queue, member) = (queue_name(KEYS[0]), format!("{writer}#"));
    let heard = |pair: &mut Pair| pair.redis.server.zscore::<_, _, f64>(queue.as_str(), member.as_str()).unwrap();
    let ahead = heard(&mut pair) + 3_600_000.0;
    let _: () = pair.redis.server.zadd(queue.as_str(), member.as_str(), ahead).unwrap();
    pair.ask(acquire, Mode::Shared, None, 0, reader, None).await;
    assert!(heard(&mut pair) < ahead - 3_000_000.0, "it counts from now on");
}

fn sorted<const N: usize>(mut keys: [&str; N]) -> Vec<String> {
    keys.sort_unstable();
    keys.map(str::to_owned).to_vec()
}

impl Pair {
    /// Returns the answer of only the server.
    async fn answer_of_redis(&self, verb: Verb, wish: &Wish, token: OwnerToken) -> Result<Reply, NodeError> {
        let parts = wish.iter().map(|(key, class)| Part::new(KEYS[*key].into(), *class));
        let subject = Arc::new(Subject::of(&Parts::of(parts).unwrap(), token));
        self.redis.node.send(Command { verb, fence: None, subject }).await
    }

    async fn assert_refused(&self, verb: Verb, wish: &Wish, token: OwnerToken) {
        let error = self.answer_of_redis(verb, wish, token).await.unwrap_err();
        assert!(error.to_string().contains("WRONGTYPE"), "{error}");
    }
}

impl Redis {
    /// Returns all keys except registers.
    fn keys(&mut self) -> Vec<String> {
        let mut keys: Vec<String> = self.server.keys("*").unwrap();
        keys.sort_unstable();
        keys
    }
}

const MODES: [Mode; 2] = [Mode::Exclusive, Mode::Shared];

/// Two tokens hold keys below a folder, and yield one after the other to a token that wants the whole folder. Any of the processes may
/// listen.
#[tokio::test]
async fn yield_of_a_path_to_the_named_token_is_equal_on_memory_and_redis() {
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
            pair.ask_several(acquire(false), None, place, pair.tokens[token], None).await;
        }
        let named = pair.tokens[2];
        pair.ask(acquire(true), mode, None, 0, named, None).await;
        for (place, token) in below.iter().zip(0..) {
            pair.ask_several(Verb::Yield { claim: HOUR }, None, place, pair.tokens[token], Some(named)).await;
        }
        pair.clear().await;
    }
}
