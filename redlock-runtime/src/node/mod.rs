//! What a lock manager asks: independent voters, each with one command set and one reply set.
//!
//! Here belongs what a node is to its callers ([`Node`]), the kinds of nodes, and what a manager finds out about the
//! servers behind them. What follows from the answers of several nodes does not belong here: that is `protocol` and
//! `client`.

pub(crate) mod abstention;
mod background_thread;
mod clock_offsets;
#[cfg(any(test, fuzzing))]
pub(crate) mod differential;
mod environment;
mod far_numbers;
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

/// A future whose type is not known: what a method of a trait object returns in place of being `async`.
pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One independent voter: a Redis server, or whatever else executes each [`Command`] in one atomic step.
///
/// A node may have several parts with different keys on each, as a cluster has, whose vote about a key is that of the
/// shard on which the key lies. So what can differ from part to part is asked with the key: those methods end in `_of`
/// or `_for`.
pub(crate) trait Node: fmt::Debug + Send + Sync {
    /// The address, without user and password. No two nodes of a manager have the same.
    fn label(&self) -> &str;

    /// Puts `command` into the order of the connection before it returns. The answer comes later, if at all.
    ///
    /// A node whose answers are there at once can save here what it takes to wait for one.
    fn send(&self, command: Command) -> Pending {
        let (recipient, pending) = Recipient::task();
        self.send_for(command, recipient);
        pending
    }

    /// Does the same as [`send`](Self::send), for an answer that `recipient` gets.
    fn send_for(&self, command: Command, recipient: Recipient);

    /// Whether it has parts that answer for themselves.
    fn has_parts(&self) -> bool {
        false
    }

    /// Which of its parts has `key`, as a number; `None` when it has none, or nobody has the key.
    fn part_of(&self, _key: &LockKey) -> Option<u64> {
        None
    }

    /// Whether the node can be asked, for any key.
    fn status(&self) -> Status;

    /// Whether the node can be asked about `key`.
    fn status_of(&self, _key: &LockKey) -> Status {
        self.status()
    }

    /// For how much longer the answers of the node prove nothing, if so: it may have forgotten locks.
    fn abstains_for(&self) -> Option<Duration> {
        None
    }

    /// Waits until the node can be asked about `key`.
    fn up_for<'a>(&'a self, key: &'a LockKey) -> BoxFuture<'a, ()>;

    /// The number of the connection that commands about `key` and their wake-ups use. It grows with every new one, also
    /// with one that carries only wake-ups.
    ///
    /// Wake-ups of the time between two connections are lost. So whoever waits for one must ask again when the number
    /// has changed.
    fn epoch_of(&self, key: &LockKey) -> u64;

    /// Opens the channel for wake-ups on the present connection and on all that follow. Whatever is sent after this is
    /// executed when the channel is open.
    fn listen(&self);

    /// Delivers the wake-ups that it keeps, if it does not deliver each by itself. To be called under no mutex.
    fn deliver(&self) {}

    /// Whether wake-ups about `key` arrive.
    fn is_listening_for(&self, key: &LockKey) -> bool;

    /// Tells the manager of the token in `subject`, if it listens here, that a body runs under the lock which that token
    /// waits for. `false` when that could not be sent; whether it arrives is not known.
    fn tell_busy(&self, _subject: &Subject) -> bool {
        true
    }

    /// Tells the manager of the token in `subject`, which has broken a lock here, that the holder before it has stopped. It is
    /// on its way when this returns.
    fn tell_stopped(&self, _subject: &Subject) {}

    /// Tells the manager of the token in `subject`, which has a permit here, that somebody waits for one. Whether it arrives is not known.
    fn tell_freed(&self, _subject: &Subject) {}

    /// Removes the lock of another program from `key`, if it is exactly `value`. Whether it was.
    fn remove(&self, _key: &LockKey, _value: &str) -> BoxFuture<'static, Result<bool, NodeError>> {
        Box::pin(std::future::ready(Ok(false)))
    }

    /// What time it is at the node, since 1970.
    fn time(&self) -> BoxFuture<'_, Result<Duration, NodeError>>;

    /// What stands under `key`: data, or a lock and how much is left of its lease. The question is on its way when this
    /// returns.
    fn occupant_of(&self, _key: &LockKey) -> BoxFuture<'static, Occupant> {
        Box::pin(std::future::ready(Occupant::Unknown))
    }

    /// The token that has the lock of `key`, if one has and the node says so. The question is on its way when this returns.
    fn holder_of(&self, _key: &LockKey) -> BoxFuture<'static, Option<OwnerToken>> {
        Box::pin(std::future::ready(None))
    }

    /// Whether the node wakes whoever it hands a lock to.
    fn hands_over(&self) -> bool {
        true
    }

    /// What it was asked, and how it has answered.
    fn stats(&self) -> NodeStats {
        NodeCounters::default().read(self.label(), self.status() == Status::Up)
    }

    /// What the node says of each of `keys`, in their order; with the processes that the tokens belong to, if those are to be
    /// `named`. Each step of it is waited for in `patience`.
    fn inspect<'a>(
        &'a self,
        keys: &'a [LockKey],
        _named: bool,
        _patience: Duration,
    ) -> BoxFuture<'a, Vec<NodeInspection>> {
        let silent = keys.iter().map(|_| NodeInspection::silent(self.label(), NodeError::NoReply)).collect();
        Box::pin(std::future::ready(silent))
    }

    /// The names of the locks there that match `pattern`, at most so many, as far as they are found `within` that time. They are
    /// not looked for where nobody else is.
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

    /// Returns the addresses of the servers behind the name of the node, one for each server. Empty if the name leads to one server, or is
    /// none. Each answer is waited for in `patience`.
    fn servers_of_name(&self, _patience: Duration) -> BoxFuture<'_, Vec<Box<str>>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// What the node is like, as far as that can be found out within about `patience`. The `key` is that of a lock which
    /// nobody has and nobody wants; it is not taken.
    fn report<'a>(&'a self, key: &'a LockKey, patience: Duration) -> BoxFuture<'a, NodeReport>;
}
