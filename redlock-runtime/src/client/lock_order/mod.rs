//! Whether locks are taken in one order everywhere: what each call adds to the [`Graph`] of a manager.

mod graph;
mod key_order;

use self::graph::{Gates, Graph, Kind, Taken};
use crate::error::{HeldLock, OrderStep, Why};
use crate::lock::LockKey;
use crate::request::Place;
use std::sync::{Mutex, PoisonError};

/// The orders in which the locks of a manager were taken.
#[derive(Debug, Default)]
pub(crate) struct LockOrder(Mutex<Graph>);

/// A lock, and where it was asked for.
pub(crate) struct Asked {
    pub(crate) key: LockKey,
    pub(crate) place: Place,
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
    /// A lock is asked for in the bodies of calls that have the `held` ones, the outermost first. Returns one of those that was
    /// taken in another order before; a call that is refused for that is not to be `kept` in mind.
    pub(crate) fn contradiction(&self, held: &[Asked], asked: &Asked, is_kept: bool) -> Option<HeldLock> {
        // No code that can panic runs under this mutex.
        let mut graph = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut contradiction = None;
        for (outer, lock) in held.iter().enumerate() {
            let gates: Gates = held.iter().take(outer).map(|gate| gate.key.shared_name()).collect();
            let step = OrderStep { taken_at: lock.place.line(), asked_at: asked.place.line() };
            let others = graph.add(&lock.taken(), &asked.taken(), (step, gates), is_kept);
            contradiction = contradiction.or_else(|| {
                let why = Why::Order(others?.into());
                Some(HeldLock::new(lock.key.clone(), step.taken_at, step.asked_at, why))
            });
        }
        contradiction
    }
}
