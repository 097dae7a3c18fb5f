//! Calls of one process that wait for permits of a key, in the order of their arrival.
//!
//! Each of them also owns the admission lock or waits for it in its local queue. A permit that is given back in this process
//! goes to the first of them that is still there, as long as `protocol/candidate/permits` allows it. No command is
//! sent, and that call leaves the admission lock. If the first call may not have the permit, no later call gets it, and it
//! is released at the nodes.

use super::local_waiter::LocalWaiter;
use crate::client::acquisition::{Acquisition, Calls};
use crate::protocol::candidate::Counted;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Waiting calls for permits of one key, by their places.
#[derive(Default)]
pub(super) struct Takers {
    pub(super) all: BTreeMap<u64, Arc<Taker>>,
}

/// Shared state of a call that waits for a permit.
#[derive(Debug)]
pub(super) struct Taker {
    pub(super) waiter: LocalWaiter,
    /// Number of permits at a time, as this call limits it.
    pub(super) permits: u32,
}

impl Takers {
    /// Removes the first waiting call, if the permit may be passed on to it. The returned calls must be woken after
    /// every mutex is free.
    pub(super) fn next(&mut self, permit: &Acquisition, counted: &Counted) -> Option<(Arc<Taker>, Calls)> {
        let first = self.all.first_entry()?;
        let calls = permit.pass_permit(first.get().waiter.wanted, first.get().permits, counted)?;
        Some((first.remove(), calls))
    }
}
