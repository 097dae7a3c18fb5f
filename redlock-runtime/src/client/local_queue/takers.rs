//! The calls of one process that wait for permits of a key, in the order in which they came.
//!
//! Each of them stands in the turnstile as well, or in the line before it. A permit that is given back here goes to the first
//! of them that is there, as long as `protocol/candidate/permits` allows it, and no node hears of it: that call leaves the turnstile
//! then. When the first may not have it, nobody has it before that one, and the nodes are told.

use super::local_waiter::LocalWaiter;
use crate::client::acquisition::{Acquisition, Calls};
use crate::protocol::candidate::Counted;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Those who wait for permits of one key, by their places.
#[derive(Default)]
pub(super) struct Takers {
    pub(super) all: BTreeMap<u64, Arc<Taker>>,
}

/// A call that waits for a permit, as the others see it.
#[derive(Debug)]
pub(super) struct Taker {
    pub(super) waiter: LocalWaiter,
    /// How many may have one at a time, as this call applies it.
    pub(super) permits: u32,
}

impl Takers {
    /// Takes the first of them out of the line, if the permit may be passed on to it. Those who rely on the permit are to be woken
    /// when no mutex is held any more.
    pub(super) fn next(&mut self, permit: &Acquisition, counted: &Counted) -> Option<(Arc<Taker>, Calls)> {
        let first = self.all.first_entry()?;
        let calls = permit.pass_permit(first.get().waiter.wanted, first.get().permits, counted)?;
        Some((first.remove(), calls))
    }
}
