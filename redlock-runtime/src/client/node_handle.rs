//! Node as its manager uses it: the ledger of outstanding answers limits the commands.

use crate::client::number_delivery::NumberDelivery;
use crate::client::release::{Collector, PendingRelease, ReleaseLedger};
use crate::lock::{LockKey, OwnerToken};
use crate::node::{Node, Pending, Recipient, ServerRegister, Status};
use crate::protocol::command::{Command, Subject, Verb};
use crate::protocol::last_command::LastCommand;
use crate::time::clock::{Clock, Instant};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// Node with its unanswered releases.
pub(crate) struct NodeHandle {
    node: Arc<dyn Node>,
    ledger: Arc<ReleaseLedger>,
    /// Ledgers of the parts of a cluster: outstanding answers of one part do not concern the others.
    parts: RwLock<HashMap<u64, Arc<ReleaseLedger>>>,
    queue: Option<mpsc::UnboundedSender<PendingRelease>>,
    /// Runtime for the tasks of a node that answers later.
    runtime: Option<Handle>,
    /// Delivery of fencing numbers, which begins with the first number.
    delivery: OnceLock<NumberDelivery>,
}

impl NodeHandle {
    /// Creates the handle of a node that answers later. `runtime` runs the task that completes unsettled releases.
    pub(crate) fn in_background(node: Arc<dyn Node>, clock: Clock, runtime: &Handle) -> Self {
        let ledger = Self::new_ledger(&*node, clock);
        let (queue, unsettled) = mpsc::unbounded_channel();
        runtime.spawn(Collector::new(Arc::clone(&node), clock, Arc::clone(&ledger), unsettled).run());
        let runtime = Some(runtime.clone());
        Self { node, ledger, parts: RwLock::default(), queue: Some(queue), runtime, delivery: OnceLock::new() }
    }

    /// Switches deliveries of fencing numbers off: numbers travel only with votes.
    #[cfg(test)]
    pub(crate) fn without_deliveries(self) -> Self {
        Self { runtime: None, ..self }
    }

    /// Creates the handle of a node that answers at once.
    pub(crate) fn at_once(node: Arc<dyn Node>, clock: Clock) -> Self {
        let ledger = Self::new_ledger(&*node, clock);
        Self { node, ledger, parts: RwLock::default(), queue: None, runtime: None, delivery: OnceLock::new() }
    }

    fn new_ledger(node: &dyn Node, clock: Clock) -> Arc<ReleaseLedger> {
        let ledger = if node.has_parts() { ReleaseLedger::of_parts } else { ReleaseLedger::new };
        Arc::new(ledger(node.label(), clock))
    }

    /// Returns the ledger of the whole node.
    pub(crate) const fn ledger(&self) -> &Arc<ReleaseLedger> {
        &self.ledger
    }

    /// Returns the ledger of the node, and the ledgers of all its parts.
    pub(crate) fn ledgers(&self) -> Vec<Arc<ReleaseLedger>> {
        let parts = self.parts.read().unwrap_or_else(PoisonError::into_inner);
        [&self.ledger].into_iter().chain(parts.values()).map(Arc::clone).collect()
    }

    /// Returns the ledger of the part that serves `key`.
    fn ledger_of(&self, key: &LockKey) -> Arc<ReleaseLedger> {
        let Some(part) = self.node.part_of(key) else { return Arc::clone(&self.ledger) };
        let known = self.parts.read().unwrap_or_else(PoisonError::into_inner).get(&part).map(Arc::clone);
        known.unwrap_or_else(|| {
            let mut parts = self.parts.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(parts.entry(part).or_insert_with(|| Arc::new(self.ledger.of_part())))
        })
    }

    pub(crate) fn node(&self) -> &dyn Node {
        &*self.node
    }

    pub(crate) fn status(&self) -> Status {
        self.node.status()
    }

    pub(crate) fn label(&self) -> &str {
        self.node.label()
    }

    /// Returns the number of the connection that serves `key`.
    pub(crate) fn epoch(&self, key: &LockKey) -> u64 {
        self.node.epoch_of(key)
    }

    /// Returns `true` if a token may join the queue of `key`: its wake-ups will arrive, or it has no connection at all.
    pub(crate) fn is_ready_to_queue(&self, key: &LockKey) -> bool {
        self.node.is_listening_for(key) || self.node.status_of(key) != Status::Up
    }

    pub(crate) fn listen(&self) {
        self.node.listen();
    }

    /// Sends `command` at `now`, unless the node owes too many answers.
    pub(crate) fn ask(&self, command: Command, now: Instant) -> Pending {
        let key = command.subject.route();
        let ledger = self.ledger_of(key);
        if let Some(refusal) = ledger.refusal(now)
            // A node without a connection knows a better reason.
            && self.node.status_of(key) == Status::Up
        {
            return Pending::answered(Err(refusal));
        }
        // A node without a queue answers at once.
        let is_watched = matches!(command.verb, Verb::Renew { .. }) && self.queue.is_some();
        let Some(watch) = is_watched.then(|| ledger.watch_renewal()).flatten() else { return self.node.send(command) };
        let (recipient, pending) = Recipient::watched(watch);
        self.node.send_for(command, recipient);
        pending
    }

    /// Sends the last command about a token, even if the node owes many answers. The caller can wait for the answer.
    pub(crate) fn release(&self, subject: Arc<Subject>, last: LastCommand) -> PendingRelease {
        let ledger = self.ledger_of(subject.route());
        PendingRelease::send(&*self.node, &ledger, subject, last)
    }

    /// Sends the last command about a token, even if the node owes many answers. It is settled in the background.
    pub(crate) fn release_in_background(&self, subject: Arc<Subject>, last: LastCommand) {
        let ledger = self.ledger_of(subject.route());
        if last.is_stray && !ledger.has_room_for_stray() {
            return;
        }
        PendingRelease::send_in_background(&*self.node, &ledger, subject, last, self.queue.clone());
    }

    /// Begins to deliver owed fencing numbers to the node, if it answers later. Only the first call has an effect.
    pub(crate) fn deliver_numbers(&self, servers: &Arc<ServerRegister>, token: impl FnOnce() -> OwnerToken) {
        if let Some(runtime) = &self.runtime {
            self.delivery.get_or_init(|| NumberDelivery::start(Arc::clone(&self.node), servers, token(), runtime));
        }
    }

    /// Completes `release` in the background.
    pub(crate) fn follow_up(&self, release: PendingRelease) {
        release.follow_up(self.queue.as_ref());
    }
}

impl fmt::Debug for NodeHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeHandle").field("node", &self.node).field("ledger", &self.ledger).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::hooked_node::{Fate, HookedNode};
    use crate::error::NodeError;
    use crate::lock::owner_token::ManagerId;
    use crate::time::token_clock::TokenTime;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;
    use tokio::time::advance;

    const TTL: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn node_with_an_unanswered_renewal_is_sent_no_more_renewals() {
        let (clock, asked) = (Clock::tokio(), Arc::new(AtomicUsize::new(0)));
        let seen = Arc::clone(&asked);
        let node = HookedNode::new(clock, move |_| {
            seen.fetch_add(1, Ordering::Relaxed);
            Fate::Unanswered
        });
        let handle = NodeHandle::in_background(node, clock, &Handle::current());
        let token = OwnerToken::new(ManagerId::numbered(7), TokenTime::new(1, 0));
        let subject = Arc::new(Subject::new("order:7".into(), token));
        let renew = || {
            let command = Command { verb: Verb::Renew { ttl: TTL }, fence: None, subject: Arc::clone(&subject) };
            handle.ask(command, clock.now())
        };
        let mut waiting = Vec::new();
        for _ in 0..30 {
            waiting.push(renew());
            advance(Duration::from_millis(100)).await;
        }
        let asked = asked.load(Ordering::Relaxed);
        assert!((10..=13).contains(&asked), "for a second, and once more for certain: {asked} of {}", waiting.len());
        assert!(matches!(renew().await, Err(NodeError::Stalled(_))));
    }
}
