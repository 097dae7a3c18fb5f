//! Graph of the orders in which kinds of locks were acquired: from a held lock to the requested lock.
//!
//! 1. A new order is a contradiction if a path of earlier orders leads back from it. With one task on each step of that
//!    path, all of them could wait for each other.
//! 2. Each order keeps its *gates*: keys that all calls with this order held before either lock. Two orders with a
//!    common gate never occur at the same time, so a path with two of them does not count. One exception is missed: two
//!    branches of a single body that holds the gate. Such a body may also run both orders one after the other, which is
//!    harmless and looks identical here. The check must not report false contradictions.
//! 3. Two locks of one kind are acquired in ascending or descending order of their keys, by letters and by numbers.
//!    They are a contradiction if both directions occurred in both comparisons: a program that sorts in one way
//!    satisfies that one. A source line that acquires different locks may use any order; its keys are compared only if
//!    they differ in their numbers alone.
//! 4. A reported contradiction is not reported again.
//!
//! Source: the lock dependency checker of the Linux kernel, `Documentation/locking/lockdep-design.rst`, which has
//! classes of locks and steps between them.

use super::key_order::{compare_by_text_and_number, differ_in_numbers_only};
use crate::error::OrderStep;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::panic::Location;
use std::sync::Arc;

/// Number of source lines of direct calls that are distinguished. Smaller: large programs are only checked in part.
/// Larger: a program that generates such lines without limit, for example by a macro, has a graph without limit.
const MOST_CALLS: usize = 4096;

/// Kind of a lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// Text of a template, with empty placeholders.
    Template(Box<str>),
    Call(&'static Location<'static>),
}

impl Kind {
    /// Returns the kind of a template: `order:{id}` and `order:{order_id}` are equal.
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

/// Lock in a step.
pub(super) struct Taken<'a> {
    pub(super) kind: Kind,
    pub(super) name: &'a str,
}

/// Keys that were held before a step.
pub(super) type Gates = Vec<Arc<str>>;

/// Order that has occurred.
#[derive(Clone, Debug)]
struct Order {
    step: OrderStep,
    /// Gates that all its calls had in common.
    gates: Gates,
    is_reported: bool,
}

impl Order {
    /// Returns `true` if both orders never occur at the same time.
    fn excludes(&self, other: &Self) -> bool {
        self.gates.iter().any(|gate| other.gates.contains(gate))
    }

    /// Combines the order with another occurrence; `None` if nothing changes.
    fn and(&self, other: &Self) -> Option<Self> {
        let is_known = self.is_reported || self.gates.iter().all(|gate| other.gates.contains(gate));
        let gates = || self.gates.iter().filter(|gate| other.gates.contains(gate)).cloned().collect();
        (!is_known).then(|| Self { gates: gates(), ..other.clone() })
    }
}

/// Orders of two locks of one kind: for each comparison, the ascending and the descending one.
#[derive(Clone, Debug, Default)]
struct OfOneKind([[Option<Order>; 2]; 2]);

#[derive(Debug, Default)]
pub(super) struct Graph {
    kinds: HashMap<Kind, usize>,
    calls: usize,
    /// Orders by the kind of the held lock, and the kind of the requested one.
    orders: BTreeMap<usize, BTreeMap<usize, Order>>,
    of_one_kind: HashMap<usize, OfOneKind>,
}

impl Graph {
    /// Records that `asked` was requested while `held` was held, in these `gates`. Returns the contradicting steps, if
    /// there are any. They are not returned again if the order `is_noted`.
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
            let compared = compare_by_text_and_number(held.name, asked.name);
            return is_like.then(|| self.check_same_kind(from, compared, &order, is_noted)).flatten();
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

    /// Returns the number of a kind; `None` if there are too many calls.
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

    /// Returns the shortest path of orders from one kind to another, on which tasks could wait for each other and for a
    /// task with `order`. If two steps of that path exclude each other, no longer path is searched: a contradiction may
    /// be missed, and a false one is never reported.
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

    /// Returns the steps of a path, unless two of them exclude each other.
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

    /// Checks two locks of one kind, whose keys compare like this.
    fn check_same_kind(
        &mut self,
        kind: usize,
        compared: [Ordering; 2],
        order: &Order,
        is_noted: bool,
    ) -> Option<Vec<OrderStep>> {
        let mut seen = self.of_one_kind.get(&kind).cloned().unwrap_or_default();
        let mut opposites = Vec::new();
        // For each comparison, record the direction, and collect an opposite one that may run at the same time.
        for (directions, compared) in seen.0.iter_mut().zip(compared) {
            let [ascending, descending] = directions;
            let (same, opposite) =
                if compared == Ordering::Less { (ascending, descending) } else { (descending, ascending) };
            let known = same.as_ref();
            *same = known.map_or(Some(order.clone()), |known| known.and(order)).or_else(|| same.take());
            let is_reported = same.as_ref().is_some_and(|same| same.is_reported);
            opposites.extend(opposite.clone().filter(|other| !is_reported && !other.excludes(order)));
        }
        // A program that sorts in one way has no opposite direction in that comparison.
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
