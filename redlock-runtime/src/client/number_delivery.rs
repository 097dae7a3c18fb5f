//! Delivery of agreed fencing numbers to a node that has not accepted them. `node/owed_numbers` decides which ones are
//! sent, and when.

use crate::error::NodeError;
use crate::lock::OwnerToken;
use crate::lock::beside::number_for_slot;
use crate::node::owed_numbers::{Batch, Next, PATIENCE};
use crate::node::{Node, Pending, ServerRegister, Status};
use crate::protocol::command::{Answer, Command, Subject, Verb};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

/// Longest wait for a connection or an answer before the task looks at the list again. Too short: needless wake-ups. Too long: the task
/// outlives its manager for that long, and one part of a cluster that is away holds up the others.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// The delivery of agreed numbers to one node. Ends with this value.
pub(crate) struct NumberDelivery {
    node: Box<str>,
    servers: Arc<ServerRegister>,
}

impl NumberDelivery {
    /// Starts the delivery to `node` on `runtime`. Its commands carry `token`, which owns nothing.
    pub(crate) fn start(
        node: Arc<dyn Node>,
        servers: &Arc<ServerRegister>,
        token: OwnerToken,
        runtime: &Handle,
    ) -> Self {
        let (label, changed) = (node.label().into(), servers.owed_numbers.open(node.label()));
        runtime.spawn(Task { node, servers: Arc::clone(servers), token, changed }.run());
        Self { node: label, servers: Arc::clone(servers) }
    }
}

impl Drop for NumberDelivery {
    fn drop(&mut self) {
        self.servers.owed_numbers.close(&self.node);
    }
}

impl fmt::Debug for NumberDelivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NumberDelivery").field("node", &self.node).finish_non_exhaustive()
    }
}

struct Task {
    node: Arc<dyn Node>,
    servers: Arc<ServerRegister>,
    token: OwnerToken,
    changed: Arc<Notify>,
}

impl Task {
    async fn run(self) {
        loop {
            let now = self.servers.clock.now();
            match self.servers.owed_numbers.next(self.node.label(), &self.servers.ballots, now) {
                Next::Wait(None) => self.changed.notified().await,
                // At the earlier of the two, it examines the list again.
                Next::Wait(Some(at)) => drop(timeout(at.since(now), self.changed.notified()).await),
                Next::Send(batch) => self.deliver(batch).await,
                Next::End(batch) => {
                    if self.node.status() == Status::Up {
                        self.send(&batch).await;
                    }
                    return;
                }
            }
        }
    }

    /// Sends the batch when the node can be asked. Unanswered numbers stay owed.
    async fn deliver(&self, batch: Batch) {
        if let Some((slot, _)) = batch.numbers.first() {
            // A part of a cluster may be away for long.
            drop(timeout(LONGEST_WAIT, self.node.wait_until_up(&self.subject(*slot).key)).await);
        }
        let failed = self.send(&batch).await;
        if failed.is_empty() {
            return self.servers.owed_numbers.answered(self.node.label(), &batch);
        }
        let now = self.servers.clock.now();
        for (slot, number) in batch.numbers {
            if failed.contains(&slot) {
                self.servers.owed_numbers.postpone(self.node.label(), slot, now);
            } else {
                self.servers.owed_numbers.settle(self.node.label(), slot, number);
            }
        }
        sleep(PATIENCE).await;
    }

    /// Sends the numbers together. Returns the slots for which they have to be sent again.
    async fn send(&self, batch: &Batch) -> Vec<u16> {
        let begin = |(slot, number): &(u16, u64)| {
            let command =
                Command { verb: Verb::Raise { number: *number }, fence: None, subject: Arc::new(self.subject(*slot)) };
            (*slot, self.node.send(command))
        };
        let sent: Vec<_> = batch.numbers.iter().map(begin).collect();
        let mut failed = Vec::new();
        for (slot, answer) in sent {
            let Some(answer) = self.answered(answer).await else {
                return batch.numbers.iter().map(|(slot, _)| *slot).collect();
            };
            if !is_final(&answer) {
                failed.push(slot);
            }
        }
        failed
    }

    /// Waits for the answer of a node that may be silent. Returns `None` if the manager is gone and there is no answer.
    async fn answered(&self, mut answer: Pending) -> Option<Answer> {
        loop {
            if let Ok(answer) = timeout(LONGEST_WAIT, &mut answer).await {
                return Some(answer);
            }
            if self.servers.owed_numbers.is_closed(self.node.label()) {
                return None;
            }
        }
    }

    /// Returns a name that has this slot.
    fn subject(&self, slot: u16) -> Subject {
        Subject::new(number_for_slot(slot).to_string().into(), self.token)
    }
}

/// Returns `true` if the number need not be sent again: the register is not lower, or the user may not use it.
fn is_final(answer: &Answer) -> bool {
    match answer {
        Ok(_) => true,
        Err(NodeError::Refused(_)) => answer.as_ref().is_err_and(|error| !error.is_transient()),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::hooked_node::{Fate, HookedNode};
    use crate::lock::owner_token::ManagerId;
    use crate::lock::slot::slot_of;
    use crate::node::Environment;
    use crate::protocol::command::Number;
    use crate::time::clock::Clock;
    use crate::time::token_clock::TokenTime;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};
    use tokio::time::advance;

    /// Node, the numbers that it was sent, and its delivery.
    struct Scene {
        servers: Arc<ServerRegister>,
        node: Arc<HookedNode>,
        is_cut: Arc<AtomicBool>,
        sent: Arc<Mutex<Vec<(u16, u64)>>>,
        delivery: NumberDelivery,
    }

    impl Scene {
        fn new() -> Self {
            let clock = Clock::tokio();
            let (sent, is_cut): (Arc<Mutex<Vec<_>>>, Arc<AtomicBool>) = Default::default();
            let (seen, cut) = (Arc::clone(&sent), Arc::clone(&is_cut));
            let node = HookedNode::new(clock, move |command| {
                let Verb::Raise { number } = command.verb else { panic!("{command:?}") };
                seen.lock().unwrap().push((slot_of(command.key()), number));
                if cut.load(Ordering::Relaxed) { Fate::CutOff } else { Fate::Answered }
            });
            let manager = ManagerId::numbered(7);
            let servers = Environment::for_single_node(manager, clock).servers;
            let token = OwnerToken::new(manager, TokenTime::new(1, 0));
            let delivery = NumberDelivery::start(Arc::clone(&node) as _, &servers, token, &Handle::current());
            Self { servers, node, is_cut, sent, delivery }
        }

        fn owe(&self, slot: u16, number: u64) {
            self.servers.owed_numbers.owe([self.node.label()].into_iter(), &[slot], number, self.servers.clock.now());
        }

        /// Returns the numbers that were sent in the meantime.
        async fn sent_within(&self, time: Duration) -> Vec<(u16, u64)> {
            for _ in 0..time.as_millis() / 100 {
                advance(Duration::from_millis(100)).await;
                // Lets the task run.
                for _ in 0..10 {
                    tokio::task::yield_now().await;
                }
            }
            std::mem::take(&mut *self.sent.lock().unwrap())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn number_accepted_in_time_is_not_sent_again() {
        let scene = Scene::new();
        for number in 1..20 {
            scene.owe(3, number);
            let sent = scene.sent_within(PATIENCE / 5).await;
            scene.servers.owed_numbers.on_reply(scene.node.label(), &[3], Number::Accepted(number));
            assert_eq!(sent, [], "{number}");
        }
        assert_eq!(scene.sent_within(PATIENCE * 3).await, []);
    }

    #[tokio::test(start_paused = true)]
    async fn owed_number_is_sent_until_the_node_answers() {
        let scene = Scene::new();
        scene.owe(3, 7);
        assert_eq!(scene.sent_within(PATIENCE * 4 / 5).await, []);
        scene.is_cut.store(true, Ordering::Relaxed);
        let sent = scene.sent_within(PATIENCE * 10).await;
        assert!((5..=10).contains(&sent.len()) && sent.iter().all(|sent| *sent == (3, 7)), "{sent:?}");
        scene.is_cut.store(false, Ordering::Relaxed);
        assert_eq!(scene.sent_within(PATIENCE * 10).await, [(3, 7)]);
    }

    #[tokio::test(start_paused = true)]
    async fn node_with_changed_data_is_sent_all_numbers_at_once() {
        let scene = Scene::new();
        let known = [(3, 7), (9, 5), (16_383, 6)];
        for (slot, number) in known {
            scene.servers.ballots.reached(slot, number);
        }
        scene.servers.on_possible_data_change(scene.node.label());
        assert_eq!(scene.sent_within(Duration::from_millis(100)).await, known);
        assert_eq!(scene.sent_within(PATIENCE * 3).await, []);
    }

    #[tokio::test(start_paused = true)]
    async fn dropped_manager_sends_the_owed_numbers() {
        let Scene { servers, node, sent, delivery, .. } = Scene::new();
        tokio::task::yield_now().await;
        servers.owed_numbers.owe([node.label()].into_iter(), &[3], 7, servers.clock.now());
        drop(delivery);
        while Arc::strong_count(&node) > 1 {
            tokio::task::yield_now().await;
        }
        assert_eq!(*sent.lock().unwrap(), [(3, 7)]);
    }
}
