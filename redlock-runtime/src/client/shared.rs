//! What all acquisitions of one manager share.

use crate::client::hot_keys::HotKeys;
use crate::client::kept_tokens::Parked;
use crate::client::local_queue::LocalQueue;
use crate::client::release::{Parting, Reclaim, Unanswered};
use crate::client::watchdog::Watchdog;
use crate::error::{LockError, NodeFailure};
use crate::lock::LockKey;
use crate::lock::OwnerToken;
use crate::lock::owner_token::ManagerId;
use crate::node::{Environment, Servers, Status};
use crate::protocol::quorum::Quorum;
use crate::protocol::rules::{Rule, Rules};
use crate::request::{Policy, Wait};
use crate::time::clock::Clock;
use crate::time::token_clock::TokenClock;
use crate::time::wait_until::wait_until;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Notify;

/// The longest that a call waits for the first connections. They have limits of their own, which count only as long as
/// the runtime of the manager is driven.
const FIRST_CONNECTIONS: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) id: ManagerId,
    pub(crate) clock: Clock,
    pub(crate) token_clock: Arc<TokenClock>,
    pub(crate) policy: Policy,
    pub(crate) quorum: Quorum,
    /// Empty, or the namespace with its separator.
    pub(crate) namespace: Box<str>,
    pub(crate) nodes: Box<[Reclaim]>,
    pub(crate) servers: Arc<Servers>,
    /// Notified when the status of any node changes.
    pub(crate) changed: Arc<Notify>,
    /// The lines of the calls for one key in this process.
    pub(crate) local: LocalQueue,
    pub(crate) hot_keys: HotKeys,
    pub(crate) watchdog: Arc<Watchdog>,
    /// Tokens that live on although no call here has them.
    pub(crate) parked: Parked,
    pub(crate) rules: Rules,
    /// The largest fencing number that a node has given here, for any lock.
    pub(crate) largest_number: AtomicU64,
    /// Set once enough nodes were heard of; from then on a node that is down is an immediate "no".
    started: AtomicBool,
    listening: AtomicBool,
    closed: AtomicBool,
}

impl Core {
    pub(crate) fn new(
        environment: Environment,
        clock: Clock,
        policy: Policy,
        namespace: Box<str>,
        nodes: Box<[Reclaim]>,
        runtime: Option<Handle>,
        rules: Rules,
    ) -> Self {
        let Environment { manager: id, token_clock, changed, servers, .. } = environment;
        let (local, hot_keys, parked) = (LocalQueue::new(), HotKeys::new(), Parked::default());
        let quorum = policy.quorum(nodes.len());
        let watchdog = Arc::new(Watchdog::new(clock, runtime));
        let [started, listening, closed] = [const { AtomicBool::new(false) }; 3];
        Self {
            id,
            clock,
            token_clock,
            policy,
            quorum,
            namespace,
            nodes,
            servers,
            changed,
            local,
            hot_keys,
            watchdog,
            parked,
            rules,
            largest_number: AtomicU64::new(0),
            started,
            listening,
            closed,
        }
    }

    pub(crate) fn new_token(&self) -> OwnerToken {
        OwnerToken::new(self.id, self.token_clock.next())
    }

    /// Opens the channels for wake-ups, at the first contention: most managers never need them.
    pub(crate) fn listen(&self) {
        if !self.listening.swap(true, Ordering::Relaxed) {
            self.nodes.iter().for_each(Reclaim::listen);
        }
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        if self.rules.apply(Rule::ClosingEndsTheLines) {
            self.local.close();
        }
        self.changed.notify_waiters();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn count(&self, wanted: impl Fn(&Status) -> bool) -> usize {
        self.nodes.iter().filter(|node| wanted(&node.status())).count()
    }

    pub(crate) fn is_up(&self) -> bool {
        self.count(|status| *status == Status::Up) >= self.quorum.needed
    }

    /// Whether the nodes have yet to be heard of.
    pub(crate) fn is_starting(&self) -> bool {
        !self.started.load(Ordering::Relaxed)
    }

    /// Waits until enough nodes are connected or every first connection has ended one way or the other, no longer than
    /// `wait`.
    ///
    /// Without this the first calls after the start would fail only because they came too early.
    pub(crate) async fn started(&self, wait: Wait) {
        let limit = match wait {
            // Who does not wait for holders still waits for the first connection.
            Wait::None | Wait::Forever => FIRST_CONNECTIONS,
            Wait::For(limit) => limit.min(FIRST_CONNECTIONS),
        };
        let is_started = || self.is_up() || self.count(|status| *status == Status::Starting) == 0;
        // Late is not an error here: the round says which node is missing.
        if tokio::time::timeout(limit, wait_until(&self.changed, is_started)).await.is_ok() {
            self.started.store(true, Ordering::Relaxed);
        }
    }

    /// Waits until every first connection has ended one way or the other, for two seconds at most.
    pub(crate) async fn heard_of_all(&self) {
        let all = wait_until(&self.changed, || self.count(|status| *status == Status::Starting) == 0);
        // Who is late has no connection.
        let _ = tokio::time::timeout(FIRST_CONNECTIONS, all).await;
    }

    /// Waits until enough nodes are connected.
    pub(crate) async fn up(&self) {
        wait_until(&self.changed, || self.is_up()).await;
    }

    /// Sees to it that a release sent to `node` is answered.
    pub(crate) fn see_through(&self, node: usize, release: Unanswered) {
        if let Some(reclaim) = self.nodes.get(node).filter(|_| self.rules.apply(Rule::ReleasesAreSeenThrough)) {
            reclaim.see_through(release);
        }
    }

    /// Sends the last command about a token to `node`, and sees to it that it is answered.
    pub(crate) fn give_back(&self, node: usize, parting: Parting) {
        match self.nodes.get(node) {
            Some(reclaim) if self.rules.apply(Rule::ReleasesAreSeenThrough) => reclaim.give_back(parting),
            Some(reclaim) => drop(reclaim.leave(parting)),
            None => {}
        }
    }

    /// The error for an operation that too few nodes answered.
    pub(crate) fn no_quorum(&self, key: Option<&LockKey>, causes: Box<[NodeFailure]>) -> LockError {
        let Quorum { nodes, needed } = self.quorum;
        LockError::NoQuorum { key: key.cloned(), needed, nodes, causes }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.watchdog.end();
    }
}
