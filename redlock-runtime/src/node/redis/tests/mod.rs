//! Tests of a node with real servers. Here: a manager's connection to one of them, as the tests use it.

mod clusters;
mod conversions;
mod extensions;
mod obstacles;
mod runtime_failover;
mod wakeups;

use super::RedisNode;
use super::endpoint::Endpoint;
use crate::lock::OwnerToken;
use crate::lock::owner_token::ManagerId;
use crate::node::{BackgroundThread, Environment, Node, Status};
use crate::protocol::command::{Answer, Command, Deliver, Notice, Occupant, Reply, Subject, Verb, Wakeup};
use crate::protocol::timing::CLAIM;
use crate::time::clock::Clock;
use crate::time::wait_until::wait_until;
use redlock_tests::{PATIENCE, RedisServer};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::timeout;

const KEY: &str = "order:7";
const TTL: Duration = Duration::from_secs(60);
const ACQUIRE: Verb = Verb::Acquire { ttl: TTL, claim: CLAIM, holds: false };
const EXTEND: Verb = Verb::Extend { ttl: TTL };
const YIELD: Verb = Verb::Yield { claim: CLAIM };
const RELEASE: Verb = Verb::Release { claim: CLAIM };
const GRANTED: Reply = Reply::Granted { smaller: false, number: None };

/// One manager's connection to the server, and its notifications.
struct Peer {
    node: Arc<RedisNode>,
    environment: Environment,
    wakeups: mpsc::UnboundedReceiver<Wakeup>,
}

impl Peer {
    fn starting(url: &str) -> Self {
        let (sender, wakeups) = mpsc::unbounded_channel();
        let deliver: Deliver = Arc::new(move |wakeup| drop(sender.send(wakeup)));
        let environment = Environment { deliver, ..Environment::for_single_node(ManagerId::random(), Clock::Boot) };
        let endpoint = Endpoint::parse(url, 1).unwrap();
        let node = RedisNode::start(
            endpoint,
            environment.clone(),
            BackgroundThread::shared().unwrap(),
            Some(Handle::current()),
        );
        Self { node, environment, wakeups }
    }

    async fn start(server: &RedisServer) -> Self {
        let peer = Self::starting(&server.url());
        timeout(PATIENCE, peer.node.wait_until_up(&KEY.into())).await.unwrap();
        peer
    }

    async fn listening(server: &RedisServer) -> Self {
        let peer = Self::start(server).await;
        peer.node.listen();
        peer.until("listening", is_listening).await;
        peer
    }

    fn token(&self) -> OwnerToken {
        OwnerToken::new(self.environment.manager, self.environment.token_clock.next())
    }

    async fn answer(&self, verb: Verb, token: OwnerToken) -> Answer {
        let subject = Arc::new(Subject::new(KEY.into(), token));
        timeout(PATIENCE, self.node.send(Command { verb, fence: None, subject })).await.unwrap()
    }

    async fn ask(&self, verb: Verb, token: OwnerToken) -> Reply {
        self.answer(verb, token).await.unwrap()
    }

    async fn occupant(&self) -> Occupant {
        timeout(PATIENCE, self.node.occupant_of(&KEY.into())).await.unwrap()
    }

    async fn until(&self, what: &str, condition: impl Fn(&RedisNode) -> bool) {
        let condition = wait_until(&self.environment.changed, || condition(&self.node));
        timeout(PATIENCE, condition).await.unwrap_or_else(|_| panic!("{what}: {:?}", self.node));
    }

    /// Waits for the next wake-up, which must be a claim of any kind.
    async fn claim(&mut self) -> Notice {
        let notice = self.wakeup().await;
        assert!(matches!(notice, Notice::Granted | Notice::Claimed(_) | Notice::Proven(_)), "{notice:?}");
        notice
    }

    async fn wakeup(&mut self) -> Notice {
        let Wakeup { subject, notice } = timeout(PATIENCE, self.wakeups.recv()).await.unwrap().unwrap();
        assert_eq!(subject.key.name(), KEY);
        assert_eq!(subject.token.manager(), self.environment.manager.to_string());
        notice
    }
}

fn is_listening(node: &RedisNode) -> bool {
    node.is_listening_for(&KEY.into())
}

fn epoch(node: &RedisNode) -> u64 {
    node.epoch_of(&KEY.into())
}

fn is_up(node: &RedisNode) -> bool {
    node.status() == Status::Up
}

/// Starts servers with one connection for everything, and with another one for wake-ups.
async fn both_protocols() -> [(&'static str, RedisServer); 2] {
    let resp2 = RedisServer::builder().without_command("HELLO").start().await;
    [("RESP3", RedisServer::start().await), ("RESP2", resp2)]
}

/// Hands a lock off, with a wake-up for each of the two. Returns the notice that the second one receives.
async fn pass_on(holder: &mut Peer, waiter: &mut Peer) -> Notice {
    let (first, second) = (holder.token(), waiter.token());
    assert_eq!(holder.ask(ACQUIRE, first).await, GRANTED);
    let Reply::Queued { left: Some(left), rank: 0 } = waiter.ask(ACQUIRE, second).await else { panic!() };
    assert!(left <= TTL && left > TTL / 2, "{left:?}");
    assert_eq!(holder.wakeup().await, Notice::Contended { by: second });
    assert_eq!(holder.ask(EXTEND, first).await, Reply::Extended { waiters: 1, number: None });
    assert_eq!(holder.ask(RELEASE, first).await, Reply::Released);
    let notice = waiter.claim().await;
    assert_eq!(waiter.ask(EXTEND, second).await, Reply::Extended { waiters: 0, number: None });
    assert_eq!(waiter.ask(RELEASE, second).await, Reply::Released);
    notice
}
