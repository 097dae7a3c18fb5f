//! The nodes of a lock manager: independent voters with a common set of commands and replies.
//!
//! This folder contains the interface of a node to its callers ([`Node`]), the kinds of nodes, and the facts about their servers. The
//! conclusions from the replies of several nodes are in `protocol` and `client`.

pub(crate) mod abstention;
mod background_thread;
mod clock_offsets;
#[cfg(test)]
mod conformance_of_restarts;
#[cfg(any(test, fuzzing))]
pub(crate) mod differential;
mod environment;
mod far_numbers;
pub(crate) mod forbidden_queue;
pub(crate) mod inspection;
pub(crate) mod memory;
pub(crate) mod owed_numbers;
mod pending;
pub(crate) mod redis;
pub(crate) mod report;
mod round_trips;
mod server_clock;
pub(crate) mod server_facts;
pub(crate) mod server_identity;
mod server_register;
pub(crate) mod shared_settings;
mod status;

pub(crate) use self::background_thread::BackgroundThread;
pub(crate) use self::environment::{Connected, Environment, Replicas};
use self::inspection::{Names, NodeInspection};
pub(crate) use self::pending::{Pending, Recipient};
use self::report::NodeReport;
pub(crate) use self::server_register::{LeaseCut, ServerRegister};
pub(crate) use self::status::Status;
use crate::error::NodeError;
use crate::lock::{LockKey, OwnerToken};
use crate::protocol::command::{Command, Occupant, Subject};
use crate::stats::{NodeCounters, NodeStats};
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

/// A boxed future: the methods of a trait object return it in place of being `async`.
pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One independent voter: a Redis server, or any other system that executes each [`Command`] in one atomic step.
///
/// A node may have several parts with different keys on each. In a cluster, the vote about a key is that of the shard with this key.
/// Methods whose result can differ between parts have a parameter for the key, and end in `_of` or `_for`.
pub(crate) trait Node: fmt::Debug + Send + Sync {
    /// Returns the address, without user and password. It is unique among the nodes of a manager.
    fn label(&self) -> &str;

    /// Queues `command` on the connection before it returns. The answer comes later, if at all.
    ///
    /// A node with immediate answers can override this method to save the cost of waiting.
    fn send(&self, command: Command) -> Pending {
        let (recipient, pending) = Recipient::task();
        self.send_for(command, recipient);
        pending
    }

    /// Like [`send`](Self::send), with the answer to `recipient`.
    fn send_for(&self, command: Command, recipient: Recipient);

    /// Returns `true` if the node has parts that answer separately.
    fn has_parts(&self) -> bool {
        false
    }

    /// Returns a number for the part that has `key`; `None` if the node has no parts, or no part has the key.
    fn part_of(&self, _key: &LockKey) -> Option<u64> {
        None
    }

    /// Returns the status of the node for any key.
    fn status(&self) -> Status;

    /// Returns the status of the node for `key`.
    fn status_of(&self, _key: &LockKey) -> Status {
        self.status()
    }

    /// Returns the remaining time for which the answers of the node prove nothing, because it may have forgotten locks.
    fn abstains_for(&self) -> Option<Duration> {
        None
    }

    /// Waits until the node is up for `key`.
    fn wait_until_up<'a>(&'a self, key: &'a LockKey) -> BoxFuture<'a, ()>;

    /// Returns the number of the connection for commands about `key` and their wake-ups. It grows with every new connection, even with one
    /// that only delivers wake-ups.
    ///
    /// Wake-ups between two connections are lost. A waiter must therefore ask again when the number has changed.
    fn epoch_of(&self, key: &LockKey) -> u64;

    /// Opens the channel for wake-ups on the present connection and on all later ones. Every later command is executed when the channel is
    /// open.
    fn listen(&self);

    /// Delivers the stored wake-ups, for a node that does not deliver each one itself. Call this method without holding a mutex.
    fn deliver(&self) {}

    /// Returns `true` if wake-ups about `key` arrive.
    fn is_listening_for(&self, key: &LockKey) -> bool;

    /// Notifies the manager of the token in `subject`, if it listens here, that a body runs under the lock for which the token waits.
    /// Returns `false` if the message could not be sent; its arrival is not confirmed.
    fn notify_body_running(&self, _subject: &Subject) -> bool {
        true
    }

    /// Notifies the manager of the token in `subject`, which has broken a lock here, that the previous holder has stopped. The message is
    /// sent before this returns.
    fn notify_stopped(&self, _subject: &Subject) {}

    /// Notifies the manager of the token in `subject`, which has a permit here, of a waiter for a permit. The arrival of the message is not
    /// confirmed.
    fn notify_freed(&self, _subject: &Subject) {}

    /// Removes the lock of another program from `key`, if its value is exactly `value`. Returns `true` if it was.
    fn remove(&self, _key: &LockKey, _value: &str) -> BoxFuture<'static, Result<bool, NodeError>> {
        Box::pin(std::future::ready(Ok(false)))
    }

    /// Returns the time of the node, since 1970.
    fn time(&self) -> BoxFuture<'_, Result<Duration, NodeError>>;

    /// Returns the occupant of `key`: data, or a lock with its remaining lease. The query is sent before this returns.
    fn occupant_of(&self, _key: &LockKey) -> BoxFuture<'static, Occupant> {
        Box::pin(std::future::ready(Occupant::Unknown))
    }

    /// Returns the token that holds the lock of `key`, if the node reports one. The query is sent before this returns.
    fn holder_of(&self, _key: &LockKey) -> BoxFuture<'static, Option<OwnerToken>> {
        Box::pin(std::future::ready(None))
    }

    /// Returns `true` if the node notifies the new holder of a hand-off.
    fn hands_over(&self) -> bool {
        true
    }

    /// Returns the counters of commands and answers.
    fn stats(&self) -> NodeStats {
        NodeCounters::default().read(self.label(), self.status() == Status::Up)
    }

    /// Returns the state of each of `keys`, in their order. If the owners are to be `named`, it includes the processes of the tokens. Each
    /// step may take up to `patience`.
    fn inspect<'a>(
        &'a self,
        keys: &'a [LockKey],
        _named: bool,
        _patience: Duration,
    ) -> BoxFuture<'a, Vec<NodeInspection>> {
        let silent = keys.iter().map(|_| NodeInspection::silent(self.label(), NodeError::NoReply)).collect();
        Box::pin(std::future::ready(silent))
    }

    /// Returns at most `most` names of the locks that match `pattern`, as far as they are found `within` this time. A node without other
    /// clients does not search.
    fn list<'a>(
        &'a self,
        _pattern: &'a str,
        _most: usize,
        _within: Duration,
    ) -> BoxFuture<'a, Result<Names, NodeError>> {
        Box::pin(std::future::ready(Err(NodeError::Unsupported(
            "the locks of a manager in memory are not listed".into(),
        ))))
    }

    /// Returns the addresses of the servers behind the name of the node, one for each server. Empty if the name leads to one server, or the
    /// address is not a name. Each answer may take up to `patience`.
    fn servers_of_name(&self, _patience: Duration) -> BoxFuture<'_, Vec<Box<str>>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Returns a report on the node, as far as it is available within about `patience`. The `key` is that of a lock without holder and
    /// waiters; it is not taken.
    fn report<'a>(&'a self, key: &'a LockKey, patience: Duration) -> BoxFuture<'a, NodeReport>;
}
