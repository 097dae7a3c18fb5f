//! One connection, from its beginning to its end: whatever it carries arrives in the order of the sends, or not at all.

use crate::time::clock::Instant;
use std::collections::VecDeque;

pub(super) struct Wire {
    pub(super) link: usize,
    /// When the last message of each kind arrives: nothing overtakes its own kind.
    pub(super) requests: Lane,
    pub(super) replies: Lane,
    pub(super) pushes: Lane,
    /// The requests under way, by their order in the agenda.
    pub(super) under_way: VecDeque<u64>,
    pub(super) cut: Option<Cut>,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    /// The first request that is lost.
    pub(super) lost_from: u64,
    /// Those before it had left the client, and are executed then, maybe after those of the next connection.
    pub(super) arrive_at: Instant,
}

/// One direction, for one kind of message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane(pub(super) Instant);

impl Lane {
    /// When a message arrives that would arrive at `at` if it were the only one.
    pub(super) fn after_the_others(&mut self, at: Instant) -> Instant {
        self.0 = self.0.max(at);
        self.0
    }
}

impl Wire {
    pub(super) const fn new(link: usize, now: Instant) -> Self {
        let lane = Lane(now);
        Self { link, requests: lane, replies: lane, pushes: lane, under_way: VecDeque::new(), cut: None }
    }

    /// Ends the connection; the first `survivors` of the requests under way arrive at `arrive_at`.
    pub(super) fn cut(&mut self, survivors: usize, arrive_at: Instant) {
        let lost_from = self.under_way.get(survivors).copied().unwrap_or(u64::MAX);
        self.cut.get_or_insert(Cut { lost_from, arrive_at });
    }

    /// The server is gone, and with it what had reached its machine.
    pub(super) fn lose_all(&mut self) {
        if let Some(cut) = &mut self.cut {
            cut.lost_from = 0;
        }
    }

    /// A request has come to its end.
    pub(super) fn arrived(&mut self, order: u64) {
        self.under_way.retain(|other| *other != order);
    }
}
