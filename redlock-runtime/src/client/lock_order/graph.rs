//! The orders in which kinds of locks were taken, as a graph: from what was held to what was asked for.
//!
//! 1. A new order that a way through the others leads back from is a contradiction: with one task on each step of that way, all
//!    of them could wait for each other.
//! 2. Each order keeps the *gates* that all who took it were in: keys that were held before either lock. Two orders with the
//!    same gate are never taken at the same moment, so a way that has two of them is none. The exception is not seen: two
//!    branches of the one body that is in the gate. Such a body may as well take both orders one after the other, which hurts
//!    nobody and looks the same here; and no contradiction is to be made up.
//! 3. Two locks of one kind are taken in ascending or descending order of their keys, letter by letter and by numbers. It is a
//!    contradiction when both directions were seen in both ways of comparing: who sorts in one way keeps to it. A line that
//!    takes locks by hand may take any; those of its keys are compared that differ in numbers only.
//! 4. What was reported once is not reported again.
//!
//! Source: the lock dependency checker of the Linux kernel, `Documentation/locking/lockdep-design.rst`, which knows classes of
//! locks and steps between them.

use super::key_order::{both_ways, differ_in_numbers_only};
use crate::error::OrderStep;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::panic::Location;
use std::sync::Arc;

/// How many lines of calls written by hand are told apart. Fewer, and large programs are looked at in part; more, and a program
/// that makes such lines without end, as by a macro, has a graph without end.
const MOST_CALLS: usize = 4096;

/// What counts as one kind of lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// The text of a template, with empty placeholders.
    Template(Box<str>),
    Call(&'static Location<'static>),
}

impl Kind {
    /// That of a template: `order:{id}` and `order:{order_id}` are one.
    pub(super) fn of_template(template: &str) -> Self {
        let (mut text, mut is_inside) = (String::new(), false);
        for c in template.chars() {
            is_inside &= c != '}';
            if !is_inside {
                text.push(c);
            }
            is_inside |= c == '{';
        }
        Self::Template(text.into())
    }
}

/// A lock in a step.
pub(super) struct Taken<'a> {
    pub(super) kind: Kind,
    pub(super) name: &'a str,
}

/// The keys that were held before a step.
pub(super) type Gates = Vec<Arc<str>>;

/// An order that was seen.
#[derive(Clone, Debug)]
struct Order {
    step: OrderStep,
    /// What all who took it were in.
    gates: Gates,
    is_reported: bool,
}

impl Order {
    /// Whether both are never taken at the same moment.
    fn excludes(&self, other: &Self) -> bool {
        self.gates.iter().any(|gate| other.gates.contains(gate))
    }

    /// What is known after the same order was seen once more; `None` when that is nothing new.
    fn and(&self, other: &Self) -> Option<Self> {
        let is_known = self.is_reported || self.gates.iter().all(|gate| other.gates.contains(gate));
        let gates = || self.gates.iter().filter(|gate| other.gates.contains(gate)).cloned().collect();
        (!is_known).then(|| Self { gates: gates(), ..other.clone() })
    }
}

/// Two locks of one kind: the orders that were seen by each way of comparing, ascending and descending.
#[derive(Clone, Debug, Default)]
struct OfOneKind([[Option<Order>; 2]; 2]);

#[derive(Debug, Default)]
pub(super) struct Graph {
    kinds: HashMap<Kind, usize>,
    calls: usize,
    /// By what was held, and what was asked for then.
    orders: BTreeMap<usize, BTreeMap<usize, Order>>,
    of_one_kind: HashMap<usize, OfOneKind>,
}

impl Graph {
    /// `asked` was asked for while `held` was held, in these `gates`. Returns the steps that contradict that, if any do. They are
    /// not returned again if the order `is_noted`.
    pub(super) fn look(
        &mut self,
        held: &Taken<'_>,
        asked: &Taken<'_>,
        (step, gates): (OrderStep, Gates),
        is_noted: bool,
    ) -> Option<Vec<OrderStep>> {
        let (from, to) = (self.number(&held.kind)?, self.number(&asked.kind)?);
        let order = Order { step, gates, is_reported: false };
        if from == to {
            let is_like = matches!(held.kind, Kind::Template(_)) || differ_in_numbers_only(held.name, asked.name);
            let compared = both_ways(held.name, asked.name);
            return is_like.then(|| self.look_at_one_kind(from, compared, &order, is_noted)).flatten();
        }
        let known = self.orders.get(&from).and_then(|orders| orders.get(&to));
        let mut order = known.map_or(Some(order.clone()), |known| known.and(&order))?;
        let back = self.way(to, from, &order);
        order.is_reported = back.is_some();
        if is_noted {
            self.orders.entry(from).or_default().insert(to, order);
        }
        back
    }

    /// The number of a kind; `None` for one call too many.
    fn number(&mut self, kind: &Kind) -> Option<usize> {
        if let Some(number) = self.kinds.get(kind) {
            return Some(*number);
        }
        if matches!(kind, Kind::Call(_)) {
            self.calls = self.calls.checked_add(1).filter(|calls| *calls <= MOST_CALLS)?;
        }
        let number = self.kinds.len();
        self.kinds.insert(kind.clone(), number);
        Some(number)
    }

    /// The shortest way through the orders from one kind to another, on which tasks could wait for each other and for one that
    /// takes `order`. A longer one is not looked for when two steps of that one exclude each other: a contradiction may be
    /// missed, and none is made up.
    fn way(&self, from: usize, to: usize, order: &Order) -> Option<Vec<OrderStep>> {
        let (mut came_by, mut next) = (BTreeMap::new(), VecDeque::from([from]));
        while let Some(kind) = next.pop_front() {
            if kind == to {
                return self.steps(from, to, &came_by);
            }
            for (reached, other) in self.orders.get(&kind).into_iter().flatten() {
                if !other.excludes(order) && !came_by.contains_key(reached) {
                    came_by.insert(*reached, kind);
                    next.push_back(*reached);
                }
            }
        }
        None
    }

    /// The steps of a way, unless two of them exclude each other.
    fn steps(&self, from: usize, to: usize, came_by: &BTreeMap<usize, usize>) -> Option<Vec<OrderStep>> {
        let (mut way, mut at) = (Vec::new(), to);
        while at != from {
            let before = *came_by.get(&at)?;
            way.push(self.orders.get(&before)?.get(&at)?);
            at = before;
        }
        way.reverse();
        let excludes = |(n, one): (usize, &&Order)| way.iter().skip(n + 1).any(|other| one.excludes(other));
        let is_possible = !way.iter().enumerate().any(excludes);
        is_possible.then(|| way.iter().map(|order| order.step).collect())
    }

    /// Two locks of one kind, which compare like that.
    fn look_at_one_kind(
        &mut self,
        kind: usize,
        compared: [Ordering; 2],
        order: &Order,
        is_noted: bool,
    ) -> Option<Vec<OrderStep>> {
        let mut seen = self.of_one_kind.get(&kind).cloned().unwrap_or_default();
        let mut opposites = Vec::new();
        for (directions, compared) in seen.0.iter_mut().zip(compared) {
            let [ascending, descending] = directions;
            let (same, opposite) =
                if compared == Ordering::Less { (ascending, descending) } else { (descending, ascending) };
            let known = same.as_ref();
            *same = known.map_or(Some(order.clone()), |known| known.and(order)).or_else(|| same.take());
            let is_reported = same.as_ref().is_some_and(|same| same.is_reported);
            opposites.extend(opposite.clone().filter(|other| !is_reported && !other.excludes(order)));
        }
        let contradicts = opposites.len() == compared.len();
        if contradicts {
            seen.0.iter_mut().flatten().flatten().for_each(|order| order.is_reported = true);
        }
        if is_noted {
            self.of_one_kind.insert(kind, seen);
        }
        contradicts.then(|| opposites.iter().take(1).map(|order| order.step).collect())
    }
}

#[cfg(test)]
mod tests;
