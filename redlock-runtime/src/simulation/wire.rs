//! One connection from its beginning to its end. Its messages arrive in the order of sending, or not at all.

use crate::time::clock::Instant;
use std::collections::VecDeque;

/// Connection of a link. Each reconnect creates another wire.
pub(super) struct Wire {
    pub(super) link: usize,
    /// Arrival of the last message of each kind. No message overtakes another of the same kind.
    pub(super) requests: Lane,
    pub(super) replies: Lane,
    pub(super) pushes: Lane,
    /// Requests under way, by their order in the agenda.
    pub(super) under_way: VecDeque<u64>,
    pub(super) cut: Option<Cut>,
}

/// End of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    /// First request that is lost.
    pub(super) lost_from: u64,
    /// Time at which the earlier requests are executed, possibly after requests of the next connection.
    pub(super) arrive_at: Instant,
}

/// One direction, for one kind of message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane(pub(super) Instant);

impl Lane {
    /// Returns the arrival of a message that would arrive at `at` without the earlier ones.
    pub(super) fn arrival_in_order(&mut self, at: Instant) -> Instant {
        self.0 = self.0.max(at);
        self.0
    }
}

impl Wire {
    pub(super) const fn new(link: usize, now: Instant) -> Self {
        let lane = Lane(now);
        Self { link, requests: lane, replies: lane, pushes: lane, under_way: VecDeque::new(), cut: None }
    }

    /// Ends the connection. The first `survivors` of the requests under way arrive at `arrive_at`.
    pub(super) fn cut(&mut self, survivors: usize, arrive_at: Instant) {
        let lost_from = self.under_way.get(survivors).copied().unwrap_or(u64::MAX);
        self.cut.get_or_insert(Cut { lost_from, arrive_at });
    }

    /// Drops the surviving requests as well, because the server is gone.
    pub(super) fn lose_all(&mut self) {
        if let Some(cut) = &mut self.cut {
            cut.lost_from = 0;
        }
    }

    /// Records that a request has arrived or was lost.
    pub(super) fn arrived(&mut self, order: u64) {
        self.under_way.retain(|other| *other != order);
    }
}
