//! Describing a manager. How one is made of it is in `build`.

use super::LockManager;
use crate::node::redis::NodeConfig;
use crate::observe::Redaction;
use crate::protocol::local_budget::LocalBudget;
use crate::request::AfterRestart;
use crate::request::{OrderCheck, Policy, Wait};
use std::fmt;
use std::time::Duration;

/// Describes a [`LockManager`]: its nodes, and what a request that says nothing else gets.
///
/// # Examples
/// ```
/// # use redlock_runtime::{LockError, LockManager};
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
/// let manager = LockManager::builder()
///     .nodes(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"])
///     .namespace("shop")
///     .default_ttl(Duration::from_secs(10))
///     .build()?;
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct LockManagerBuilder {
    pub(super) nodes: Vec<NodeConfig>,
    pub(super) namespace: String,
    /// `None` for the name of the program.
    pub(super) label: Option<String>,
    pub(super) instance: Option<String>,
    pub(super) policy: Policy,
}

impl LockManager {
    /// Starts to describe a manager.
    pub fn builder() -> LockManagerBuilder {
        LockManagerBuilder::default()
    }

    /// A manager whose only node is in this process: for tests and first steps. It excludes nobody else.
    ///
    /// It follows tokio's clock, so leases run out in virtual time under `tokio::time::pause`.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::builder().build_in_memory()
    }
}

impl LockManagerBuilder {
    /// Adds a node: `redis://[user:password@]host[:port][/database]`, `rediss://` for TLS, `unix:///path?db=0` for a
    /// socket. `valkey://` and `valkeys://` are the same as the first two.
    ///
    /// A Redis Cluster is one node: `redis+cluster://[user:password@]host[:port]?seed=host:port&seed=host:port`, or
    /// `rediss+cluster://`. Any members do as seeds; the others are found. For each key, the master that has its slot decides, so
    /// that several masters of one cluster are never several votes.
    ///
    /// TLS needs the feature `tls-ring` or `tls-aws-lc-rs`, or `tls` in a program that has rustls with a provider already or
    /// installs one before [`build`](Self::build).
    ///
    /// Several nodes must be *independent* masters: a lock is held when a majority of them has granted it. Three or five are
    /// useful; an even number survives no more failures than the odd one below it.
    ///
    /// All processes must use the same nodes. Two lists that are used at the same time, as in a rolling deploy, may differ by one added
    /// or removed node. With larger differences, such as 1 and 3 nodes or one replaced URL of three, two callers can hold one lock. The
    /// manager does not detect that.
    ///
    /// A name must not lead to another server while the old one still runs. The manager looks a name up every 30 s, and leaves a server
    /// whose name leads to another one. Until all managers have done that, two callers can hold one lock.
    ///
    /// The same address twice is refused by [`build`](Self::build). Of two *names* of one server, such as `localhost` and
    /// `127.0.0.1`, the second counts as down ([`NodeError::SameServer`](crate::NodeError::SameServer)), as long as the
    /// user may ask the server who it is (`+info`).
    ///
    /// What a URL cannot say, such as credentials that change, is said by a [`NodeConfig`].
    pub fn node(mut self, node: impl Into<NodeConfig>) -> Self {
        self.nodes.push(node.into());
        self
    }

    /// Adds several nodes; see [`node`](Self::node).
    pub fn nodes<N: Into<NodeConfig>>(mut self, nodes: impl IntoIterator<Item = N>) -> Self {
        self.nodes.extend(nodes.into_iter().map(Into::into));
        self
    }

    /// How long to wait for the answers of the nodes in one round.
    /// Default: a fiftieth of the `ttl`, between 10 ms and 50 ms; or four times what the nearest majority takes to answer, where
    /// that is longer: up to 250 ms, and up to a tenth of the `ttl`.
    ///
    /// How far away the nodes are is measured all the time, and a node to which there is no connection does not count among
    /// the nearest. Slow nodes cost nothing while a majority is fast, but for calls for
    /// several keys that many want, which ask one node first. Set it when nodes are further away than 60 ms, or when
    /// calls should notice a dead majority sooner or later than that. [`CheckReport`](crate::admin::CheckReport) tells what it is.
    pub fn node_timeout(mut self, timeout: Duration) -> Self {
        self.policy.node_timeout = Some(timeout);
        self
    }

    /// The `ttl` of a request without one. Default: 30 s.
    ///
    /// With several nodes, a value above 60 s needs a [`longest_ttl`](Self::longest_ttl) of at least this value; otherwise
    /// [`build`](Self::build) fails. First set `longest_ttl` in all managers of the same keys, then this value in the next deploy. Managers
    /// that do not know the longer value count a restarted node too early, and two callers can hold one lock.
    pub fn default_ttl(mut self, ttl: Duration) -> Self {
        self.policy.default_ttl = ttl;
        self
    }

    /// The longest `ttl` of all managers of the same keys: 13 ms to 30 days. All of them need the same value; the event
    /// `settings_differ` and [`check`](LockManager::check) report another one. A longer `ttl` is refused with [`LockError::Configuration`](crate::LockError::Configuration), even that of a lock to
    /// [`attach`](LockManager::attach). Default: 60 s; 30 days with one node that is
    /// trusted after a restart, since nobody waits for its leases.
    ///
    /// A node that may have lost locks does not vote for this time: a node that was restarted, whose data was replaced, or whose uptime
    /// is shorter when a process first connects; see [`AfterRestart::Abstain`]. The value limits the `ttl`, not the time for which a
    /// renewed lock is held.
    pub fn longest_ttl(mut self, ttl: Duration) -> Self {
        self.policy.longest_ttl = Some(ttl);
        self
    }

    /// The `wait` of a request that says none. A zero duration is [`Wait::None`]. Default: 10 s.
    pub fn default_wait(mut self, wait: impl Into<Wait>) -> Self {
        self.policy.default_wait = wait.into();
        self
    }

    /// Prefixes every key with `namespace` and a colon, so that several applications can share a server.
    /// Default: none; the key is the name in Redis, so that other Redlock clients can use the same lock.
    ///
    /// At most 256 bytes. Different namespaces have no lock in common: special characters in a namespace are escaped in Redis, such as
    /// `:` as `%3A`, and each counts as three bytes. A manager without a namespace can use any key, including the keys below a namespace.
    ///
    /// The wake-up channels (`redlock:<namespace>:..`) and the fencing registers of a namespace have names of their own. So a namespace is
    /// a security boundary for users that may only use its names. All managers that share locks need the same namespace.
    ///
    /// Locks and data share the key names of a database: the lock `order:7` cannot be taken while data is stored under `order:7`. A
    /// namespace such as `locks` separates them.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// What this process is called where people look for it: in [`inspect`](LockManager::inspect), in `CLIENT LIST`, and in
    /// the command `redlock`. Default: the name of the program.
    ///
    /// The connections of the manager are called `redlock-<id>;order-service;host7;1234`: the id is that of all its tokens, and
    /// the host and the process id follow the label. At most 64 bytes, printable ASCII without spaces and semicolons.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let manager = LockManager::builder().label("order-service").in_memory()?;
    /// let _guard = manager.acquire("order:7").await?;
    /// assert!(manager.inspect("order:7").await.to_string().contains("held by order-service;"));
    /// # Ok(()) }
    /// ```
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Name of this process among those with the same [`label`](Self::label). It replaces the host and the process id, as in
    /// `redlock-<id>;order-service;blue-3`. An empty text removes both. Default: the host and the process id.
    ///
    /// All clients of a server with `CLIENT LIST` see this name, and `inspect` shows it. At most 64 bytes, printable ASCII without spaces
    /// and semicolons.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let manager = LockManager::builder().label("order-service").instance("blue-3").in_memory()?;
    /// let _guard = manager.acquire("order:7").await?;
    /// assert!(manager.inspect("order:7").await.to_string().contains("held by order-service;blue-3"));
    /// # Ok(()) }
    /// ```
    pub fn instance(mut self, instance: impl Into<String>) -> Self {
        self.instance = Some(instance.into());
        self
    }

    /// How much faster than ours a server's clock may run, as a fraction of the `ttl`: 0.0 to 0.5.
    /// The validity of a lock is shortened by that much and by 2 ms. Default: 0.01.
    pub fn drift_factor(mut self, factor: f64) -> Self {
        self.policy.drift_factor = factor;
        self
    }

    /// How often, and for how long, calls of this manager may hand a lock over to one another while callers elsewhere
    /// wait for it: until either limit is reached. Default: 16 times or 20 ms, counted from when the others are heard of.
    ///
    /// A local handover sends nothing; one to another process takes two round trips and more. So larger limits let more
    /// calls through in all, and smaller ones serve callers nearer to the order in which they came. Zero passes, or no
    /// time, give way to others at once.
    ///
    /// Whatever the limits, a lock that nobody else is known to wait for goes round here for one `ttl` at most, then
    /// it is released and taken anew.
    pub fn local_handover(mut self, passes: u32, time: Duration) -> Self {
        self.policy.local_budget = LocalBudget { passes, time };
        self
    }

    /// For how long this manager keeps a lock after the call that had it, in case that it wants it again soon.
    /// Default: zero, not at all.
    ///
    /// Such a lock is *idle*: held at the nodes, and by no call. The next call of this manager has it at once, without a
    /// command and with the fencing token after the one before, where others would take a round trip. Managers that want it
    /// ask for it, and it is given back the moment one does.
    ///
    /// # When to use it
    /// Where the same process mostly comes back to a key within a second or two: work that is spread over processes by the
    /// key, as by a partition, a session or a shard. Not where processes take turns on the same keys: each such turn costs
    /// one more round trip. What is worth it is found out for each key: only one that was released here twice within two
    /// seconds is kept, one that others asked for before it was used again twice is not for 2 s, then 4 s, up to 64 s,
    /// and then only after 8 uses in quick succession, later 64; a manager that saves too little by all this stops for ten
    /// seconds. See [`Stats::linger`](crate::admin::Stats::linger).
    ///
    /// # What others see
    /// - A manager of this library that waits for the lock has it one round trip later than if it had been free; its calls
    ///   that do not wait are answered as if it were free, if that manager lingers as well, and otherwise find it taken.
    /// - Any other program with `SET NX` finds it taken for up to this time after the last use, and for one `ttl` in all.
    /// - Should this process die, the lock is free when its `ttl` is over, as with any lock; and so it is when the program
    ///   ends without a [`shutdown`](LockManager::shutdown) of a manager that is [`install`](LockManager::install)ed, which is
    ///   never dropped.
    ///
    /// A lock is idle for this time at most, and no longer than until a quarter of its `ttl` is left: nothing is renewed
    /// meanwhile. [`shutdown`](LockManager::shutdown), and dropping the last handle of the manager, give back everything. A
    /// lock with `min_hold` or `once_per` is never kept.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager};
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let manager = LockManager::builder().linger(Duration::from_secs(2)).in_memory()?;
    /// for _ in 0..10 {
    ///     drop(manager.acquire("session:7").await?);
    /// }
    /// assert_eq!(manager.stats().linger.reused, 8);
    /// # Ok(()) }
    /// ```
    pub fn linger(mut self, linger: Duration) -> Self {
        self.policy.linger = linger;
        self
    }

    /// How many locks may be idle at once, see [`linger`](Self::linger): when there are more, the ones that have been idle
    /// for longest are given back, or nearly so. Default: 1024.
    pub fn most_idle(mut self, locks: usize) -> Self {
        self.policy.most_idle = locks;
        self
    }

    /// Maximum number of calls of this manager that wait for one key. One more call fails at once with
    /// [`LockError::TooManyWaiting`](crate::LockError::TooManyWaiting). At least 1. Default: no limit.
    ///
    /// The limit protects a service from a crowd that wants one key: without it, each request of the crowd waits for its full `wait`. Not
    /// counted: the holder, the call that waits on behalf of the others, and calls that do not wait.
    /// Calls for several keys are counted for their combination of keys.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let manager = LockManager::builder().max_waiting(100).in_memory()?;
    /// # drop(manager); Ok(()) }
    /// ```
    pub fn max_waiting(mut self, calls: usize) -> Self {
        self.policy.max_waiting = Some(calls);
        self
    }

    /// What is done when locks are taken in one order here and in another one there; see [`OrderCheck`].
    /// Default: [`OrderCheck::Warn`] with debug assertions, and otherwise [`OrderCheck::Off`].
    pub fn order_check(mut self, check: OrderCheck) -> Self {
        self.policy.order_check = check;
        self
    }

    /// Whether keys are kept from whoever observes the process: spans and events have the template of the attribute, or the
    /// [`label`](crate::LockRequest::label), in the place of the key, and a short hash where there is none. For keys with names
    /// of people in them. Default: `false`.
    ///
    /// The hash is the same everywhere, so that events of one lock can be brought together. Anyone who can guess the key can compute it: use
    /// [`redact_keys_with`](Self::redact_keys_with) for short keys such as numbers. Errors and [`held`](LockManager::held_locks) have the key as ever: they are for the program, which has made it. If
    /// any manager of the process redacts keys, the handlers of axum and tonic redact the errors that they log.
    pub fn redact_keys(mut self, is_redacted: bool) -> Self {
        self.policy.redaction = if is_redacted { Redaction::Hash } else { Redaction::None };
        self
    }

    /// Redacts keys like [`redact_keys`](Self::redact_keys), with a keyed hash: HMAC-SHA-256 with `secret`. Without the secret, a guess of a
    /// short key, such as a number, cannot be compared with the hash. Of this and `redact_keys`, the last call is used.
    ///
    /// Services with equal secrets have equal hashes for one key, so that their logs can be searched together. Use at least 16 random bytes.
    /// `Debug` does not show the secret.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// # let secret_of_logs = b"0123456789abcdef";
    /// let manager = LockManager::builder().redact_keys_with(secret_of_logs).in_memory()?;
    /// # drop(manager); Ok(()) }
    /// ```
    pub fn redact_keys_with(mut self, secret: impl AsRef<[u8]>) -> Self {
        self.policy.redaction = Redaction::keyed(secret.as_ref());
        self
    }

    /// Number of nodes that may lose their data at any time without a second holder. All managers of the same keys need the same value.
    /// Default: 0; restarted nodes then abstain, see [`after_restart`](Self::after_restart).
    ///
    /// More nodes must agree: ceil((N + d + 1) / 2) of N nodes if d may lose their data, which is 4 of 5 for one or two. Fewer nodes may
    /// be down at the same time, and a restarted node votes at once.
    pub fn tolerate_amnesia(mut self, nodes: usize) -> Self {
        self.policy.tolerated_amnesia = nodes;
        self
    }

    /// Sets if a restarted node, which may have lost its locks, votes at once. All managers of the same keys need the same value.
    /// Default: [`AfterRestart::Abstain`] with several nodes, [`AfterRestart::Trust`] with one, and with
    /// [`tolerate_amnesia`](Self::tolerate_amnesia). Each has its price: see [`AfterRestart`].
    pub fn after_restart(mut self, after_restart: AfterRestart) -> Self {
        self.policy.after_restart = Some(after_restart);
        self
    }
}

impl fmt::Debug for LockManagerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // URLs may hold passwords.
        f.debug_struct("LockManagerBuilder")
            .field("nodes", &self.nodes.len())
            .field("namespace", &self.namespace)
            .field("label", &self.label)
            .field("instance", &self.instance)
            .field("policy", &self.policy)
            .finish()
    }
}
