//! What all connections to one address share: what is known of the server there, and how its clock goes.

use crate::error::NodeError;
use crate::node::abstention::Abstention;
use crate::node::server_clock::ServerClock;
use crate::node::server_identity::{DataSet, Identity};
use crate::node::server_register::ServerRegister;
use crate::observe::{Throttle, events};
use crate::protocol::command::{Notice, ProvenClaim};
use crate::stats::NodeCounters;
use crate::time::clock::Instant;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// So many microseconds more or less between the clocks of a server and ours are told to whoever wants to know roughly.
/// Smaller, and many answers would be; larger, and a clock that is wrong by an hour would be taken for one that is not.
const NEWS: u64 = 1_000_000;

/// For so long it is not told again that a server refuses the subscription. Smaller, a server whose connections break says it with
/// each; larger, whoever looks into the log misses it.
const SAME_REFUSAL: Duration = Duration::from_secs(60);

/// What is known of the server at one address.
#[derive(Debug)]
pub(crate) struct ServerFacts {
    address: Box<str>,
    /// The cluster that the server is a member of, as its node is called.
    cluster: Option<Box<str>>,
    servers: Arc<ServerRegister>,
    clock: Mutex<ServerClock>,
    pub(crate) counters: NodeCounters,
    /// Whether a member of a cluster has channels of its own.
    has_own_channels: AtomicBool,
    /// How often it has refused to say when a lock is free.
    refusals: Throttle,
}

impl ServerFacts {
    pub(crate) fn new(address: &str, servers: Arc<ServerRegister>) -> Self {
        let clock = Mutex::new(ServerClock::new(servers.drift_factor));
        Self {
            address: address.into(),
            cluster: None,
            servers,
            clock,
            counters: NodeCounters::default(),
            has_own_channels: AtomicBool::new(false),
            refusals: Throttle::default(),
        }
    }

    /// Of a member of the cluster that is the node called `cluster`.
    pub(crate) fn of_member(address: &str, cluster: &str, servers: Arc<ServerRegister>) -> Self {
        Self { cluster: Some(cluster.into()), ..Self::new(address, servers) }
    }

    /// Whether the server is known to be a member of a cluster.
    pub(crate) const fn is_member(&self) -> bool {
        self.cluster.is_some()
    }

    /// Whether the member of a cluster has channels of its own.
    pub(crate) fn has_channels(&self, are_own: bool) {
        self.has_own_channels.store(are_own, Ordering::Release);
    }

    /// Whether what the member of a cluster publishes comes from nobody else.
    pub(crate) fn has_own_channels(&self) -> bool {
        self.has_own_channels.load(Ordering::Acquire)
    }

    /// The node that the server is, or whose part it is.
    pub(crate) fn node(&self) -> &str {
        self.cluster.as_deref().unwrap_or(&self.address)
    }

    /// The server has refused the subscription, by `error`. That is told now and then.
    pub(crate) fn does_not_tell(&self, error: &NodeError) {
        if let Some(times) = self.refusals.times(self.now(), SAME_REFUSAL) {
            events::not_listening(&self.address, error, times);
        }
    }

    /// The time by our clock.
    pub(crate) fn now(&self) -> Instant {
        self.servers.clock.now()
    }

    /// There is a connection to a server that says that it is `identity`. Returns whether the node abstains on it.
    ///
    /// # Errors
    /// [`NodeError::SameServer`] when it counts already, under another address.
    pub(crate) fn connected(&self, identity: Option<Identity>) -> Result<Abstention, NodeError> {
        self.servers.connected(&self.address, self.node(), identity)
    }

    /// The server says that it is `identity`, and a replica.
    pub(crate) fn is_replica(&self, identity: Identity) {
        self.servers.is_replica(&self.address, self.node(), identity);
    }

    /// Whether it matters that the server has forgotten something.
    pub(crate) fn is_distrusted(&self) -> bool {
        self.servers.distrusts()
    }

    /// Whether the server, which says that its data is `data`, still has what it had.
    pub(crate) fn has_kept(&self, data: DataSet) -> bool {
        self.servers.has_kept(&self.address, data)
    }

    /// For how much longer than `at` the node abstains, if so.
    pub(crate) fn abstains_for(&self, abstention: Abstention, at: Instant) -> Option<Duration> {
        abstention.left(at, || self.servers.others_suffice(at))
    }

    /// A connection is about to be made. What was heard on the one before may have come after that was said to be broken.
    pub(crate) fn connecting(&self) {
        self.clock().disconnected();
    }

    /// The connection broke.
    pub(crate) fn disconnected(&self) {
        self.clock().disconnected();
        self.servers.disconnected(&self.address, self.node());
    }

    /// The server, which votes, has answered to what was `sent`.
    pub(crate) fn answered(&self, sent: Instant, received: Instant) {
        self.servers.round_trips.measured(self.node(), &self.address, received.since(sent));
    }

    /// A notice that is here now and has come on the connection on which the server tells its time, with what it proves.
    pub(crate) fn proven(&self, notice: Notice) -> Notice {
        let Notice::Claimed(claim) = notice else { return notice };
        if self.is_member() && !self.has_own_channels() {
            // A cluster passes messages on, so that this one may be of another member: of its clock and its data, and behind
            // answers of that member which say that the claim is over.
            return Notice::Granted;
        }
        let earliest = self.clock().earliest(claim.begun, self.now(), self.servers.rules());
        earliest.map_or(Notice::Granted, |from| Notice::Proven(ProvenClaim { length: claim.length, from }))
    }

    /// The server has told its `time`, since 1970, in the answer that is here to what was `sent`.
    pub(crate) fn told(&self, time: Duration, sent: Instant) {
        let received = self.now();
        let mut clock = self.clock();
        let step = clock.observe(time, sent, received);
        let news = clock.news(NEWS);
        drop(clock);
        if let Some(ahead) = news {
            self.servers.is_ahead(&self.address, self.node(), ahead);
        }
        if let Some(step) = step {
            self.servers.stepped(self.node(), step);
        }
    }

    fn clock(&self) -> MutexGuard<'_, ServerClock> {
        // No code that can panic runs under this mutex.
        self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::owner_token::ManagerId;
    use crate::node::Environment;
    use crate::node::abstention::Caution;
    use crate::protocol::command::Claim;
    use crate::protocol::quorum::Quorum;
    use crate::protocol::rules::Rules;
    use crate::protocol::timing::CLAIM;
    use crate::request::AfterRestart;
    use crate::time::clock::Clock;
    use tokio::time::advance;

    /// What the server's clock shows all the time.
    const TIME: Duration = Duration::from_secs(1_700_000_000);

    #[tokio::test(start_paused = true)]
    async fn what_was_told_on_one_connection_proves_nothing_on_the_next() {
        let servers = Environment::of_lone_node(ManagerId::random(), Clock::tokio()).servers;
        let facts = ServerFacts::new("node", servers);
        // No time is earlier than the origin of the clock.
        advance(CLAIM).await;
        let told = || facts.told(TIME, facts.now());
        let proves =
            || matches!(facts.proven(Notice::Claimed(Claim { length: CLAIM, begun: TIME })), Notice::Proven(_));
        assert!(!proves(), "nothing was told");
        told();
        assert!(proves());
        facts.disconnected();
        assert!(!proves());
        // The last answers are handed out when it is known that the connection is broken.
        told();
        facts.connecting();
        assert!(!proves());
        told();
        assert!(proves());
    }

    /// Two members answer soon, and are no majority of three nodes.
    #[tokio::test(start_paused = true)]
    async fn the_members_of_a_cluster_are_one_node() {
        let caution = Caution { after_restart: AfterRestart::Trust, rules: Rules::default() };
        let servers = Arc::new(ServerRegister::new(Clock::tokio(), caution, Quorum::of(3, 0), 0.01));
        let member = |address| ServerFacts::of_member(address, "cluster", Arc::clone(&servers));
        let (near, far) = (Duration::from_millis(1), Duration::from_millis(80));
        let (members, server) = (["m1", "m2"].map(member), ServerFacts::new("server", Arc::clone(&servers)));
        let now = server.now();
        for (facts, distance) in [(&members[0], near), (&members[1], near), (&server, far)] {
            facts.answered(now, now.after(distance));
        }
        assert_eq!(servers.round_trips.to_quorum(), far);
    }

    #[tokio::test(start_paused = true)]
    async fn a_member_proves_a_claim_on_channels_of_its_own_alone() {
        let servers = Environment::of_lone_node(ManagerId::random(), Clock::tokio()).servers;
        advance(CLAIM).await;
        let claimed = Notice::Claimed(Claim { length: CLAIM, begun: TIME });
        let member = ServerFacts::of_member("member", "cluster", servers);
        for (are_own, expected) in [(false, false), (true, true), (false, false)] {
            member.has_channels(are_own);
            member.told(TIME, member.now());
            assert_eq!(matches!(member.proven(claimed), Notice::Proven(_)), expected, "{are_own}");
        }
    }
}
