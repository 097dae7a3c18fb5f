//! Builder of a manager. `build` makes the manager.

use super::{LockManager, Tuning};
use crate::node::redis::NodeConfig;
use crate::observe::Redaction;
use crate::request::{OrderCheck, Policy, Wait};
use std::fmt;
use std::time::Duration;

/// Builder of a [`LockManager`]: its nodes, and the defaults of requests.
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
    /// Returns a builder.
    pub fn builder() -> LockManagerBuilder {
        LockManagerBuilder::default()
    }

    /// Returns a manager whose only node is in the memory of this process, for tests and first steps. It excludes no other process.
    ///
    /// It uses the clock of tokio, so leases expire in virtual time under `tokio::time::pause`.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::builder().build_in_memory()
    }
}

impl LockManagerBuilder {
    /// Adds a node: `redis://[user:password@]host[:port][/database]`, `rediss://` for TLS, or `unix:///path?db=0` for a socket.
    /// `valkey://` and `valkeys://` are the same as the first two.
    ///
    /// A Redis Cluster is one node: `redis+cluster://[user:password@]host[:port]?seed=host:port&seed=host:port`, or
    /// `rediss+cluster://`. Any members can be seeds; the others are discovered. For each key, the master of its slot decides, so several
    /// masters of one cluster never count as several votes.
    ///
    /// TLS needs the feature `tls-ring` or `tls-aws-lc-rs`, or `tls` in a program that already has rustls with a provider or installs one
    /// before [`build`](Self::build). A [`NodeConfig`] has the options that do not fit into a URL, such as rotating credentials.
    ///
    /// # Several nodes
    /// Several nodes must be *independent* masters: a lock is held if a majority of them has granted it. Use three or five; an even number
    /// survives no more failures than the odd number below it.
    ///
    /// All processes must use the same nodes. Two lists that are used at the same time, as in a rolling deployment, may differ by one added
    /// or removed node. With larger differences, such as 1 and 3 nodes or one replaced URL of three, two callers can hold one lock. The
    /// manager does not detect that.
    ///
    /// A host name must not lead to another server while the old one still runs. The manager resolves a name every 30 s, and leaves a
    /// server whose name leads to another one. Until all managers have done that, two callers can hold one lock.
    ///
    /// [`build`](Self::build) rejects the same address twice. If two *names* lead to one server, such as `localhost` and `127.0.0.1`, the
    /// second node counts as down ([`NodeError::SameServer`](crate::NodeError::SameServer)), provided that the user has `+info`.
    pub fn node(mut self, node: impl Into<NodeConfig>) -> Self {
        self.nodes.push(node.into());
        self
    }

    /// Adds several nodes; see [`node`](Self::node).
    pub fn nodes<N: Into<NodeConfig>>(mut self, nodes: impl IntoIterator<Item = N>) -> Self {
        self.nodes.extend(nodes.into_iter().map(Into::into));
        self
    }

    /// Sets how long one round waits for the answers of the nodes. Default: 1/50 of the `ttl`, from 10 ms to 50 ms; or four times the round
    /// trip of the nearest majority if that is longer, up to 250 ms and 1/10 of the `ttl`.
    ///
    /// Round trips are measured all the time. Nodes that are not connected are not among the nearest. A slow node costs nothing while a
    /// majority is fast, except in contended calls for several keys, which ask one node first.
    ///
    /// Set it if nodes are further away than 60 ms, or to detect a dead majority sooner or later.
    /// [`CheckReport`](crate::admin::CheckReport) shows the current value.
    pub fn node_timeout(mut self, timeout: Duration) -> Self {
        self.policy.node_timeout = Some(timeout);
        self
    }

    /// Sets the `ttl` of requests without one. Default: 30 s.
    ///
    /// With several nodes, a value above 60 s needs a [`max_ttl`](crate::tuning::Tuning::max_ttl) of at least this value; otherwise
    /// [`build`](Self::build) fails. First set `max_ttl` in all managers of the same keys, then this value in the next deployment. Managers
    /// that do not know the longer value count a restarted node too early, and two callers can hold one lock.
    pub fn default_ttl(mut self, ttl: Duration) -> Self {
        self.policy.default_ttl = ttl;
        self
    }

    /// Sets the `wait` of requests without one. A zero duration is [`Wait::None`]. Default: 10 s.
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

    /// Sets the name of this service in [`inspect`](LockManager::inspect), in `CLIENT LIST` and in the command `redlock`. At most 64 bytes,
    /// printable ASCII without spaces and semicolons. Default: the name of the program.
    ///
    /// The connections of the manager are named `redlock-<id>;order-service;host7;1234`: the id that all its tokens contain, the label, the
    /// host and the process id.
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

    /// Sets the name of this process among those with the same [`label`](Self::label). It replaces the host and the process id, as
    /// in `redlock-<id>;order-service;blue-3`. An empty text removes both. Default: the host and the process id.
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

    /// Sets how long this manager keeps a lock after the call that used it, so that its next call needs no command.
    /// Default: zero, which turns it off.
    ///
    /// Such a lock is *idle*: held on the nodes, but by no call. The next call of this manager acquires it without a round trip. If another
    /// manager wants it, the nodes ask for it, and it is released at once.
    ///
    /// # When to use it
    /// Use it if the same process usually comes back to a key within a second or two, for example if work is distributed by partition,
    /// session or shard. Do not use it if processes take turns on the same keys: each turn then costs one more round trip.
    ///
    /// The manager learns which keys are worth keeping. It keeps a key only after two releases within two seconds. If others ask for the
    /// key before it was reused twice, it is not kept for 2 s, then 4 s, up to 64 s, and then only after 8 quick uses, later 64. A
    /// manager that saves too little in total stops for ten seconds. [`Stats::linger`](crate::admin::Stats::linger) counts the effect.
    ///
    /// # Effect on others
    /// - A waiting manager of this library gets the lock one round trip later than if it had been free. A call without a wait gets it
    ///   too, if its manager also lingers; otherwise it finds the lock taken.
    /// - Any other program with `SET NX` finds the key taken for up to this time after the last use, and for at most one `ttl` in total.
    /// - If this process crashes, the lock is free when its `ttl` is over. The same applies if the program ends without
    ///   [`shutdown`](LockManager::shutdown) of an [installed](LockManager::install) manager, which is never dropped.
    ///
    /// An idle lock is not renewed: it is released when a quarter of its `ttl` is left. [`shutdown`](LockManager::shutdown), and dropping
    /// the last handle of the manager, release all idle locks. A lock with `min_hold` or `once_per` is never kept.
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

    /// Sets the maximum number of calls of this manager that wait for one key. One more call fails at once with
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

    /// Sets the reaction to locks that are acquired in contradicting orders; see [`OrderCheck`].
    /// Default: [`OrderCheck::Warn`] with debug assertions, otherwise [`OrderCheck::Off`].
    pub fn order_check(mut self, check: OrderCheck) -> Self {
        self.policy.order_check = check;
        self
    }

    /// Hides keys in spans and events: the template of the attribute or the [`label`](crate::LockRequest::label) takes their place, or a
    /// short hash if there is neither. For keys that contain personal data. Default: keys are shown.
    ///
    /// Equal keys have equal hashes in all processes. Anyone who can guess the key can compute the hash: use
    /// [`redact_keys_with`](Self::redact_keys_with) for short keys such as numbers. Errors and [`held_locks`](LockManager::held_locks)
    /// are not redacted, since they stay in the program. If any manager of the process redacts keys, the handlers of axum and tonic
    /// redact the errors that they log.
    pub fn redact_keys(mut self) -> Self {
        self.policy.redaction = Redaction::Hash;
        self
    }

    /// Redacts keys like [`redact_keys`](Self::redact_keys), with a keyed hash: HMAC-SHA-256 with `secret`. Without the secret, a guess
    /// of a short key, such as a number, cannot be compared with the hash. Of this and `redact_keys`, the last call is used.
    ///
    /// Services with equal secrets have equal hashes for one key, so that their logs can be searched together. Use at least 16 random
    /// bytes. `Debug` does not show the secret.
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

    /// Changes settings that few programs need; see [`Tuning`].
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let locks = LockManager::builder().tuning(|tuning| tuning.max_idle(100)).in_memory()?;
    /// # drop(locks); Ok(()) }
    /// ```
    pub fn tuning(mut self, tune: impl FnOnce(Tuning) -> Tuning) -> Self {
        self.policy = tune(Tuning::new(self.policy)).into_policy();
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
