//! A Redis server as a node.
//!
//! This folder contains all code that knows the Redis protocol: connections, scripts, and the encoding of commands and replies. No type of
//! the `redis` crate is used above this folder. The meaning of a command is defined elsewhere: `protocol::node_state` implements it in
//! Rust, and the scripts do the same.
//!
//! The path of a command: `RedisNode` finds the connection in `connections`. `live_connection` encodes the command with `script` and puts
//! it into the `outbox`. The `io_task` sends it in a `batch`. The reply returns on the same path, and `answer` decodes it.
//!
//! The `supervisor` makes a new connection whenever one has broken: `connect` opens it with `socket`, and `prepare` makes it ready. `names`
//! ends the connection when the name of the server leads to another one, and `silence` when it is dead but open. All of these tasks run on
//! the library's thread.
//!
//! The I/O task is an exception: the runtime of the application drives it while that runtime is responsive. Both sides can drive a
//! `shared_io_task`. `runtime_failover` decides which side does, with the help of `liveness_probe`, and the socket moves along
//! (`migratable_socket`). `bounded` limits the data from a server. If a server supports only RESP2, a `subscriber` has a second connection
//! for wake-ups.

mod acl_hint;
mod address_map;
mod admin_connection;
mod answer;
mod backoff;
mod batch;
mod bounded;
mod channels;
mod close_reason;
pub(crate) mod cluster;
mod comparisons;
mod confirmation;
mod connect;
mod connections;
mod credentials;
mod describe;
mod dial;
pub(crate) mod endpoint;
mod extensions;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzed;
mod info;
mod inspect;
mod io_task;
mod list;
mod live_connection;
mod liveness_probe;
mod log_throttle;
mod lost_script;
mod marker;
mod migratable_socket;
mod names;
mod needed;
mod node_config;
mod outbox;
#[cfg(feature = "tls")]
mod own_authorities;
mod packing;
mod parameters;
mod pattern_subscribers;
mod permissions;
mod prepare;
mod progress;
mod question;
mod reach;
mod runtime_failover;
mod script;
pub(crate) mod sentinel;
mod settings;
mod shared_io_task;
mod side_key;
mod silence;
mod socket;
mod stream;
mod subscriber;
mod supervisor;
#[cfg(test)]
mod tests;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "tls")]
mod tls_failure;
#[cfg(feature = "tls")]
mod tls_provider;
#[cfg(feature = "tls")]
mod tls_settings;
mod url;
mod verification;
mod wording;

pub use self::credentials::Credentials;
#[cfg(test)]
pub(crate) use self::dial::made_up;
pub use self::node_config::NodeConfig;
#[cfg(any(test, fuzzing))]
pub(crate) use self::{
    script::{LETTERS, SHARE},
    side_key::queue_name,
};

use self::answer::occupant;
use self::cluster::redirection::Redirect;
use self::connections::Connections;
use self::endpoint::Endpoint;
use self::sentinel::Sentinels;
use self::supervisor::Supervised;
use crate::error::NodeError;
use crate::lock::{LockKey, OwnerToken};
use crate::node::environment::Environment;
use crate::node::inspection::{Names, NodeInspection};
use crate::node::pending::Recipient;
use crate::node::report::NodeReport;
use crate::node::status::Status;
use crate::node::{BackgroundThread, BoxFuture, Node};
use crate::protocol::command::{Command, Occupant, Subject};
use crate::protocol::wakeup::{busy, freed, stopped};
use crate::stats::NodeStats;
use crate::time::wait_until::wait_until;
use redis::Value;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

/// Removes the lock of another program. Rarely used, so it is not loaded in advance.
const REMOVE: &str = include_str!("lua/remove.lua");

/// One Redis server, and the tasks that maintain the connections to it.
pub(crate) struct RedisNode {
    label: Box<str>,
    endpoint: Arc<Endpoint>,
    /// The host of a TCP address.
    host: Box<str>,
    connections: Arc<Connections>,
    /// Aborted when the node is dropped: the supervisor, the subscriber and the listener for Sentinels. Their connections end with them.
    tasks: Vec<AbortHandle>,
    /// Runs these tasks as long as the node lives.
    thread: Arc<BackgroundThread>,
}

impl RedisNode {
    /// Starts to connect to `endpoint` on `thread`. `host` drives the connection while it is responsive.
    pub(crate) fn start(
        endpoint: Endpoint,
        environment: Environment,
        thread: Arc<BackgroundThread>,
        host: Option<Handle>,
    ) -> Arc<Self> {
        let connections = Connections::new(endpoint.label(), environment);
        Self::connect(endpoint, connections, None, thread, host)
    }

    /// Like `start`, with the current master of the `sentinels` as the server.
    pub(crate) fn start_watched(
        (endpoint, sentinels): (Endpoint, Sentinels),
        environment: Environment,
        thread: Arc<BackgroundThread>,
        host: Option<Handle>,
    ) -> Arc<Self> {
        let connections = Connections::new(endpoint.label(), environment);
        Self::connect(endpoint, connections, Some(sentinels), thread, host)
    }

    /// Starts to connect to a member of a cluster. `membership` is the label of the cluster's node, and the forwarder for redirected
    /// commands.
    fn start_member(
        endpoint: Endpoint,
        environment: Environment,
        membership: (&str, Arc<dyn Redirect>),
        thread: Arc<BackgroundThread>,
        host: Option<Handle>,
    ) -> Arc<Self> {
        let connections = Connections::of_member(endpoint.label(), environment, membership);
        Self::connect(endpoint, connections, None, thread, host)
    }

    fn connect(
        endpoint: Endpoint,
        connections: Connections,
        sentinels: Option<Sentinels>,
        thread: Arc<BackgroundThread>,
        host: Option<Handle>,
    ) -> Arc<Self> {
        let (connections, endpoint) = (Arc::new(connections), Arc::new(endpoint));
        let supervisor = supervisor::supervise(Arc::clone(&endpoint), Supervised(Arc::clone(&connections)), host);
        let subscriber = subscriber::listen(Arc::clone(&endpoint), Arc::clone(&connections));
        let handle = thread.handle();
        let mut tasks = vec![handle.spawn(supervisor).abort_handle(), handle.spawn(subscriber).abort_handle()];
        if let Some(sentinels) = sentinels {
            let watch = sentinel::watch(sentinels, Arc::clone(&connections));
            tasks.push(handle.spawn(watch).abort_handle());
        } else if !connections.server.is_member() && endpoint.is_name() {
            let watch = names::watch(Arc::clone(&endpoint), Arc::clone(&connections));
            tasks.push(handle.spawn(watch).abort_handle());
        }
        let (label, host) = (endpoint.label().into(), endpoint.host().unwrap_or_default().into());
        Arc::new(Self { label, endpoint, host, connections, tasks, thread })
    }
}

impl Node for RedisNode {
    fn label(&self) -> &str {
        &self.label
    }

    fn send_for(&self, command: Command, recipient: Recipient) {
        match self.connections.live() {
            Ok(live) => live.send(command, recipient),
            Err(error) => recipient.answer(Err(error)),
        }
    }

    fn status(&self) -> Status {
        self.connections.status()
    }

    fn abstains_for(&self) -> Option<Duration> {
        self.connections.live().ok()?.abstains_for()
    }

    fn wait_until_up<'a>(&'a self, key: &'a LockKey) -> BoxFuture<'a, ()> {
        Box::pin(wait_until(&self.connections.environment.changed, || self.status_of(key) == Status::Up))
    }

    fn epoch_of(&self, _key: &LockKey) -> u64 {
        self.connections.epoch()
    }

    fn listen(&self) {
        self.connections.listen();
    }

    fn is_listening_for(&self, _key: &LockKey) -> bool {
        self.connections.is_listening()
    }

    fn occupant_of(&self, key: &LockKey) -> BoxFuture<'static, Occupant> {
        let asked = self.connections.live().map(|live| live.probe(&["PTTL", key.name()]));
        Box::pin(async move {
            match asked {
                Ok(asked) => asked.await.map_or(Occupant::Unknown, |left| occupant(&left)),
                Err(_) => Occupant::Unknown,
            }
        })
    }

    fn holder_of(&self, key: &LockKey) -> BoxFuture<'static, Option<OwnerToken>> {
        let asked = self.connections.live().map(|live| inspect::holder_of(&live, key));
        Box::pin(async move { asked.ok()?.await })
    }

    fn notify_body_running(&self, subject: &Subject) -> bool {
        let Ok(live) = self.connections.live() else { return false };
        let channel = live.channels().of(subject.token.manager());
        // Sent before this returns. A caller that misses the message waits at most a node timeout.
        drop(live.probe(&["PUBLISH", &channel, &busy(subject)]));
        true
    }

    fn stats(&self) -> NodeStats {
        self.connections.server.counters.read(&self.label, self.status() == Status::Up)
    }

    fn notify_stopped(&self, subject: &Subject) {
        if let Ok(live) = self.connections.live() {
            let channel = live.channels().of(subject.token.manager());
            // A caller that misses the message waits only for a limited time.
            drop(live.probe(&["PUBLISH", &channel, &stopped(subject)]));
        }
    }

    fn notify_freed(&self, subject: &Subject) {
        if let Ok(live) = self.connections.live() {
            let channel = live.channels().of(subject.token.manager());
            // A caller that misses the message is notified again, if it matters.
            drop(live.probe(&["PUBLISH", &channel, &freed(subject)]));
        }
    }

    fn remove(&self, key: &LockKey, value: &str) -> BoxFuture<'static, Result<bool, NodeError>> {
        let removed = self.connections.live().map(|live| live.probe(&["EVAL", REMOVE, "1", key.name(), value]));
        Box::pin(async move { Ok(removed?.await? == Value::Int(1)) })
    }

    fn time(&self) -> BoxFuture<'_, Result<Duration, NodeError>> {
        Box::pin(describe::time(&self.connections))
    }

    fn inspect<'a>(
        &'a self,
        keys: &'a [LockKey],
        named: bool,
        patience: Duration,
    ) -> BoxFuture<'a, Vec<NodeInspection>> {
        let inspection = inspect::inspect((&self.label, &self.endpoint), &self.connections, keys, named, patience);
        Box::pin(self.thread.within(inspection))
    }

    fn list<'a>(&'a self, pattern: &'a str, most: usize, within: Duration) -> BoxFuture<'a, Result<Names, NodeError>> {
        Box::pin(self.thread.within(list::list(&self.endpoint, pattern, most, within)))
    }

    fn servers_of_name(&self, patience: Duration) -> BoxFuture<'_, Vec<Box<str>>> {
        Box::pin(self.thread.within(names::servers(&self.endpoint, patience)))
    }

    fn report<'a>(&'a self, key: &'a LockKey, patience: Duration) -> BoxFuture<'a, NodeReport> {
        Box::pin(self.thread.within(describe::describe(&self.label, &self.connections, key, patience)))
    }
}

impl Drop for RedisNode {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl fmt::Debug for RedisNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisNode").field("label", &self.label).field("status", &self.status()).finish_non_exhaustive()
    }
}
