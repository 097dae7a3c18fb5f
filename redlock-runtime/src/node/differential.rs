//! The memory node and a real Redis node answer every sequence of commands alike.
//!
//! Redis runs in real time and the memory node in virtual time. Both are moved by the same hours, next to which the
//! time that a test takes is nothing: on the server by shortening the expiry of every key.

use crate::clock::Clock;
use crate::node::memory::MemoryNode;
use crate::node::redis::{RedisNode, endpoint::Endpoint};
use crate::node::{Command, Environment, Node, Reply, Subject, Verb};
use crate::token::{ManagerId, OwnerToken};
use crate::token_clock::TokenClock;
use fastrand::Rng;
use redlock_tests::RedisServer;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// Runs the one sequence that this seed makes.
const SEED: &str = "REDLOCK_DIFFERENTIAL_SEED";
const SEQUENCES: u64 = 200;
const STEPS: usize = 60;
const KEYS: [&str; 3] = ["order:7", "order:8", "{order}\n9"];
const TOKENS: usize = 3;
const HOUR: Duration = Duration::from_secs(3600);

/// What the nodes are asked, or what happens to them.
#[derive(Debug)]
enum Step {
    Ask { verb: Verb, key: usize, token: usize },
    Pass { hours: u32 },
}

impl Step {
    fn random(random: &mut Rng) -> Self {
        // Half hours, so that no lease ever ends at the very moment at which it is asked for.
        let ttl = HOUR * random.u32(0..4) + HOUR / 2;
        let verb = match random.u32(0..10) {
            0..=3 => Verb::SetNx { ttl },
            4..=6 => Verb::Extend { ttl },
            7..=8 => Verb::Release { claim: HOUR },
            _ => return Self::Pass { hours: random.u32(1..4) },
        };
        Self::Ask { verb, key: random.usize(0..KEYS.len()), token: random.usize(0..TOKENS) }
    }
}

struct Pair {
    memory: Node,
    redis: Node,
    /// Blocks, since nothing but the virtual clock may move tokio's timers.
    server: redis::Connection,
    tokens: Vec<OwnerToken>,
    seen: Vec<Reply>,
}

impl Pair {
    async fn start(server: &RedisServer) -> Self {
        let memory = Node::Memory(Arc::new(MemoryNode::new(Clock::tokio())));
        let manager = ManagerId::random();
        let token_clock = Arc::new(TokenClock::new(Clock::Boot));
        let environment = Environment {
            manager,
            token_clock: Arc::clone(&token_clock),
            changed: Arc::default(),
            deliver: Arc::new(|_| {}),
        };
        let endpoint = Endpoint::parse(&server.url(), 1).unwrap();
        let redis = Node::Redis(RedisNode::start(endpoint, environment, &Handle::current()));
        redis.up().await;
        let tokens = (0..TOKENS).map(|_| OwnerToken::new(manager, token_clock.next())).collect();
        let server = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
        Self { memory, redis, server, tokens, seen: Vec::new() }
    }

    async fn ask(&self, verb: Verb, key: usize, token: usize) -> (Reply, Reply) {
        let subject = Subject { key: KEYS[key].into(), token: self.tokens[token] };
        let command = Command { verb, subject: Arc::new(subject) };
        (self.memory.send(command.clone()).await.unwrap(), self.redis.send(command).await.unwrap())
    }

    async fn pass(&mut self, hours: u32) {
        tokio::time::advance(HOUR * hours).await;
        for key in KEYS {
            let left: i64 = redis::cmd("PTTL").arg(key).query(&mut self.server).unwrap();
            if left > 0 {
                // In the past, Redis expires the key at once.
                let left = left - i64::from(hours) * 3_600_000;
                redis::cmd("PEXPIRE").arg(key).arg(left).exec(&mut self.server).unwrap();
            }
        }
    }

    async fn run(&mut self, seed: u64) {
        let mut random = Rng::with_seed(seed);
        for step in 0..STEPS {
            let next = Step::random(&mut random);
            match next {
                Step::Pass { hours } => self.pass(hours).await,
                Step::Ask { verb, key, token } => {
                    let (memory, redis) = self.ask(verb, key, token).await;
                    assert_eq!(
                        memory, redis,
                        "memory and Redis differ at step {step}, {next:?}; replay: {SEED}={seed}"
                    );
                    if !self.seen.contains(&redis) {
                        self.seen.push(redis);
                    }
                }
            }
        }
    }

    /// Both empty again: whatever is there belongs to one of the tokens.
    async fn clear(&self) {
        for (key, token) in (0..KEYS.len()).flat_map(|key| (0..TOKENS).map(move |token| (key, token))) {
            let (memory, redis) = self.ask(Verb::Release { claim: HOUR }, key, token).await;
            assert_eq!(memory, redis);
        }
    }
}

#[tokio::test]
async fn memory_and_redis_answer_alike() {
    let server = RedisServer::start().await;
    let mut pair = Pair::start(&server).await;
    // From here on nothing waits for a timer, so that the virtual time moves only when it is told to.
    tokio::time::pause();
    let one = std::env::var(SEED).ok().map(|seed| seed.parse().unwrap());
    for seed in one.map_or(0..SEQUENCES, |seed: u64| seed..seed + 1) {
        pair.run(seed).await;
        pair.clear().await;
    }
    let every = [
        Reply::Granted { smaller: false },
        Reply::Held,
        Reply::Extended { waiters: 0 },
        Reply::Released,
        Reply::NotOwner,
    ];
    assert!(one.is_some() || every.iter().all(|reply| pair.seen.contains(reply)), "only {:?} were seen", pair.seen);
}
