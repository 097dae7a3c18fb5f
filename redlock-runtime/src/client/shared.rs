//! State that all acquisitions of one manager share: nodes, clocks, policy, and knowledge about them.
//!
//! It does not know the acquisitions: their owner ([`local_queue`](super::local_queue)) holds this state, and not the
//! other way round.

use crate::client::hot_keys::HotKeys;
use crate::client::kept_tokens::KeptTokens;
use crate::client::lock_order::LockOrder;
use crate::client::node_handle::NodeHandle;
use crate::client::recent_keys::RecentKeys;
use crate::client::release::PendingRelease;
use crate::client::revocations::{Revocations, Stopped};
use crate::client::timers::timeout;
use crate::client::waiting_calls::WaitingCalls;
use crate::error::{LockError, NodeFailure};
use crate::lock::LockKey;
use crate::lock::OwnerToken;
use crate::lock::owner_token::ManagerId;
use crate::node::{Environment, ServerRegister, Status};
use crate::observe::{self, RedactedKey, Throttle};
use crate::protocol::candidate::LeaseTerms;
use crate::protocol::command::Subject;
use crate::protocol::last_command::LastCommand;
use crate::protocol::quorum::Quorum;
use crate::protocol::rules::{Rule, Rules};
use crate::protocol::timing::CLAIM;
use crate::request::{Policy, Wait};
use crate::stats::Sites;
#[cfg(feature = "testing")]
use crate::stats::{CallLog, Stays};
use crate::time::clock::Clock;
use crate::time::token_clock::TokenClock;
use crate::time::wait_until::wait_until;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Longest wait of a call for the first connections. Smaller: the first calls of a service fail while its servers
/// start. Larger: a call hangs for longer if a server never answers.
const FIRST_CONNECTIONS: Duration = Duration::from_secs(2);

/// Time for which a key that another manager had locked is presumed to be a lock. Smaller: calls that do not wait ask
/// more often for the content of the key. Larger: data under the name of a lock looks like a lock for longer.
const KNOWN_LOCK: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) id: ManagerId,
    /// Name of the process.
    pub(crate) label: Arc<str>,
    pub(crate) clock: Clock,
    pub(crate) token_clock: Arc<TokenClock>,
    pub(crate) policy: Policy,
    pub(crate) quorum: Quorum,
    /// Empty, or the namespace with its separator.
    pub(crate) namespace: Arc<str>,
    pub(crate) nodes: Box<[NodeHandle]>,
    /// Identity of the servers of this manager, including databases; `None` for nodes that belong to no other manager.
    pub(crate) servers_are: Option<Box<str>>,
    pub(crate) servers: Arc<ServerRegister>,
    /// Notified when the status of any node changes.
    pub(crate) changed: Arc<Notify>,
    pub(crate) hot_keys: HotKeys,
    /// Keys that other managers had locked, and that were not data, when the nodes were asked.
    pub(crate) known_locks: RecentKeys,
    /// The same keys, until the ends of the reported leases.
    pub(crate) known_leases: RecentKeys,
    /// Number of calls that wait for each key, if that is limited.
    pub(crate) waiting_calls: WaitingCalls,
    /// Keys all of whose permits were found taken, with the time of that.
    pub(crate) full_keys: RecentKeys,
    /// Tokens that stay at the nodes although no call of this process has them.
    pub(crate) kept_tokens: KeptTokens,
    /// Orders in which locks were acquired.
    pub(crate) lock_order: LockOrder,
    /// Locks that this process is breaking.
    pub(crate) revocations: Revocations,
    /// Outcomes of the calls, by their sites.
    pub(crate) sites: Sites,
    /// Number of calls that have failed because too few nodes agreed.
    pub(crate) without_quorum: Throttle,
    /// Number of renewals that were so late that most of the lease was over.
    pub(crate) near_expiry: Throttle,
    pub(crate) rules: Rules,
    /// Set if every run of a seed must be identical.
    #[cfg(feature = "testing")]
    pub(crate) is_replayed: bool,
    /// Log of calls that a test reads.
    #[cfg(feature = "testing")]
    pub(crate) notebook: Option<CallLog>,
    /// Open holds, for the same log.
    #[cfg(feature = "testing")]
    pub(crate) stays: Stays,
    /// Terms of the last acquisition.
    terms: Mutex<Option<Arc<LeaseTerms>>>,
    /// Set after a call has requested a key that stays taken after its body, with `min_hold` or `once_per`.
    pub(crate) has_kept_keys: AtomicBool,
    /// Number of bodies that have continued without their lock.
    pub(crate) outlived: AtomicU64,
    /// Set once enough nodes have responded; from then on, a node that is down is an immediate refusal.
    started: AtomicBool,
    listening: AtomicBool,
    closed: AtomicBool,
}

impl Shared {
    pub(crate) fn new(
        environment: Environment,
        clock: Clock,
        policy: Policy,
        nodes: Box<[NodeHandle]>,
        rules: Rules,
    ) -> Self {
        let Environment { manager: id, namespace, label, token_clock, changed, servers, .. } = environment;
        let (hot_keys, kept_tokens) = (HotKeys::new(), KeptTokens::default());
        let [known_locks, known_leases, full_keys] = [(); 3].map(|()| RecentKeys::with_retention(KNOWN_LOCK));
        let quorum = policy.quorum(nodes.len());
        let [started, listening, closed, has_kept_keys] = [const { AtomicBool::new(false) }; 4];
        if !policy.redaction.is_none() {
            observe::redact(policy.redaction);
            // The value is only set here.
            for node in &nodes {
                let _ = node.ledger().redaction.set(policy.redaction);
            }
        }
        Self {
            id,
            label,
            clock,
            token_clock,
            policy,
            quorum,
            namespace,
            nodes,
            servers_are: None,
            has_kept_keys,
            servers,
            changed,
            hot_keys,
            known_locks,
            known_leases,
            full_keys,
            kept_tokens,
            waiting_calls: WaitingCalls::default(),
            lock_order: LockOrder::default(),
            revocations: Revocations::default(),
            sites: Sites::new(),
            without_quorum: Throttle::default(),
            near_expiry: Throttle::default(),
            rules,
            #[cfg(feature = "testing")]
            is_replayed: false,
            #[cfg(feature = "testing")]
            notebook: None,
            #[cfg(feature = "testing")]
            stays: Stays::default(),
            terms: Mutex::default(),
            outlived: AtomicU64::new(0),
            started,
            listening,
            closed,
        }
    }

    pub(crate) fn new_token(&self) -> OwnerToken {
        OwnerToken::new(self.id, self.token_clock.next())
    }

    /// Returns the representation of `key` for logs and other observers.
    pub(crate) const fn told<'k>(&self, key: &'k LockKey) -> RedactedKey<'k> {
        RedactedKey::new(key, self.policy.redaction)
    }

    /// Returns `true` if both managers are known to use the same servers, so that equal names are the same lock.
    pub(crate) fn has_same_servers(&self, other: &Self) -> bool {
        self.servers_are.is_some() && self.servers_are == other.servers_are
    }

    /// Returns the terms of leases with this `ttl`. Consecutive acquisitions with equal terms share them.
    pub(crate) fn terms(&self, ttl: Duration) -> Arc<LeaseTerms> {
        // Code under this mutex cannot panic.
        let mut last = self.terms.lock().unwrap_or_else(PoisonError::into_inner);
        let node_timeout = self.node_timeout(ttl);
        let same = last.take().filter(|terms| terms.ttl == ttl && terms.node_timeout == node_timeout);
        Arc::clone(last.insert(same.unwrap_or_else(|| Arc::new(self.new_terms(ttl, node_timeout)))))
    }

    fn new_terms(&self, ttl: Duration, node_timeout: Duration) -> LeaseTerms {
        let Self { quorum, rules, policy: Policy { drift_factor, .. }, .. } = *self;
        LeaseTerms { ttl, drift_factor, node_timeout, quorum, rules }
    }

    /// Returns the time to wait for a node, in a call with this `ttl`.
    pub(crate) fn node_timeout(&self, ttl: Duration) -> Duration {
        self.policy.node_timeout(ttl, self.servers.round_trips.to_quorum())
    }

    /// Opens the channels for wake-ups, at the first contention, because most managers never need them.
    pub(crate) fn listen(&self) {
        if !self.listening.swap(true, Ordering::Relaxed) {
            self.nodes.iter().for_each(NodeHandle::listen);
        }
    }

    /// Returns `true` if the channels for wake-ups are open, or about to be.
    pub(crate) fn is_listening(&self) -> bool {
        self.listening.load(Ordering::Relaxed)
    }

    /// Refuses new acquisitions from now on. The owner of the waiting acquisitions must notify them.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn count(&self, wanted: impl Fn(&Status) -> bool) -> usize {
        self.nodes.iter().filter(|node| wanted(&node.status())).count()
    }

    /// Returns `true` if enough voting nodes are connected.
    pub(crate) fn is_up(&self) -> bool {
        let counts = |node: &&NodeHandle| node.status() == Status::Up && node.node().abstains_for().is_none();
        self.nodes.iter().filter(counts).count() >= self.quorum.needed
    }

    /// Returns `true` before enough nodes have responded.
    pub(crate) fn is_starting(&self) -> bool {
        !self.started.load(Ordering::Relaxed)
    }

    /// Waits until enough voting nodes are connected, or every first connection has succeeded or failed, for at most
    /// `wait`.
    ///
    /// Otherwise, the first calls after the start would fail only because they came too early.
    pub(crate) async fn started(&self, wait: Wait) {
        let limit = match wait {
            // A call that does not wait for holders still waits for the first connection.
            Wait::None | Wait::Forever => FIRST_CONNECTIONS,
            Wait::For(limit) => limit.min(FIRST_CONNECTIONS),
        };
        let is_started = || self.is_up() || self.count(|status| matches!(status, Status::Starting(_))) == 0;
        // A timeout is not an error here: the round reports the missing node.
        if timeout(limit, wait_until(&self.changed, is_started)).await.is_ok() {
            self.started.store(true, Ordering::Relaxed);
        }
    }

    /// Waits until every first connection has succeeded or failed, for at most two seconds.
    pub(crate) async fn wait_for_first_connections(&self) {
        let all = wait_until(&self.changed, || self.count(|status| matches!(status, Status::Starting(_))) == 0);
        // A node that is late counts as disconnected.
        let _ = timeout(FIRST_CONNECTIONS, all).await;
    }

    /// Waits until enough voting nodes are connected, or `is_vain` returns `true`. That may change with the status of
    /// any node.
    pub(crate) async fn wait_until_up_or(&self, is_vain: impl Fn() -> bool) {
        wait_until(&self.changed, || self.is_up() || is_vain()).await;
    }

    /// Sends the last command about a token to node number `index`, and completes it in the background.
    pub(crate) fn release(&self, index: usize, subject: Arc<Subject>, last: LastCommand) {
        match self.nodes.get(index) {
            Some(node) if self.rules.apply(Rule::ReleasesAreSeenThrough) => node.release_in_background(subject, last),
            Some(node) => drop(node.release(subject, last)),
            None => {}
        }
    }

    /// Records that a quorum has agreed on a fencing `number` for these slots. The nodes `lacking` it are sent the
    /// number later.
    pub(crate) fn number_agreed(&self, slots: &[u16], number: u64, lacking: impl Iterator<Item = usize>) {
        if self.quorum.needed >= self.nodes.len() || !self.rules.apply(Rule::NodesLearnAgreedNumbers) {
            return;
        }
        self.nodes.iter().for_each(|node| node.deliver_numbers(&self.servers, || self.new_token()));
        let lacking = lacking.filter_map(|index| Some(self.nodes.get(index)?.label()));
        self.servers.owed_numbers.owe(lacking, slots, number, self.clock.now());
    }

    /// Completes a release in the background that was sent to node number `index`.
    pub(crate) fn follow_up(&self, index: usize, release: PendingRelease) {
        if let Some(node) = self.nodes.get(index).filter(|_| self.rules.apply(Rule::ReleasesAreSeenThrough)) {
            node.follow_up(release);
        }
    }

    /// Returns the error for an operation that too few nodes have agreed to: permanent or temporary.
    pub(crate) fn no_quorum(&self, key: Option<&LockKey>, causes: Box<[NodeFailure]>) -> LockError {
        let (Quorum { nodes, needed }, key) = (self.quorum, key.cloned());
        if self.quorum.is_refused(causes.iter().map(NodeFailure::error)) {
            LockError::Refused { key, needed, nodes, causes }
        } else {
            LockError::NoQuorum { key, needed, nodes, causes }
        }
    }
}

impl Shared {
    /// Reports to the breaking process that the body under a broken lock has stopped. The token of `subject` has its
    /// place.
    pub(crate) fn notify_stopped(&self, subject: &Subject) {
        self.stopped(subject);
        for node in &self.nodes {
            node.node().notify_stopped(subject);
        }
    }

    /// Handles the report that the holder before the token of `subject` has stopped. If this process is breaking its
    /// lock, the next waiter is served.
    pub(crate) fn stopped(&self, subject: &Subject) {
        let Some(Stopped { is_free, by }) = self.revocations.stopped(subject) else { return };
        if is_free {
            self.release_placeholder(subject);
        }
        for by in by {
            self.notify_stopped(&Subject::new(subject.key.clone(), by));
        }
        // Everything that waits is woken by this, so it must not be triggered by a message that anyone may publish.
        self.changed.notify_waiters();
    }

    /// Records that no answer is outstanding any longer about the token of `subject`, which has the place of a holder.
    pub(crate) fn on_break_answered(&self, subject: &Subject) {
        if self.revocations.asked(&subject.token) {
            self.release_placeholder(subject);
        }
    }

    /// Releases the token of `subject`, which has the place of a holder that has stopped.
    fn release_placeholder(&self, subject: &Subject) {
        let subject = Arc::new(Subject::new(subject.key.clone(), subject.token));
        // If it cannot be released for that long, it ends by itself with the lease that it has replaced.
        let last = LastCommand::release(CLAIM, self.revocations.left(&subject.token), self.clock.now());
        (0..self.nodes.len()).for_each(|index| self.release(index, Arc::clone(&subject), last));
    }
}
