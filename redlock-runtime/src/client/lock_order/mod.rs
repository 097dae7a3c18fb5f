//! Check that locks are acquired in a consistent order: each call adds to the [`Graph`] of a manager.

mod graph;
mod key_order;

use self::graph::{Gates, Graph, Kind, Taken};
use crate::error::{HeldLock, OrderStep, Why};
use crate::lock::LockKey;
use crate::request::Place;
use std::sync::{Mutex, PoisonError};

/// Orders in which the locks of a manager were acquired.
#[derive(Debug, Default)]
pub(crate) struct LockOrder(Mutex<Graph>);

/// Lock with the source location of its request.
pub(crate) struct Asked {
    pub(crate) key: LockKey,
    pub(crate) place: Place,
    /// Set if two bodies under the lock never run at the same time.
    pub(crate) is_alone: bool,
}

impl Asked {
    fn taken(&self) -> Taken<'_> {
        let kind = match self.place {
            Place::Attribute(site) => Kind::of_template(site.template()),
            Place::Call(location) => Kind::Call(location),
        };
        Taken { kind, name: self.key.name() }
    }
}

impl LockOrder {
    /// Records a request for a lock in bodies that have the `held` locks, the outermost first. Returns one of those
    /// that was acquired in another order before. A call that is refused because of that is not `kept`.
    pub(crate) fn contradiction(&self, held: &[Asked], asked: &Asked, is_kept: bool) -> Option<HeldLock> {
        // Code under this mutex cannot panic.
        let mut graph = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // All steps are checked before one is recorded: a refused call has acquired no lock in any order.
        let refused = (!is_kept).then(|| look(&mut graph, held, asked, false)).flatten();
        refused.or_else(|| look(&mut graph, held, asked, true))
    }
}

/// Returns the first of the `held` locks whose step to the requested one contradicts earlier steps.
fn look(graph: &mut Graph, held: &[Asked], asked: &Asked, is_noted: bool) -> Option<HeldLock> {
    let mut contradiction = None;
    for (outer, lock) in held.iter().enumerate() {
        let gates: Gates =
            held.iter().take(outer).filter(|gate| gate.is_alone).map(|gate| gate.key.shared_name()).collect();
        let step = OrderStep { taken_at: lock.place.line(), asked_at: asked.place.line() };
        let others = graph.look(&lock.taken(), &asked.taken(), (step, gates), is_noted);
        contradiction = contradiction.or_else(|| {
            let why = Why::Order(others?.into());
            Some(HeldLock::new(lock.key.clone(), step.taken_at, step.asked_at, why))
        });
    }
    contradiction
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::site::Site;

    fn lock(place: Place, key: &str) -> Asked {
        Asked { key: LockKey::from(key), place, is_alone: true }
    }

    #[test]
    fn shared_outer_lock_does_not_make_opposite_orders_safe() {
        static SITES: [Site; 3] =
            [Site::new("gate", "f", "f.rs", 1), Site::new("a", "f", "f.rs", 2), Site::new("b", "f", "f.rs", 3)];
        let [gate, a, b] = SITES.each_ref().map(|site| move || lock(Place::Attribute(site), site.template()));
        for is_alone in [true, false] {
            let (order, gate) = (LockOrder::default(), || Asked { is_alone, ..gate() });
            assert!(order.contradiction(&[gate(), a()], &b(), false).is_none());
            let other_way = order.contradiction(&[gate(), b()], &a(), false);
            assert_eq!(other_way.is_none(), is_alone, "{other_way:?}");
        }
    }

    #[test]
    fn refused_call_records_no_lock_order() {
        static SITES: [Site; 3] =
            [Site::new("a", "f", "f.rs", 1), Site::new("b", "f", "f.rs", 2), Site::new("c", "f", "f.rs", 3)];
        let [a, b, c] = SITES.each_ref().map(|site| move || lock(Place::Attribute(site), site.template()));
        let order = LockOrder::default();
        assert!(order.contradiction(&[c()], &b(), false).is_none());
        assert!(order.contradiction(&[a(), b()], &c(), false).is_some());
        assert!(order.contradiction(&[c()], &a(), false).is_none(), "nobody has taken them the other way round");
    }

    #[test]
    fn keys_of_one_call_site_are_ordered_if_they_differ_only_in_numbers() {
        let place = Place::Call(std::panic::Location::caller());
        let order = LockOrder::default();
        let is_refused = |held, asked| order.contradiction(&[lock(place, held)], &lock(place, asked), false).is_some();
        // One line that acquires all locks of a program.
        assert!(!is_refused("order:7", "stock:7") && !is_refused("stock:8", "order:8"));
        assert!(!is_refused("order:7", "order:8"));
        assert!(is_refused("order:8", "order:7"));
    }
}
