//! Agreed fencing numbers that nodes of one manager have yet to learn.
//!
//! A number is agreed when a quorum has accepted it. If only that quorum knew it, the loss of one server's data could leave the next quorum
//! without any node that knows it, and the next number could be smaller. Therefore:
//!
//! 1. A node that has not accepted an agreed number *owes* it, until it replies that its register is not lower. Most replies are in flight
//!    when the number is agreed: the reply to the proposal settles the debt.
//! 2. A node that may have other data than before is *taught* every number that this process knows: from the beginning of the slots, in
//!    batches.
//! 3. Learning is not accepting. A learnt number raises the register, and is never part of a quorum.
//! 4. A node counts while it is taught. To wait for the end of the lesson would protect nothing. A process draws each ballot above all
//!    numbers that it knows, so the node accepts no smaller number from this process, taught or not. A process that does not know a number
//!    would have to wait for one that does, and cannot know if there is any. What gives the others time is the abstention of a restarted
//!    node: no process counts it for a `max_ttl`, and each teaches it at once. A `FLUSHALL` on a running server, or restarts that are
//!    trusted, give no such time. Then a process that does not know the number can be first.
//!
//! `client/number_delivery` sends the listed numbers. Only nodes with a delivery are listed.

use crate::protocol::command::Number;
use crate::time::ballot_clock::{BallotClock, SLOTS};
use crate::time::clock::Instant;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Time limit for the reply to a proposal, after which the number is sent once more. Too short: numbers are sent twice over long distances.
/// Too long: a loss of data within that time makes a number unknown.
pub(crate) const PATIENCE: Duration = Duration::from_millis(500);

/// Maximum number of registers that are raised together. Too small: many slots take many round trips. Too large: commands of locks
/// wait behind them.
const BATCH: usize = 128;

/// The numbers that each node of a manager has yet to learn.
#[derive(Debug, Default)]
pub(crate) struct OwedNumbers {
    /// Number of debts of all nodes.
    debts: AtomicUsize,
    nodes: Mutex<Vec<Debtor>>,
}

/// The numbers that one node has yet to learn.
#[derive(Debug)]
struct Debtor {
    node: Box<str>,
    /// By slots.
    debts: BTreeMap<u16, Debt>,
    /// The first slot that is not taught yet, if the node is being taught.
    lesson: Option<u16>,
    /// Number of losses of data so far.
    losses: u64,
    /// Wakes the delivery.
    changed: Arc<Notify>,
    /// `true` if the delivery waits for the first debt.
    is_idle: bool,
    is_closed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Debt {
    number: u64,
    /// Time since when the node has owed a number of the slot, or of the last failed attempt.
    since: Instant,
}

/// Next action of the delivery of a node.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Sends these numbers.
    Send(Batch),
    /// Waits until this time or until it is woken.
    Wait(Option<Instant>),
    /// Sends these numbers and ends: the manager is gone.
    End(Batch),
}

/// Numbers by slots that are sent together.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) numbers: Vec<(u16, u64)>,
    /// The position, if the batch is a part of the numbers that the node is taught.
    lesson: Option<Lesson>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lesson {
    losses: u64,
    /// First slot of the next lesson.
    next: Option<u16>,
}

impl OwedNumbers {
    /// Lists `node`, whose delivery begins. Returns the notifier for the delivery.
    pub(crate) fn open(&self, node: &str) -> Arc<Notify> {
        let changed = Arc::new(Notify::new());
        let debtor = Debtor {
            node: node.into(),
            debts: BTreeMap::new(),
            lesson: None,
            losses: 0,
            changed: Arc::clone(&changed),
            is_idle: false,
            is_closed: false,
        };
        self.nodes().push(debtor);
        changed
    }

    /// Ends the delivery of `node`: the manager is gone.
    pub(crate) fn close(&self, node: &str) {
        self.with(node, |debtor| {
            debtor.is_closed = true;
            debtor.changed.notify_one();
        });
    }

    /// Returns `true` if the manager of `node` is gone.
    pub(crate) fn is_closed(&self, node: &str) -> bool {
        self.with(node, |debtor| debtor.is_closed).unwrap_or(true)
    }

    /// Records that a quorum has agreed on `number` for these slots, and that `nodes` have not accepted it yet.
    pub(crate) fn owe<'n>(&self, nodes: impl Iterator<Item = &'n str>, slots: &[u16], number: u64, now: Instant) {
        let mut debtors = self.nodes();
        for node in nodes {
            let Some(debtor) = debtors.iter_mut().find(|debtor| *debtor.node == *node) else { continue };
            let before = debtor.debts.len();
            for slot in slots {
                let debt = debtor.debts.entry(*slot).or_insert(Debt { number, since: now });
                debt.number = debt.number.max(number);
            }
            self.debts.fetch_add(debtor.debts.len() - before, Ordering::Relaxed);
            if std::mem::take(&mut debtor.is_idle) {
                debtor.changed.notify_one();
            }
        }
    }

    /// Returns `true` if any node owes a number. Every reply to a proposal checks this.
    pub(crate) fn are_any(&self) -> bool {
        self.debts.load(Ordering::Relaxed) > 0
    }

    /// Records the reply of `node` to a proposal for these slots.
    pub(crate) fn on_reply(&self, node: &str, slots: &[u16], reply: Number) {
        match (reply, slots) {
            (Number::Accepted(number), slots) => slots.iter().for_each(|slot| self.settle(node, *slot, number)),
            (Number::Refused { largest }, [slot]) => self.settle(node, *slot, largest),
            // The reply does not tell which of the registers has this number.
            (Number::Refused { .. }, _) => {}
        }
    }

    /// Records that the register of `slot` at `node` is not lower than `number`, or cannot be used.
    pub(crate) fn settle(&self, node: &str, slot: u16, number: u64) {
        self.with(node, |debtor| {
            if debtor.debts.get(&slot).is_some_and(|debt| debt.number <= number) {
                debtor.debts.remove(&slot);
                self.debts.fetch_sub(1, Ordering::Relaxed);
            }
        });
    }

    /// Records that `node` may have other data than before.
    pub(crate) fn record_data_change(&self, node: &str) {
        self.with(node, |debtor| {
            debtor.lesson = Some(0);
            debtor.losses += 1;
            debtor.is_idle = false;
            debtor.changed.notify_one();
        });
    }

    /// Returns the next action of the delivery of `node` at `now`. `known` has every number that this process knows.
    pub(crate) fn next(&self, node: &str, known: &BallotClock, now: Instant) -> Next {
        loop {
            let begun = self.with(node, |debtor| Some((debtor.lesson.filter(|_| !debtor.is_closed)?, debtor.losses)));
            let Some((from, losses)) = begun.flatten() else { break };
            let numbers = known.known_from(from, BATCH);
            let last = numbers.last().map(|(slot, _)| slot + 1);
            let lesson = Lesson { losses, next: last.filter(|next| *next < SLOTS && numbers.len() == BATCH) };
            if !numbers.is_empty() {
                return Next::Send(Batch { numbers, lesson: Some(lesson) });
            }
            self.taught(node, Lesson { losses, next: None });
        }
        self.with(node, |debtor| debtor.next_debts(now)).unwrap_or(Next::End(Batch::default()))
    }

    /// Records that `node` has answered everything in the batch.
    pub(crate) fn answered(&self, node: &str, batch: &Batch) {
        batch.numbers.iter().for_each(|(slot, number)| self.settle(node, *slot, *number));
        if let Some(lesson) = batch.lesson {
            self.taught(node, lesson);
        }
    }

    /// Records that `node` has not answered for `slot`: the number is sent again later.
    pub(crate) fn postpone(&self, node: &str, slot: u16, now: Instant) {
        self.with(node, |debtor| {
            if let Some(debt) = debtor.debts.get_mut(&slot) {
                debt.since = now;
            }
        });
    }

    /// Records that `node` has learnt a batch of numbers, unless it has lost its data since.
    fn taught(&self, node: &str, lesson: Lesson) {
        self.with(node, |debtor| {
            if debtor.losses == lesson.losses {
                debtor.lesson = lesson.next;
            }
        });
    }

    fn with<T>(&self, node: &str, change: impl FnOnce(&mut Debtor) -> T) -> Option<T> {
        self.nodes().iter_mut().find(|debtor| *debtor.node == *node).map(change)
    }

    fn nodes(&self) -> MutexGuard<'_, Vec<Debtor>> {
        // No code that can panic runs under this mutex.
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Debtor {
    /// Returns the next action for the debts at `now`.
    fn next_debts(&mut self, now: Instant) -> Next {
        let numbers = |is_due: &dyn Fn(&Debt) -> bool| {
            let due = self.debts.iter().filter(|(_, debt)| is_due(debt)).map(|(slot, debt)| (*slot, debt.number));
            Batch { numbers: due.take(BATCH).collect(), lesson: None }
        };
        if self.is_closed {
            return Next::End(numbers(&|_| true));
        }
        let due_at = self.debts.values().map(|debt| debt.since.after(PATIENCE)).min();
        if due_at.is_some_and(|at| at <= now) {
            return Next::Send(numbers(&|debt| debt.since.after(PATIENCE) <= now));
        }
        self.is_idle = due_at.is_none();
        Next::Wait(due_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::ballot_clock::Believed;
    use crate::time::clock::Clock;

    const NODE: &str = "a";

    fn at(millis: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(millis))
    }

    /// Returns one node, and the numbers that the process knows.
    fn one_node() -> (OwedNumbers, BallotClock) {
        let owed = OwedNumbers::default();
        owed.open(NODE);
        (owed, BallotClock::new(Clock::Boot))
    }

    fn owe(owed: &OwedNumbers, slots: &[u16], number: u64, now: Instant) {
        owed.owe([NODE, "not listed"].into_iter(), slots, number, now);
    }

    fn sent(next: Next) -> Vec<(u16, u64)> {
        match next {
            Next::Send(batch) | Next::End(batch) => batch.numbers,
            Next::Wait(_) => Vec::new(),
        }
    }

    #[test]
    fn reply_in_time_settles_the_owed_number() {
        let table: [(&[u16], Number, bool); 5] = [
            (&[3], Number::Accepted(7), true),
            (&[3], Number::Accepted(6), false),
            (&[3], Number::Refused { largest: 7 }, true),
            (&[3, 4], Number::Accepted(7), true),
            (&[3, 4], Number::Refused { largest: 9 }, false),
        ];
        for (slots, reply, is_settled) in table {
            let (owed, known) = one_node();
            owe(&owed, slots, 7, at(0));
            assert_eq!(owed.next(NODE, &known, at(0)), Next::Wait(Some(at(500))));
            owed.on_reply(NODE, slots, reply);
            let expected = if is_settled { 0 } else { slots.len() };
            assert_eq!(sent(owed.next(NODE, &known, at(500))).len(), expected, "{slots:?} {reply:?}");
        }
    }

    #[test]
    fn largest_number_of_a_slot_is_owed_until_it_is_answered() {
        let (owed, known) = one_node();
        assert_eq!(owed.next(NODE, &known, at(0)), Next::Wait(None));
        for (number, time) in [(7, 0), (9, 400), (8, 450)] {
            owe(&owed, &[3], number, at(time));
        }
        let Next::Send(batch) = owed.next(NODE, &known, at(500)) else { panic!("it is due since the first of them") };
        assert_eq!(batch.numbers, [(3, 9)]);
        owed.postpone(NODE, 3, at(600));
        assert_eq!(owed.next(NODE, &known, at(700)), Next::Wait(Some(at(1100))));
        owe(&owed, &[3], 10, at(700));
        owed.answered(NODE, &batch);
        assert_eq!(sent(owed.next(NODE, &known, at(1100))), [(3, 10)], "a larger one was agreed meanwhile");
    }

    #[test]
    fn node_with_new_data_receives_all_numbers_again() {
        let (owed, known) = one_node();
        let slots: Vec<u16> = (0..SLOTS).step_by(100).collect();
        for slot in &slots {
            known.reached(*slot, 1 + u64::from(*slot));
        }
        let all = slots.iter().map(|slot| (*slot, 1 + u64::from(*slot)));
        let mut taught = Vec::new();
        owed.record_data_change(NODE);
        let Next::Send(first) = owed.next(NODE, &known, at(0)) else { panic!("it is taught at once") };
        assert_eq!(first.numbers.len(), BATCH);
        // It loses its data once more before the answers are here.
        owed.record_data_change(NODE);
        owed.answered(NODE, &first);
        while let Next::Send(batch) = owed.next(NODE, &known, at(0)) {
            taught.extend_from_slice(&batch.numbers);
            owed.answered(NODE, &batch);
        }
        assert!(taught.into_iter().eq(all));
        assert_eq!(owed.next(NODE, &known, at(0)), Next::Wait(None));
    }

    /// So the node need not be taught before it counts for this process.
    #[test]
    fn next_ballot_is_larger_than_the_number_that_a_node_is_taught() {
        let (owed, known) = one_node();
        known.believe(Believed::Ours);
        let number = known.draw(3).unwrap().number + (1 << 30);
        known.reached(3, number);
        owed.record_data_change(NODE);
        assert_eq!(sent(owed.next(NODE, &known, at(0))), [(3, number)]);
        assert_eq!(known.draw(3).unwrap().number, number + 1, "before the node has answered");
    }

    #[test]
    fn closed_delivery_sends_all_owed_numbers_and_ends() {
        let (owed, known) = one_node();
        owe(&owed, &[3, 4], 7, at(0));
        owed.close(NODE);
        assert!(matches!(owed.next(NODE, &known, at(1)), Next::End(batch) if batch.numbers == [(3, 7), (4, 7)]));
    }
}
