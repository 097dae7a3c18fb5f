//! What will happen, and when: the only source of time in a run besides the timers of the code under test.

use super::faults::Fault;
use crate::protocol::command::{Command, Reply, Wakeup};
use crate::time::clock::Instant;
use crate::time::token_clock::TokenTime;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::task::Waker;
use std::time::Duration;

/// Wires, links and servers go by their number.
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
    /// The client gets another connection.
    Connected {
        link: usize,
    },
    Fault(Fault),
    /// Time for the observer to look, however quiet it is.
    Look,
}

pub(super) enum Request {
    Command(Command),
    Subscribe,
    /// A wake-up that a manager publishes.
    Publish(Wakeup),
}

/// `time`: that of the server, where the answer tells it.
pub(super) enum Replied {
    Command {
        reply: Reply,
        seen: Option<TokenTime>,
        time: Option<Duration>,
    },
    /// Error of a script that was executed in part or as a whole.
    Raised,
    Subscribed,
    /// The server says that it throws its data away; once it was asked, it is clear that it has other data.
    Replaced,
}

pub(super) struct Entry {
    pub(super) at: Instant,
    /// What was sent first happens first when both are due.
    pub(super) order: u64,
    pub(super) event: Event,
}

#[derive(Default)]
pub(super) struct Agenda {
    entries: BinaryHeap<Entry>,
    next_order: u64,
    /// Whoever sleeps until the next entry, and until when.
    sleeper: Option<(Waker, Instant)>,
}

impl Agenda {
    /// Returns the place of the event among those of the same time.
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

    pub(super) fn due(&mut self, now: Instant) -> Option<Entry> {
        if self.entries.peek()?.at <= now { self.entries.pop() } else { None }
    }

    /// When the next event is due; `sleeper` is woken when an earlier one is added.
    pub(super) fn sleep(&mut self, sleeper: &Waker, now: Instant) -> Instant {
        // There is always a next look of the observer.
        let until = self.entries.peek().map_or(now, |entry| entry.at);
        self.sleeper = Some((sleeper.clone(), until));
        until
    }
}

impl Ord for Entry {
    /// The heap gives out its largest entry, which is to be the earliest.
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
