//! What every acquisition of one manager needs: nodes, clocks, policy, and what is known of them.
//!
//! It knows nothing of acquisitions: whoever owns those ([`local_queue`](super::local_queue)) holds this, and never the
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
use crate::observe::{self, Throttle, ToldKey};
use crate::protocol::candidate::LeaseTerms;
use crate::protocol::command::Subject;
use crate::protocol::last_command::LastCommand;
use crate::protocol::quorum::Quorum;
use crate::protocol::rules::{Rule, Rules};
use crate::protocol::timing::CLAIM;
use crate::request::{Policy, Wait};
use crate::stats::Sites;
#[cfg(feature = "testing")]
use crate::stats::{Notebook, Stays};
use crate::time::clock::Clock;
use crate::time::token_clock::TokenClock;
use crate::time::wait_until::wait_until;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// The longest that a call waits for the first connections. Smaller, the first calls of a service fail while its servers
/// start; larger, a call hangs for longer when a server swallows everything.
const FIRST_CONNECTIONS: Duration = Duration::from_secs(2);

/// For how long a key that others had as a lock is taken for one. Smaller, calls that do not wait ask more often what
/// has the key that they want; larger, data that is written under the name of a lock looks like a lock for longer.
const KNOWN_LOCK: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) id: ManagerId,
    /// What the process is called.
    pub(crate) label: Arc<str>,
    pub(crate) clock: Clock,
    pub(crate) token_clock: Arc<TokenClock>,
    pub(crate) policy: Policy,
    pub(crate) quorum: Quorum,
    /// Empty, or the namespace with its separator.
    pub(crate) namespace: Arc<str>,
    pub(crate) nodes: Box<[NodeHandle]>,
    /// What tells the servers of this manager from those of others, databases included; `None` for nodes that no other
    /// manager has.
    pub(crate) servers_are: Option<Box<str>>,
    pub(crate) servers: Arc<ServerRegister>,
    /// Notified when the status of any node changes.
    pub(crate) changed: Arc<Notify>,
    pub(crate) hot_keys: HotKeys,
    /// Keys that others had as a lock, and not as data, when the nodes were asked.
    pub(crate) known_locks: RecentKeys,
    /// The same keys until the leases end that the nodes told of.
    pub(crate) known_leases: RecentKeys,
    /// How many calls wait for each key, if that is limited.
    pub(crate) waiting_calls: WaitingCalls,
    /// Keys of which all permits were found taken, and since when.
    pub(crate) full_keys: RecentKeys,
    /// Tokens that live on although no call here has them.
    pub(crate) kept_tokens: KeptTokens,
    /// In which orders locks were taken.
    pub(crate) lock_order: LockOrder,
    /// Locks that are being broken from here.
    pub(crate) revocations: Revocations,
    /// What became of the calls, by their sites.
    pub(crate) sites: Sites,
    /// How often calls have failed because too few nodes agreed.
    pub(crate) without_quorum: Throttle,
    /// How often most of a lease was over before it was renewed.
    pub(crate) near_expiry: Throttle,
    pub(crate) rules: Rules,
    /// Whether everything has to be the same in every run of a seed.
    #[cfg(feature = "testing")]
    pub(crate) is_replayed: bool,
    /// Where a test wants to read what became of the calls.
    #[cfg(feature = "testing")]
    pub(crate) notebook: Option<Notebook>,
    /// And what the calls do that have their locks.
    #[cfg(feature = "testing")]
    pub(crate) stays: Stays,
    /// The terms of the last acquisition.
    terms: Mutex<Option<Arc<LeaseTerms>>>,
    /// Whether a call has asked for keys that stay taken after its body: by `min_hold` or `once_per`.
    pub(crate) has_kept_keys: AtomicBool,
    /// How many bodies have gone on without their lock.
    pub(crate) outlived: AtomicU64,
    /// Set once enough nodes were heard of; from then on a node that is down is an immediate "no".
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
        let [known_locks, known_leases, full_keys] = [(); 3].map(|()| RecentKeys::remembered_for(KNOWN_LOCK));
        let quorum = policy.quorum(nodes.len());
        let [started, listening, closed, has_kept_keys] = [const { AtomicBool::new(false) }; 4];
        if !policy.redaction.is_none() {
            observe::redact(policy.redaction);
            // Set here alone.
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

    /// What whoever observes the process is told in place of `key`.
    pub(crate) const fn told<'k>(&self, key: &'k LockKey) -> ToldKey<'k> {
        ToldKey::new(key, self.policy.redaction)
    }

    /// Whether the locks of both managers are the same ones, as far as is known: those of equal names.
    pub(crate) fn has_the_nodes_of(&self, other: &Self) -> bool {
        self.servers_are.is_some() && self.servers_are == other.servers_are
    }

    /// The terms of leases with this `ttl`. Acquisitions that follow each other with the same one share them.
    pub(crate) fn terms(&self, ttl: Duration) -> Arc<LeaseTerms> {
        // No code that can panic runs under this mutex.
        let mut last = self.terms.lock().unwrap_or_else(PoisonError::into_inner);
        let node_timeout = self.node_timeout(ttl);
        let same = last.take().filter(|terms| terms.ttl == ttl && terms.node_timeout == node_timeout);
        Arc::clone(last.insert(same.unwrap_or_else(|| Arc::new(self.new_terms(ttl, node_timeout)))))
    }

    fn new_terms(&self, ttl: Duration, node_timeout: Duration) -> LeaseTerms {
        let Self { quorum, rules, policy: Policy { drift_factor, .. }, .. } = *self;
        LeaseTerms { ttl, drift_factor, node_timeout, quorum, rules }
    }

    /// How long a node is waited for, in a call with this `ttl`.
    pub(crate) fn node_timeout(&self, ttl: Duration) -> Duration {
        self.policy.node_timeout(ttl, self.servers.round_trips.to_quorum())
    }

    /// Opens the channels for wake-ups, at the first contention: most managers never need them.
    pub(crate) fn listen(&self) {
        if !self.listening.swap(true, Ordering::Relaxed) {
            self.nodes.iter().for_each(NodeHandle::listen);
        }
    }

    /// Whether the channels for wake-ups are open, or about to be.
    pub(crate) fn is_listening(&self) -> bool {
        self.listening.load(Ordering::Relaxed)
    }

    /// No acquisition begins from now on. Those that wait are to be told by whoever has them.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn count(&self, wanted: impl Fn(&Status) -> bool) -> usize {
        self.nodes.iter().filter(|node| wanted(&node.status())).count()
    }

    /// Whether enough nodes are connected whose answers count.
    pub(crate) fn is_up(&self) -> bool {
        let counts = |node: &&NodeHandle| node.status() == Status::Up && node.node().abstains_for().is_none();
        self.nodes.iter().filter(counts).count() >= self.quorum.needed
    }

    /// Whether the nodes have yet to be heard of.
    pub(crate) fn is_starting(&self) -> bool {
        !self.started.load(Ordering::Relaxed)
    }

    /// Waits until enough nodes are connected that count or every first connection has ended one way or the other, no longer than
    /// `wait`.
    ///
    /// Without this the first calls after the start would fail only because they came too early.
    pub(crate) async fn started(&self, wait: Wait) {
        let limit = match wait {
            // Who does not wait for holders still waits for the first connection.
            Wait::None | Wait::Forever => FIRST_CONNECTIONS,
            Wait::For(limit) => limit.min(FIRST_CONNECTIONS),
        };
        let is_started = || self.is_up() || self.count(|status| matches!(status, Status::Starting(_))) == 0;
        // Late is not an error here: the round says which node is missing.
        if timeout(limit, wait_until(&self.changed, is_started)).await.is_ok() {
            self.started.store(true, Ordering::Relaxed);
        }
    }

    /// Waits until every first connection has ended one way or the other, for two seconds at most.
    pub(crate) async fn heard_of_all(&self) {
        let all = wait_until(&self.changed, || self.count(|status| matches!(status, Status::Starting(_))) == 0);
        // Who is late has no connection.
        let _ = timeout(FIRST_CONNECTIONS, all).await;
    }

    /// Waits until enough nodes are connected that count, or `is_vain`, which may change with the status of any node.
    pub(crate) async fn up_or(&self, is_vain: impl Fn() -> bool) {
        wait_until(&self.changed, || self.is_up() || is_vain()).await;
    }

    /// Sends the last command about a token to node number `index`, and sees to it that it is settled.
    pub(crate) fn release(&self, index: usize, subject: Arc<Subject>, last: LastCommand) {
        match self.nodes.get(index) {
            Some(node) if self.rules.apply(Rule::ReleasesAreSeenThrough) => node.release_in_background(subject, last),
            Some(node) => drop(node.release(subject, last)),
            None => {}
        }
    }

    /// Records that a quorum has agreed on a fencing `number` for these slots, and which nodes have `lacking` it: they are sent it later.
    pub(crate) fn number_agreed(&self, slots: &[u16], number: u64, lacking: impl Iterator<Item = usize>) {
        if self.quorum.needed >= self.nodes.len() || !self.rules.apply(Rule::NodesLearnAgreedNumbers) {
            return;
        }
        self.nodes.iter().for_each(|node| node.deliver_numbers(&self.servers, || self.new_token()));
        let lacking = lacking.filter_map(|index| Some(self.nodes.get(index)?.label()));
        self.servers.owed_numbers.owe(lacking, slots, number, self.clock.now());
    }

    /// Sees to it that a release that was sent to node number `index` is settled.
    pub(crate) fn follow_up(&self, index: usize, release: PendingRelease) {
        if let Some(node) = self.nodes.get(index).filter(|_| self.rules.apply(Rule::ReleasesAreSeenThrough)) {
            node.follow_up(release);
        }
    }

    /// The error for an operation that too few nodes agreed to, by whether others may do so later.
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
    /// The body has stopped whose lock was broken, and stands under the token of `subject`: whoever breaks it is told.
    pub(crate) fn tell_stopped(&self, subject: &Subject) {
        self.stopped(subject);
        for node in &self.nodes {
            node.node().tell_stopped(subject);
        }
    }

    /// The holder has stopped before the token of `subject`, if its lock is being broken from here: whoever waits is served.
    pub(crate) fn stopped(&self, subject: &Subject) {
        let Some(Stopped { is_free, by }) = self.revocations.stopped(subject) else { return };
        if is_free {
            self.serve_the_next(subject);
        }
        for by in by {
            self.tell_stopped(&Subject::new(subject.key.clone(), by));
        }
        // Everything that waits looks up then, so that it is not for whoever may publish to say.
        self.changed.notify_waiters();
    }

    /// No answer is awaited any more that says where the token of `subject` has the place of a holder.
    pub(crate) fn has_asked(&self, subject: &Subject) {
        if self.revocations.asked(&subject.token) {
            self.serve_the_next(subject);
        }
    }

    /// Releases the token of `subject`, which has the place of a holder that has stopped.
    fn serve_the_next(&self, subject: &Subject) {
        let subject = Arc::new(Subject::new(subject.key.clone(), subject.token));
        // What is not given back for so long ends by itself, with the lease that it took the place of.
        let last = LastCommand::release(CLAIM, self.revocations.left(&subject.token), self.clock.now());
        (0..self.nodes.len()).for_each(|index| self.release(index, Arc::clone(&subject), last));
    }
}
