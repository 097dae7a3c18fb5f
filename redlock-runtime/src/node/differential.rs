//! Comparison of the memory node with a real Redis node: both must answer, publish and store the same for any sequence of commands.
//!
//! Redis runs in real time and the memory node in virtual time. Both advance by the same hours or seconds, which are far longer than the
//! duration of a test. On the server, the expiry of every key is shortened.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test, and what a fuzzer calls"
)]

#[cfg(test)]
mod handing_on;
mod kinds;
mod step;

use self::kinds::{adoption, hold, kind, naming, numbering, numbering_lowered, numbering_several, of_several, sharing};
#[cfg(any(test, fuzzing))]
use self::step::Draw;
use self::step::{HOUR, Step, Wish};
use crate::lock::owner_token::ManagerId;
use crate::lock::part::Part;
use crate::lock::parts::Parts;
use crate::lock::{Mode, OwnerToken};
use crate::node::redis::RedisNode;
use crate::node::redis::endpoint::Endpoint;
use crate::node::redis::{LETTERS, SHARE, queue_name};
use crate::node::{BackgroundThread, Environment, Node};
use crate::protocol::command::{Claim, Command, Notice, Reply, Subject, Verb, Wakeup};
use crate::protocol::node_state::NodeState;
use crate::protocol::wakeup::channel;
use crate::time::ballot_clock::Ballot;
use crate::time::clock::{Clock, ClockError};
use crate::time::token_clock::{TokenClock, TokenTime};
use fastrand::Rng;
use redis::{Commands, PubSub};
#[cfg(test)]
use redlock_tests::RedisServer;
use std::collections::{BTreeSet, HashSet};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

/// Environment variable that selects a single sequence by its seed.
const SEED: &str = "REDLOCK_DIFFERENTIAL_SEED";
const SEQUENCES: u64 = 400;
const STEPS: usize = 80;
const KEYS: [&str; 4] = ["order:7", "order:{8}", "a}\n9", "{order:7}:t"];
/// Index of the admission lock of the first key.
const TURNSTILE: usize = 3;
const MANAGERS: usize = 3;
const TOKENS: usize = 5;
/// More than the duration of a sequence.
const TOLERANCE: Duration = Duration::from_secs(5);
/// More than the duration of a sequence with many waiters, on a busy machine: no time passes in memory in the meantime.
const TOLERANCE_OF_CROWDS: Duration = Duration::from_secs(60);
/// Channel of a message after all earlier ones.
const MARK: &str = "mark";

/// The memory node, with its messages so far.
struct Memory {
    clock: Clock,
    state: NodeState,
    token_clock: TokenClock,
    listening: HashSet<String>,
    published: Vec<Wakeup>,
}

impl Memory {
    fn execute(&mut self, command: &Command) -> Reply {
        let Self { clock, state, token_clock, listening, published } = self;
        let (reply, seen) = state.execute(clock.now(), command, &mut |channel, wakeup| {
            let receivers = usize::from(listening.contains(channel));
            published.extend((receivers > 0).then_some(wakeup));
            receivers
        });
        if let Some(seen) = seen {
            token_clock.observe(seen);
        }
        reply
    }
}

/// The Redis node.
struct Redis {
    node: Arc<RedisNode>,
    token_clock: Arc<TokenClock>,
    /// These connections block: only the virtual clock may move tokio's timers.
    server: redis::Connection,
    subscriber: PubSub<'static>,
}

impl Redis {
    async fn start(url: &str, manager: ManagerId) -> Self {
        let endpoint = Endpoint::parse(url, 1).unwrap();
        let token_clock = Arc::new(at_the_beginning());
        let environment =
            Environment { token_clock: Arc::clone(&token_clock), ..Environment::for_single_node(manager, Clock::Boot) };
        let node = RedisNode::start(endpoint, environment, BackgroundThread::shared().unwrap(), None);
        node.wait_until_up(&KEYS[0].into()).await;
        let client = redis::Client::open(url).unwrap();
        let mut subscriber = Box::leak(Box::new(client.get_connection().unwrap())).as_pubsub();
        subscriber.subscribe(MARK).unwrap();
        Self { node, token_clock, server: client.get_connection().unwrap(), subscriber }
    }

    /// Returns the messages since the last call.
    fn published(&mut self) -> Vec<Wakeup> {
        let _: i64 = self.server.publish(MARK, "").unwrap();
        let mut published = Vec::new();
        loop {
            let message = self.subscriber.get_message().unwrap();
            if message.get_channel_name() == MARK {
                return published;
            }
            let wakeup = Wakeup::parse(str::from_utf8(message.get_payload_bytes()).unwrap()).unwrap();
            assert_eq!(message.get_channel_name(), channel(wakeup.subject.token.manager()));
            published.push(wakeup);
        }
    }

    /// Returns the tokens that hold `key` in one of these classes, sorted.
    fn readers(&mut self, key: &str, kind: &str, classes: RangeInclusive<u64>) -> Vec<String> {
        if kind != "zset" {
            return Vec::new();
        }
        let (seconds, micros): (u64, u64) = redis::cmd("TIME").query(&mut self.server).unwrap();
        let now = seconds * 1000 + micros / 1000;
        let mut live = Vec::new();
        for class in classes {
            let (from, to) = (class * SHARE + now, format!("({}", (class + 1) * SHARE));
            let of_class = redis::cmd("ZRANGE").arg(key).arg(from).arg(to).arg("BYSCORE").query(&mut self.server);
            live.extend::<Vec<String>>(of_class.unwrap());
        }
        live.sort_unstable();
        live
    }

    /// Returns the tokens that wait for `key` with their classes; each token that has asked is followed by its heartbeat.
    fn waiting(&mut self, key: &str) -> Vec<(String, &'static str)> {
        let queue = queue_name(key);
        let waiting: Vec<(String, f64)> = self.server.zrange_withscores(queue, 0, -1).unwrap();
        let kind = |score: f64| match score {
            ..0.5 => "alone",
            ..1.5 => "shared",
            ..2.5 => "for one below",
            ..3.5 => "to share below",
            ..4.5 => "alone, with others",
            ..5.5 => "shared, with others",
            ..8e12 => "heard",
            _ => "not told",
        };
        let mut waiting: Vec<_> = waiting.into_iter().map(|(member, score)| (member, kind(score))).collect();
        waiting.sort_unstable();
        waiting
    }

    /// Refreshes the heartbeats of all waiters: a sequence may take longer than the maximum silence, and no time passes in memory.
    fn refresh_heartbeats(&mut self) {
        let hear = "local time = redis.call('TIME')
        local now = time[1] * 1000 + math.floor(time[2] / 1000)
        for _, key in ipairs(redis.call('KEYS', '*')) do
            if redis.call('TYPE', key).ok == 'zset' then
                for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do
                    if string.sub(member, -1) == '#' then
                        redis.call('ZADD', key, string.format('%.0f', 4398046511104 + now), member)
                    end
                end
            end
        end";
        redis::cmd("EVAL").arg(hear).arg(0).exec(&mut self.server).unwrap();
    }

    fn pass(&mut self, time: Duration) {
        // Redis expires a key with a negative time at once.
        let shorten = "for _, key in ipairs(redis.call('KEYS', '*')) do
            local left = redis.call('PTTL', key)
            if left >= 0 and redis.call('TYPE', key).ok == 'zset' then
                local members = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
                for i = 1, #members, 2 do
                    local at = tonumber(members[i + 1])
                    if at >= 4398046511104 and not string.find(members[i], '>', 1, true) then
                        redis.call('ZADD', key, string.format('%.0f', at - ARGV[1]), members[i])
                    end
                end
            end
            if left >= 0 then
                redis.call('PEXPIRE', key, left - ARGV[1])
            end
        end";
        let millis = u64::try_from(time.as_millis()).unwrap();
        redis::cmd("EVAL").arg(shorten).arg(0).arg(millis).exec(&mut self.server).unwrap();
    }
}

pub(crate) struct Pair {
    memory: Memory,
    redis: Redis,
    managers: [ManagerId; MANAGERS],
    tokens: Vec<OwnerToken>,
    seen: BTreeSet<&'static str>,
    /// `true` if reservations are compared, and leases to a few seconds: not for sequences that may take longer.
    is_brief: bool,
}

impl Pair {
    async fn start(url: &str) -> Self {
        // One manager has an older version, and does not receive the times of claims.
        let managers = [ManagerId::random(), ManagerId::random(), ManagerId::of_old(fastrand::u128(..))];
        let memory = Memory {
            clock: Clock::tokio(),
            state: NodeState::default(),
            token_clock: at_the_beginning(),
            listening: HashSet::new(),
            published: Vec::new(),
        };
        let redis = Redis::start(url, managers[0]).await;
        Self { memory, redis, managers, tokens: Vec::new(), seen: BTreeSet::new(), is_brief: true }
    }

    async fn ask(
        &mut self,
        verb: Verb,
        mode: Mode,
        fence: Option<Ballot>,
        key: usize,
        token: OwnerToken,
        other: Option<OwnerToken>,
    ) {
        let subject = Subject { other: other.map(Box::new), ..Subject::new(KEYS[key].into(), token) };
        // A holder that shares its lock has a number if it held the lock exclusively before.
        let is_lowered = mode == Mode::Shared && fence.is_some();
        let subject = if is_lowered { subject.lowered() } else { Arc::new(subject.of_mode(mode)) };
        self.ask_about(verb, fence, subject).await;
    }

    /// Sends a command for several keys.
    async fn ask_several(
        &mut self,
        verb: Verb,
        fence: Option<Ballot>,
        wish: &Wish,
        token: OwnerToken,
        other: Option<OwnerToken>,
    ) {
        let parts = wish.iter().map(|(key, class)| Part::new(KEYS[*key].into(), *class));
        let subject = Subject { other: other.map(Box::new), ..Subject::of(&Parts::of(parts).unwrap(), token) };
        self.ask_about(verb, fence, Arc::new(subject)).await;
    }

    async fn ask_about(&mut self, verb: Verb, fence: Option<Ballot>, subject: Arc<Subject>) {
        let (token, mode, has_several) = (subject.token, subject.mode, subject.has_several());
        let other = subject.other.as_deref().copied();
        let names: Vec<_> = subject.wanted().map(|(key, _)| key.name().to_owned()).collect();
        let owner = self.memory.state.owner(&names[0], self.memory.clock.now());
        let command = Command { verb, fence, subject };
        let reply = self.memory.execute(&command);
        let answer = self.redis.node.send(command).await.unwrap();
        let tolerance = if self.is_brief { TOLERANCE } else { TOLERANCE_OF_CROWDS };
        assert!(are_alike(&reply, &answer, tolerance), "memory: {reply:?}, Redis: {answer:?}");
        assert_eq!(self.memory.token_clock.next(), self.redis.token_clock.next(), "the newest token seen");
        for name in &names {
            self.assert_same_storage(name);
        }
        let published = without_times(std::mem::take(&mut self.memory.published));
        let by_redis = without_times(self.redis.published());
        let published = in_order(published);
        assert_eq!(published, in_order(by_redis), "memory left, Redis right");
        self.seen.insert(kind(&answer));
        self.seen.extend(if has_several {
            of_several(verb, &answer)
        } else if mode.is_shared() {
            sharing(verb, &answer, owner)
        } else {
            adoption(verb, token, other, owner)
        });
        self.seen.extend(hold(verb, &answer));
        self.seen.extend(other.filter(|other| *other > token).and_then(|_| naming(verb, &answer)));
        self.seen.extend(fence.and_then(|_| match (has_several, mode) {
            (true, _) => numbering_several(&answer),
            (false, Mode::Exclusive) => numbering(&answer),
            (false, Mode::Shared | Mode::Permit) => numbering_lowered(&answer),
        }));
        self.seen.extend(published.iter().map(|wakeup| match wakeup.notice {
            Notice::Granted => "claim",
            Notice::Freed => "notice of a permit",
            Notice::Claimed(_) => "claim with its times",
            Notice::Free => "told that it is free",
            Notice::Busy | Notice::Proven(_) | Notice::Stopped => "what no node says by itself",
            Notice::Revoked { .. } => "notice of a broken lock",
            Notice::Contended { .. } => "notice",
            Notice::Wanted { .. } => "notice of a holder",
        }));
    }

    /// Sends the renewals of the watchdog for many locks, which are sent together.
    async fn extend_all(&mut self, ttl: Duration) {
        let subject = |key: &str, token| Arc::new(Subject::new(key.into(), token));
        let all = KEYS.iter().flat_map(|key| self.tokens.iter().map(move |token| subject(key, *token)));
        let commands: Vec<_> = all.map(|subject| Command { verb: Verb::Renew { ttl }, fence: None, subject }).collect();
        let replies: Vec<_> = commands.iter().map(|command| self.memory.execute(command)).collect();
        let sent: Vec<_> = commands.into_iter().map(|command| self.redis.node.send(command)).collect();
        for (reply, answer) in replies.iter().zip(sent) {
            assert_eq!(*reply, answer.await.unwrap(), "memory left, Redis right");
        }
        assert_eq!(self.memory.token_clock.next(), self.redis.token_clock.next(), "the newest token seen");
        let extended = replies.iter().filter(|reply| matches!(reply, Reply::Extended { .. })).count();
        self.seen.extend((extended > 1).then_some("several were extended at once"));
    }

    /// Compares the owner with its mark, the readers, and the waiters with their classes.
    fn assert_same_storage(&mut self, key: &str) {
        let (state, now, server) = (&self.memory.state, self.memory.clock.now(), &mut self.redis.server);
        let kind: String = redis::cmd("TYPE").arg(key).query(server).unwrap();
        let stored: Option<String> = if kind == "zset" { None } else { server.get(key).unwrap() };
        // A single holder of another class is a string as well. No token waits for it.
        let single = stored.as_ref().and_then(|text| LETTERS.iter().find_map(|(letter, _)| text.strip_suffix(*letter)));
        assert_eq!(state.value(key, now), stored.clone().filter(|_| single.is_none()), "the owner and the mark");
        let mut readers: Vec<_> = state.readers(key, now).iter().map(ToString::to_string).collect();
        readers.sort_unstable();
        let of_set = self.redis.readers(key, &kind, 1..=3);
        let stored_readers = single.map_or(of_set, |single| vec![single.to_owned()]);
        assert_eq!(readers, stored_readers, "the tokens that share the key");
        let mut reserved: Vec<_> = state.reserved(key, now).iter().map(ToString::to_string).collect();
        reserved.sort_unstable();
        if self.is_brief {
            assert_eq!(reserved, self.redis.readers(key, &kind, 7..=7), "those who have reserved it");
        }
        self.seen.extend((!reserved.is_empty()).then_some("reserved"));
        self.seen.extend(single.map(|_| "single holder of a shared key"));
        let mut waiting: Vec<_> = self.memory.state.waiting(key, now);
        waiting.sort_unstable();
        assert_eq!(waiting, self.redis.waiting(key), "those who wait");
        assert!(single.is_none() || waiting.is_empty(), "a token waits for a single holder: {waiting:?}");
    }

    fn listens(&self, manager: usize) -> bool {
        self.memory.listening.contains(&channel(&self.managers[manager].to_string()))
    }

    fn turn(&mut self, manager: usize) {
        let channel = channel(&self.managers[manager].to_string());
        if self.memory.listening.remove(&channel) {
            self.redis.subscriber.unsubscribe(&channel).unwrap();
        } else {
            self.redis.subscriber.subscribe(&channel).unwrap();
            self.memory.listening.insert(channel);
        }
    }

    async fn pass(&mut self, time: Duration) {
        tokio::time::advance(time).await;
        self.redis.pass(time);
    }

    /// Creates the tokens of one sequence, later than those of the previous sequence, so that the clocks start anew.
    fn begin(&mut self, sequence: u64) {
        let millis = (sequence + 1) * 1000;
        let tokens = (0..).map(|i| OwnerToken::new(self.managers[i % MANAGERS], TokenTime::new(millis + i as u64, 0)));
        self.tokens = tokens.take(TOKENS).collect();
    }

    async fn run(&mut self, seed: u64) {
        let mut random = Rng::with_seed(seed);
        self.begin(seed);
        let mut latest = (0, 0);
        for step in 0..STEPS {
            let next = Step::random(&mut random, &mut latest, seed % 2 == 1, seed % 4 > 1);
            println!("{SEED}={seed}, step {step}: {next:?}");
            self.take(next).await;
        }
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Pass(time) => self.pass(time).await,
            Step::Turn { manager } => self.turn(manager),
            Step::ExtendAll { ttl } => self.extend_all(ttl).await,
            Step::AskSeveral { verb, fence, wish, token, other } => {
                let other = other.map(|index| self.tokens[index]);
                self.ask_several(verb, fence, &wish, self.tokens[token], other).await;
            }
            Step::Ask { verb, mode, fence, key, token, other } => {
                let other = other.map(|index| self.tokens[index]);
                self.ask(verb, mode, fence, key, self.tokens[token], other).await;
            }
        }
    }

    /// Empties both nodes: all their keys belong to one of the tokens, or are registers. Releases twice: a token that has waited and then
    /// takes the lock by a plain `SET` leaves its queue only with a second release. No client does this.
    async fn clear(&mut self) {
        let all = (0..KEYS.len()).flat_map(|key| (0..TOKENS).map(move |token| (key, token)));
        for (key, token) in all.clone().chain(all) {
            self.ask(Verb::Release { claim: HOUR }, Mode::Exclusive, None, key, self.tokens[token], None).await;
        }
        assert!(self.memory.state.is_empty(self.memory.clock.now()));
        let left: Vec<String> = self.redis.server.keys("*").unwrap();
        assert!(left.iter().all(|key| key.starts_with("redlock:f:")), "{left:?}");
        self.memory.state = NodeState::default();
        redis::cmd("FLUSHDB").exec(&mut self.redis.server).unwrap();
    }
}

/// Returns a clock that shows only the times it has seen.
fn at_the_beginning() -> TokenClock {
    let error = ClockError { skew_ms: i64::MIN, ..ClockError::default() };
    TokenClock::new(Clock::Tokio { origin: tokio::time::Instant::now(), error })
}

fn are_alike(memory: &Reply, redis: &Reply, tolerance: Duration) -> bool {
    let are_close = |left: Option<Duration>, right: Option<Duration>| {
        left.zip(right).is_some_and(|(left, right)| left.abs_diff(right) < tolerance)
    };
    match (memory, redis) {
        (
            Reply::Entered { others, strangers, left },
            Reply::Entered { others: other_others, strangers: other_strangers, left: other_left },
        ) => {
            let in_order = |others: &[OwnerToken]| others.iter().copied().collect::<BTreeSet<_>>();
            in_order(others) == in_order(other_others)
                && strangers == other_strangers
                && (left == other_left || are_close(*left, *other_left))
        }
        (Reply::Queued { left, rank }, Reply::Queued { left: other, rank: other_rank }) => {
            are_close(*left, *other) && rank == other_rank
        }
        (Reply::Yielded { left }, Reply::Yielded { left: other }) => are_close(*left, *other),
        (Reply::Revoked { left, is_told }, Reply::Revoked { left: other, is_told: other_is_told }) => {
            are_close(Some(*left), Some(*other)) && is_told == other_is_told
        }
        _ => memory == redis,
    }
}

/// Removes the times of claims, because the clocks differ.
fn without_times(published: Vec<Wakeup>) -> Vec<Wakeup> {
    let without = |notice| match notice {
        Notice::Claimed(Claim { length, begun }) => {
            assert!(!begun.is_zero());
            Notice::Claimed(Claim { length, begun: Duration::ZERO })
        }
        notice => notice,
    };
    published.into_iter().map(|Wakeup { subject, notice }| Wakeup { subject, notice: without(notice) }).collect()
}

/// Sorts adjacent notices by their tokens. Readers are notified in the order in which their leases end, and several may end in the same
/// millisecond.
fn in_order(mut published: Vec<Wakeup>) -> Vec<Wakeup> {
    let is_notice = |wakeup: &Wakeup| matches!(wakeup.notice, Notice::Contended { .. } | Notice::Wanted { .. });
    published.chunk_by_mut(|one, other| is_notice(one) && is_notice(other)).for_each(|notices| {
        notices.sort_by_key(|wakeup| wakeup.subject.token);
    });
    published
}

/// Number of kinds: every kind of reply, the results of an adoption and a break, of a vote for a holder and of a yield to a named token,
/// combined extensions, results of requests for several keys, all kinds of wake-ups, and all results of a fenced command.
const KINDS: usize = 72;

/// Both nodes, in a separate virtual time, for the input of a fuzzer.
#[cfg(any(test, fuzzing))]
pub(crate) struct Compared {
    runtime: tokio::runtime::Runtime,
    pair: Pair,
    sequence: u64,
}

#[cfg(any(test, fuzzing))]
impl Compared {
    pub(crate) fn start(url: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let pair = runtime.block_on(async {
            let pair = Pair::start(url).await;
            tokio::time::pause();
            pair
        });
        Self { runtime, pair, sequence: 0 }
    }

    /// Sends the same commands to both nodes. Panics if they differ.
    pub(crate) fn run(&mut self, mut bytes: &[u8]) {
        let Self { runtime, pair, sequence } = self;
        *sequence += 1;
        runtime.block_on(async {
            pair.begin(*sequence);
            let (mut latest, is_shared, is_several) = ((0, 0), bytes.choose(), bytes.choose());
            for _ in 0..STEPS {
                if bytes.is_empty() {
                    break;
                }
                let step = Step::random(&mut bytes, &mut latest, is_shared, is_several);
                pair.take(step).await;
            }
            pair.clear().await;
        });
    }
}

#[cfg(test)]
#[tokio::test]
async fn memory_node_and_redis_give_equal_replies() {
    let server = RedisServer::start().await;
    let mut pair = Pair::start(&server.url()).await;
    // No task waits for a timer from here on, so that the virtual time moves only on request.
    tokio::time::pause();
    let one = std::env::var(SEED).ok().map(|seed| seed.parse().unwrap());
    for seed in one.map_or(0..SEQUENCES, |seed: u64| seed..seed + 1) {
        pair.run(seed).await;
        pair.clear().await;
    }
    assert!(one.is_some() || pair.seen.len() == KINDS, "only {:?} were seen", pair.seen);
}
