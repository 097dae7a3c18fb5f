//! A Redis Cluster as a node: for each key, the vote of the master that has its slot.
//!
//! Each master has separate connections, like a single server that is a node. The order of commands, wake-ups, releases from `drop`, and
//! the facts about a server therefore work as for a single server. Two things are different. The master depends on the key ([`routes`],
//! from the [`slot_map`] that [`refresh`] requests). And a master may redirect a command ([`redirection`], by the [`router`]). Several
//! masters of one cluster are never several votes.

pub(crate) mod address;
#[cfg(test)]
mod hostile_member_tests;
mod inspect;
mod members;
pub(crate) mod redirection;
mod refresh;
mod report;
mod router;
mod routes;
pub(crate) mod seeds;
mod settled;
pub(crate) mod slot_map;
mod together;
mod view;

use self::members::Members;
use self::router::Router;
use self::seeds::Seeds;
use crate::error::NodeError;
use crate::lock::slot::slot_of;
use crate::lock::{LockKey, OwnerToken};
use crate::node::environment::Environment;
use crate::node::inspection::{Names, NodeInspection};
use crate::node::pending::Recipient;
use crate::node::report::NodeReport;
use crate::node::server_facts::FRESH;
use crate::node::status::Status;
use crate::node::{BackgroundThread, BoxFuture, Node};
use crate::protocol::command::{Command, Occupant, Subject};
use crate::stats::NodeStats;
use crate::time::clock::Instant;
use crate::time::due_time::DueTime;
use crate::time::wait_until::wait_until;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// One cluster, and the task that keeps its map fresh.
pub(crate) struct ClusterNode {
    members: Arc<Members>,
    thread: Arc<BackgroundThread>,
    changed: Arc<Notify>,
    refresh: AbortHandle,
    /// The time of the next check for members whose clock must be read.
    time_due: DueTime,
}

impl ClusterNode {
    /// Starts to find the members on `thread`. `host` drives their connections while it is responsive.
    pub(crate) fn start(
        seeds: Seeds,
        environment: Environment,
        thread: &Arc<BackgroundThread>,
        host: Option<Handle>,
    ) -> Arc<Self> {
        let changed = Arc::clone(&environment.changed);
        let members = Members::new(seeds, environment, Arc::clone(thread), host, Router::of);
        let refresh = thread.handle().spawn(refresh::run_map_refresh(Arc::clone(&members))).abort_handle();
        Arc::new(Self { members, thread: Arc::clone(thread), changed, refresh, time_due: DueTime::default() })
    }

    /// Reads the clocks of all members with an old reading. The time of a cluster is the time of most members, and not only of those that
    /// hold the locks.
    fn keep_time_fresh(&self, now: Instant) {
        if self.time_due.is_now(now, FRESH) {
            let routes = self.members.routes();
            let live = routes.members().filter_map(|(_, member)| member.connections.live().ok());
            live.for_each(|live| live.keep_time_fresh(now));
        }
    }

    fn member_of(&self, key: &LockKey) -> Option<members::Member> {
        self.members.routes().member(slot_of(key.name())).cloned()
    }
}

impl Node for ClusterNode {
    fn label(&self) -> &str {
        self.members.seeds.label()
    }

    fn send_for(&self, command: Command, recipient: Recipient) {
        let slot = slot_of(command.key());
        let routes = self.members.routes();
        let Some((place, (_, member))) = routes.served(slot) else {
            return recipient.answer(Err(self.members.absence(slot).into()));
        };
        if let Some(now) = command.fence.and_then(|ballot| ballot.drawn_at()) {
            self.keep_time_fresh(now);
        }
        match member.connections.live() {
            Ok(live) => live.send_to(command, recipient, place.abstains_until),
            Err(error) => {
                self.members.request_map(None);
                recipient.answer(Err(error));
            }
        }
    }

    fn has_parts(&self) -> bool {
        true
    }

    fn part_of(&self, key: &LockKey) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        self.member_of(key)?.label().hash(&mut hasher);
        Some(hasher.finish())
    }

    fn status(&self) -> Status {
        self.members.status()
    }

    fn status_of(&self, key: &LockKey) -> Status {
        let slot = slot_of(key.name());
        self.members.routes().member(slot).map_or_else(|| self.members.absence(slot), |member| member.status())
    }

    fn abstains_for(&self) -> Option<Duration> {
        let routes = self.members.routes();
        let of_members = routes.members().filter_map(|(_, member)| member.abstains_for()).max();
        of_members.max(self.members.left_until(routes.abstains_until()))
    }

    fn wait_until_up<'a>(&'a self, key: &'a LockKey) -> BoxFuture<'a, ()> {
        Box::pin(wait_until(&self.changed, || self.status_of(key) == Status::Up))
    }

    fn epoch_of(&self, key: &LockKey) -> u64 {
        let (routes, slot) = (self.members.routes(), slot_of(key.name()));
        let of_member = routes.member(slot).map_or(0, |member| member.epoch_of(key));
        // The number of connections of a member fits into the lower half.
        (u64::from(routes.since(slot)) << 32) | (of_member & u64::from(u32::MAX))
    }

    fn listen(&self) {
        self.members.listen();
    }

    fn is_listening_for(&self, key: &LockKey) -> bool {
        self.member_of(key).is_some_and(|member| member.is_listening_for(key))
    }

    fn notify_body_running(&self, subject: &Subject) -> bool {
        self.member_of(&subject.key).is_some_and(|member| member.notify_body_running(subject))
    }

    fn time(&self) -> BoxFuture<'_, Result<Duration, NodeError>> {
        let routes = self.members.routes();
        let member = routes.members().map(|(_, member)| member).find(|member| member.status() == Status::Up).cloned();
        Box::pin(async move {
            match member {
                Some(member) => member.time().await,
                None => Err(self.members.status().into()),
            }
        })
    }

    fn occupant_of(&self, key: &LockKey) -> BoxFuture<'static, Occupant> {
        match self.member_of(key) {
            Some(member) => member.occupant_of(key),
            None => Box::pin(std::future::ready(Occupant::Unknown)),
        }
    }

    fn notify_stopped(&self, subject: &Subject) {
        if let Some(member) = self.member_of(&subject.key) {
            member.notify_stopped(subject);
        }
    }

    fn notify_freed(&self, subject: &Subject) {
        if let Some(member) = self.member_of(&subject.key) {
            member.notify_freed(subject);
        }
    }

    fn remove(&self, key: &LockKey, value: &str) -> BoxFuture<'static, Result<bool, NodeError>> {
        match self.member_of(key) {
            Some(member) => member.remove(key, value),
            None => Box::pin(std::future::ready(Err(self.status_of(key).into()))),
        }
    }

    fn holder_of(&self, key: &LockKey) -> BoxFuture<'static, Option<OwnerToken>> {
        match self.member_of(key) {
            Some(member) => member.holder_of(key),
            None => Box::pin(std::future::ready(None)),
        }
    }

    fn inspect<'a>(
        &'a self,
        keys: &'a [LockKey],
        named: bool,
        patience: Duration,
    ) -> BoxFuture<'a, Vec<NodeInspection>> {
        Box::pin(self.thread.within(inspect::inspect(&self.members, keys, named, patience)))
    }

    fn list<'a>(&'a self, pattern: &'a str, most: usize, within: Duration) -> BoxFuture<'a, Result<Names, NodeError>> {
        Box::pin(self.thread.within(inspect::list(&self.members, pattern, most, within)))
    }

    fn stats(&self) -> NodeStats {
        self.members.stats()
    }

    fn report<'a>(&'a self, key: &'a LockKey, patience: Duration) -> BoxFuture<'a, NodeReport> {
        Box::pin(self.thread.within(report::report(&self.members, key, patience)))
    }
}

impl Drop for ClusterNode {
    fn drop(&mut self) {
        self.refresh.abort();
    }
}

impl fmt::Debug for ClusterNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterNode")
            .field("label", &self.label())
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}
