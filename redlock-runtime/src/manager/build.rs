//! Builds a manager from its settings: nodes, clocks, shared state, and the runtime that drives the connections.

use super::LockManager;
use super::builder::LockManagerBuilder;
use super::label;
use crate::client::clock_steps::watch_clocks;
use crate::client::local_queue::LocalQueue;
use crate::client::node_handle::NodeHandle;
use crate::client::shared::Shared;
use crate::client::wakeup_router::WakeupRouter;
use crate::error::LockError;
use crate::lock::namespace;
use crate::lock::owner_token::ManagerId;
use crate::node::abstention::Caution;
use crate::node::memory::MemoryNode;
use crate::node::redis::cluster::ClusterNode;
use crate::node::redis::cluster::seeds::Seeds;
use crate::node::redis::endpoint::Endpoint;
use crate::node::redis::sentinel::{self, Sentinels};
use crate::node::redis::{NodeConfig, RedisNode};
use crate::node::{BackgroundThread, Environment, Node, Replicas, ServerRegister};
use crate::protocol::rules::Rules;
use crate::request::Policy;
use crate::time::clock::Clock;
use crate::time::token_clock::TokenClock;
use std::collections::HashSet;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Notify;

/// Timeout for the confirmation of a lease by replicas, if no node timeout is set: 16 ms. This is a third of the usual node
/// timeout, because a command may have to wait for the replicas of the commands before it. Too small: replicas in another building
/// are too slow. Too large: the caller has given up before a missing replica is noticed.
const REPLICAS_PATIENCE: Duration = Duration::from_millis(16);

/// Returns the label of a node without a connection to it.
#[cfg(any(test, fuzzing))]
pub(crate) fn label_of(node: &NodeConfig) -> Result<String, LockError> {
    Place::new(node, 1).map(|place| place.label().to_owned())
}

/// Location of one node.
enum Place {
    Server(Endpoint),
    /// Server that Sentinels name.
    Watched(Endpoint, Sentinels),
    Cluster(Seeds),
}

impl Place {
    /// Parses the URL of a node.
    ///
    /// # Errors
    /// [`LockError::Configuration`] if the URL is invalid.
    fn new(node: &NodeConfig, position: usize) -> Result<Self, LockError> {
        if Seeds::has_cluster_url(node) {
            Seeds::new(node, position).map(Self::Cluster)
        } else if sentinel::is_watched(node) {
            sentinel::endpoint(node, position).map(|(endpoint, sentinels)| Self::Watched(endpoint, sentinels))
        } else {
            Endpoint::new(node, position).map(Self::Server)
        }
    }

    fn label(&self) -> &str {
        match self {
            Self::Server(endpoint) | Self::Watched(endpoint, _) => endpoint.label(),
            Self::Cluster(seeds) => seeds.label(),
        }
    }

    /// Starts to connect on `thread`. The runtime `host` drives the connections while it works. Credential providers of the
    /// program run there, too.
    fn start(self, environment: Environment, thread: &Arc<BackgroundThread>, host: Handle) -> Arc<dyn Node> {
        match self {
            Self::Server(endpoint) => {
                let endpoint = endpoint.of_host(host.clone());
                RedisNode::start(endpoint, environment, Arc::clone(thread), Some(host))
            }
            Self::Watched(endpoint, sentinels) => {
                let watched = (endpoint.of_host(host.clone()), sentinels);
                RedisNode::start_watched(watched, environment, Arc::clone(thread), Some(host))
            }
            Self::Cluster(seeds) => {
                let seeds = seeds.of_host(&host);
                ClusterNode::start(seeds, environment, thread, Some(host))
            }
        }
    }

    fn confirm_replicas(&self) -> Option<NonZeroU32> {
        match self {
            Self::Server(endpoint) | Self::Watched(endpoint, _) => endpoint.confirm_replicas(),
            Self::Cluster(seeds) => seeds.confirm_replicas(),
        }
    }

    /// Returns the name that distinguishes the node from the nodes of other managers: its address, or the addresses of all seeds,
    /// and the database.
    fn name(&self) -> String {
        match self {
            Self::Server(endpoint) | Self::Watched(endpoint, _) => {
                format!("{}/{}", endpoint.label(), endpoint.database())
            }
            Self::Cluster(seeds) => seeds.name(),
        }
    }
}

impl LockManagerBuilder {
    /// Builds the manager and starts to connect in the background.
    ///
    /// Call it on a tokio runtime. That runtime drives the connections. If its threads are blocked or it has ended, a thread of
    /// this library takes over. So a manager can be used on any runtime, and can outlive the runtime on which it was built.
    ///
    /// An unreachable node is not an error: connecting is retried forever, and calls report the node. [`LockManager::ready`] waits
    /// for the nodes.
    ///
    /// # Errors
    /// [`LockError::Configuration`] in these cases:
    ///
    /// - A URL is invalid, or needs TLS that is not compiled in.
    /// - No node was given, or one server twice.
    /// - A setting is out of range, or the default `ttl` needs a larger [`max_ttl`](crate::tuning::Tuning::max_ttl).
    /// - More nodes would have to agree than there are.
    /// - The call is not on a tokio runtime, or the thread cannot be started.
    pub fn build(self) -> Result<LockManager, LockError> {
        let builder = self.of_nodes(None);
        builder.check()?;
        let places = builder.places()?;
        builder.policy.check_quorum(places.len())?;
        let host = Handle::try_current().map_err(|_| {
            LockError::configuration("a lock manager needs a tokio runtime: build it inside of async code")
        })?;
        let thread = BackgroundThread::shared().map_err(|error| {
            LockError::configuration(format!("the thread of the lock manager cannot start: {error}"))
        })?;
        let (clock, nodes, servers_are) = (Clock::Boot, places.len(), servers_are(&places));
        let environment = builder.environment(clock, nodes);
        let patience = builder.policy.node_timeout.map_or(REPLICAS_PATIENCE, |timeout| timeout / 3);
        let router = WakeupRouter::default();
        let nodes = places.into_iter().enumerate().map(|(index, place)| {
            let (deliver, connected) = (router.of_node(index), router.connected(index));
            let replicas = place.confirm_replicas().map(|wanted| Replicas { wanted, patience });
            let environment = Environment { deliver, connected, replicas, ..environment.clone() };
            let node = place.start(environment, &thread, host.clone());
            NodeHandle::in_background(node, clock, thread.handle())
        });
        let nodes = nodes.collect();
        let mut shared = builder.finish(clock, environment, nodes);
        shared.servers_are = Some(servers_are);
        let manager = manage(shared, Some(thread.handle().clone()));
        router.connect(&manager.local);
        Ok(manager)
    }

    /// Builds a manager whose only node is in the memory of this process; see [`LockManager::in_memory`].
    ///
    /// # Errors
    /// [`LockError::Configuration`] if nodes were given as well, or a setting is out of range.
    pub fn in_memory(self) -> Result<LockManager, LockError> {
        let builder = self.of_nodes(Some(1));
        builder.check()?;
        builder.check_no_nodes()?;
        builder.policy.check_quorum(1)?;
        Ok(builder.build_in_memory())
    }

    /// Applies the policy for this number of nodes. `None` is the number of nodes of the builder.
    fn of_nodes(self, nodes: Option<usize>) -> Self {
        let nodes = nodes.unwrap_or(self.nodes.len());
        Self { policy: self.policy.of_nodes(nodes), ..self }
    }

    fn check_no_nodes(&self) -> Result<(), LockError> {
        if self.nodes.is_empty() {
            return Ok(());
        }
        Err(LockError::configuration("a manager in memory has no other nodes: leave out `node` and `nodes`"))
    }

    pub(super) fn build_in_memory(self) -> LockManager {
        let clock = Clock::tokio();
        let builder = self.of_nodes(Some(1));
        let (environment, router) = (builder.environment(clock, 1), WakeupRouter::default());
        let of_node = Environment { deliver: router.of_node(0), ..environment.clone() };
        let node = Arc::new(MemoryNode::new(clock, of_node));
        let manager = manage(builder.finish(clock, environment, Box::new([NodeHandle::at_once(node, clock)])), None);
        router.connect(&manager.local);
        manager
    }

    /// Builds a manager of `nodes` on the current runtime. Each function creates a node in its environment.
    ///
    /// # Errors
    /// [`LockError::Configuration`] if nodes were given as well, or a setting is out of range.
    #[cfg(feature = "testing")]
    pub(crate) fn build_with_nodes(
        self,
        made: Made<'_>,
        nodes: Vec<impl FnOnce(Environment) -> Arc<dyn Node>>,
    ) -> Result<LockManager, LockError> {
        let builder = self.of_nodes(Some(nodes.len()));
        builder.check()?;
        builder.check_no_nodes()?;
        let Made { id, clock, servers_are, is_replayed, notebook } = made;
        builder.policy.check_quorum(nodes.len())?;
        let environment = Environment { manager: id, ..builder.environment(clock, nodes.len()) };
        let router = WakeupRouter::default();
        let nodes = nodes.into_iter().enumerate().map(|(index, node)| {
            let (deliver, connected) = (router.of_node(index), router.connected(index));
            let environment = Environment { deliver, connected, ..environment.clone() };
            NodeHandle::in_background(node(environment), clock, &Handle::current())
        });
        let nodes = nodes.collect();
        let mut shared = builder.finish(clock, environment, nodes);
        (shared.servers_are, shared.is_replayed, shared.notebook) = (Some(servers_are.into()), is_replayed, notebook);
        let manager = manage(shared, None);
        router.connect(&manager.local);
        Ok(manager)
    }

    fn environment(&self, clock: Clock, nodes: usize) -> Environment {
        let caution = Caution { after_restart: self.policy.after_restart(nodes), rules: Rules::default() };
        let servers = ServerRegister::new(clock, caution, self.policy.quorum(nodes), self.policy.drift_factor);
        servers.record_lease_length(self.policy.max_ttl());
        servers.compare_settings(self.policy.tolerated_data_loss, self.policy.max_ttl());
        Environment {
            manager: ManagerId::random(),
            namespace: namespace::prefix(&self.namespace).into(),
            label: label::full(self.label.as_deref(), self.instance.as_deref()).into(),
            token_clock: Arc::new(TokenClock::new(clock)),
            changed: Arc::new(Notify::new()),
            deliver: Arc::new(|_| {}),
            connected: Arc::new(|| {}),
            servers: Arc::new(servers),
            replicas: None,
        }
    }

    fn finish(self, clock: Clock, environment: Environment, nodes: Box<[NodeHandle]>) -> Shared {
        Shared::new(environment, clock, self.policy, nodes, Rules::default())
    }

    fn check(&self) -> Result<(), LockError> {
        let Policy { node_timeout, drift_factor, .. } = self.policy;
        if node_timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(LockError::configuration("with a node timeout of zero, no node can answer"));
        }
        if !(0.0..=0.5).contains(&drift_factor) {
            return Err(LockError::configuration(format!(
                "a drift factor of {drift_factor} is out of range: write a fraction between 0.0 and 0.5, such as 0.01"
            )));
        }
        let of_instance = || self.instance.as_deref().and_then(label::instance_fault);
        if let Some(fault) = self.label.as_deref().and_then(label::fault).or_else(of_instance) {
            return Err(LockError::configuration(fault));
        }
        if self.policy.max_waiting == Some(0) {
            return Err(LockError::configuration(
                "with a max_waiting of 0, no call can wait: write `default_wait(Wait::None)`, or a larger number",
            ));
        }
        self.policy.check_longest_ttl()?;
        self.policy.check_default_ttl()?;
        namespace::fault(&self.namespace).map_or(Ok(()), |fault| Err(LockError::configuration(fault)))
    }

    fn places(&self) -> Result<Vec<Place>, LockError> {
        if self.nodes.is_empty() {
            return Err(LockError::configuration(
                "a lock manager needs a node: write `.node(\"redis://host:6379\")`, or `in_memory()` for a test",
            ));
        }
        let numbered = (1..).zip(&self.nodes);
        let places = numbered.map(|(i, node)| Place::new(node, i)).collect::<Result<Vec<_>, _>>()?;
        let mut seen = HashSet::new();
        match places.iter().find(|place| !seen.insert(place.label())) {
            Some(twice) => Err(LockError::configuration(format!(
                "{} is given twice: each node must be an independent server, or its vote counts double",
                twice.label()
            ))),
            None => Ok(places),
        }
    }
}

/// Creates a manager that renews its locks on `runtime`, or on the runtime of its first call that holds one.
fn manage(shared: Shared, runtime: Option<Handle>) -> LockManager {
    let local = Arc::new(LocalQueue::new(Arc::new(shared), runtime));
    watch_clocks(&local);
    LockManager::new(local)
}

/// Settings that a test chooses for a manager.
#[cfg(feature = "testing")]
pub(crate) struct Made<'m> {
    pub(crate) id: ManagerId,
    pub(crate) clock: Clock,
    /// Identity of its set of servers.
    pub(crate) servers_are: &'m str,
    /// `true` if each run of a seed must be identical.
    pub(crate) is_replayed: bool,
    pub(crate) notebook: Option<crate::stats::CallLog>,
}

/// Returns the identity of a set of servers, independent of their order.
fn servers_are(places: &[Place]) -> Box<str> {
    let mut servers: Vec<_> = places.iter().map(Place::name).collect();
    servers.sort_unstable();
    servers.join(" ").into()
}
