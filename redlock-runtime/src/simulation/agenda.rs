//! Future events and their times: the only source of time in a run besides the timers of the code under test.

use super::faults::Fault;
use crate::protocol::command::{Command, Reply, Wakeup};
use crate::time::clock::Instant;
use crate::time::token_clock::TokenTime;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::task::Waker;
use std::time::Duration;

/// Event of a run. Wires, links and servers are given by their number.
pub(super) enum Event {
    /// A request arrives at its server.
    Request {
        wire: usize,
        request: Request,
    },
    /// An answer arrives at its client.
    Reply {
        wire: usize,
        reply: Replied,
    },
    /// A wake-up arrives at its client.
    Push {
        wire: usize,
        wakeup: Wakeup,
        sent: Instant,
    },
    /// The client notices that its connection is gone.
    Broken {
        wire: usize,
    },
    /// The server notices that a connection is gone.
    Forgotten {
        wire: usize,
    },
    /// The client reconnects.
    Connected {
        link: usize,
    },
    Fault(Fault),
    /// The observer looks, even without other events.
    Look,
}

/// Message from a client to a server.
pub(super) enum Request {
    Command(Command),
    Subscribe,
    /// A wake-up that a manager publishes.
    Publish(Wakeup),
}

/// Answer to a request. `time` is the clock of the server, if the answer reports it.
pub(super) enum Replied {
    Command {
        reply: Reply,
        seen: Option<TokenTime>,
        time: Option<Duration>,
    },
    /// Error of a script that was executed in part or as a whole.
    Raised,
    Subscribed,
    /// The server reports that its data is replaced. After its answer, the data set is known to be another.
    Replaced,
}

/// Event with its time.
pub(super) struct Entry {
    pub(super) at: Instant,
    /// Order of sending. Of two due events, the earlier one happens first.
    pub(super) order: u64,
    pub(super) event: Event,
}

/// Future events, ordered by time.
#[derive(Default)]
pub(super) struct Agenda {
    entries: BinaryHeap<Entry>,
    next_order: u64,
    /// Waker of the task that sleeps until the next entry, and the end of that sleep.
    sleeper: Option<(Waker, Instant)>,
}

impl Agenda {
    /// Adds an event. Returns its place among the events of the same time.
    pub(super) fn add(&mut self, at: Instant, event: Event) -> u64 {
        let order = self.next_order;
        self.next_order += 1;
        self.postpone(Entry { at, order, event }, at);
        order
    }

    /// Puts `entry` back, to happen at `at` in its old order.
    pub(super) fn postpone(&mut self, entry: Entry, at: Instant) {
        self.entries.push(Entry { at, ..entry });
        if self.sleeper.as_ref().is_some_and(|(_, until)| at < *until)
            && let Some((sleeper, _)) = self.sleeper.take()
        {
            sleeper.wake();
        }
    }

    /// Removes and returns the next event, if it is due.
    pub(super) fn due(&mut self, now: Instant) -> Option<Entry> {
        if self.entries.peek()?.at <= now { self.entries.pop() } else { None }
    }

    /// Returns the time of the next event. `sleeper` is woken if an earlier event is added.
    pub(super) fn sleep(&mut self, sleeper: &Waker, now: Instant) -> Instant {
        // A next look of the observer is always scheduled.
        let until = self.entries.peek().map_or(now, |entry| entry.at);
        self.sleeper = Some((sleeper.clone(), until));
        until
    }
}

impl Ord for Entry {
    /// Reversed: the heap returns its largest entry, which must be the earliest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}
