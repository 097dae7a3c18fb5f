//! Delivery of messages: their delays, their order, and their execution at the server.

use super::message::{Executed, Parcel, Request, Step};
use super::wire::Wire;
use super::{Inner, Server};
use crate::error::NodeError;
use crate::protocol::command::{Claim, Notice, Wakeup};
use crate::protocol::wakeup::channel;
use std::time::Duration;
use tokio::time::Instant as Moment;

/// Maximum random delay of a message in milliseconds: usually, and for one message in thirty.
const JITTER: (u64, u64) = (4, 60);

impl Server {
    /// Accepts a request. Returns a reply that is ready immediately.
    pub(in crate::testing) fn send(&self, number: usize, request: Request) -> Option<Parcel> {
        let (mut inner, now) = (self.inner(), Moment::now());
        if let Some(error) = inner.trouble(number) {
            return request.failed(error);
        }
        let way = inner.way();
        if way.is_zero() && !inner.is_frozen && inner.wires.get(&number).is_some_and(Wire::is_idle) {
            let parcel = inner.serve(request, self, now)?;
            let wire = inner.wires.get_mut(&number)?;
            // Earlier messages are delivered first.
            if wire.parcels.is_empty() {
                return Some(parcel);
            }
            wire.add_parcel(now, parcel);
            return None;
        }
        if let Some(wire) = inner.wires.get_mut(&number) {
            let at = wire.requests.back().map_or(now, |(at, _)| *at).max(now + way);
            wire.requests.push_back((at, request));
            wire.wake();
        }
        None
    }

    /// Returns the next message of a connection, or the time to wait for it.
    pub(in crate::testing) fn step(&self, number: usize) -> Step {
        let (mut inner, now) = (self.inner(), Moment::now());
        loop {
            let is_frozen = inner.is_frozen;
            let Some(wire) = inner.wires.get_mut(&number) else { return Step::End };
            if wire.parcels.front().is_some_and(|(at, _)| *at <= now)
                && let Some((_, parcel)) = wire.parcels.pop_front()
            {
                return Step::Hand(parcel);
            }
            let is_due = wire.requests.front().is_some_and(|(at, _)| *at <= now) && !is_frozen;
            let request = if is_due { wire.requests.pop_front() } else { None };
            let Some((_, request)) = request else {
                let asked = wire.requests.front().filter(|_| !is_frozen).map(|(at, _)| *at);
                let told = wire.parcels.front().map(|(at, _)| *at);
                return Step::Wait(asked.into_iter().chain(told).min());
            };
            let answer = inner.serve(request, self, now);
            let way = inner.way();
            if let (Some(answer), Some(wire)) = (answer, inner.wires.get_mut(&number)) {
                wire.add_parcel(now + way, answer);
            }
        }
    }
}

impl Inner {
    /// Returns the delay of the next message.
    fn way(&mut self) -> Duration {
        let (usual, rare) = JITTER;
        let extra = self.jitter.as_mut().map_or(0, |random| {
            let most = if random.u8(0..30) == 0 { rare } else { usual };
            random.u64(0..=most)
        });
        self.delay / 2 + Duration::from_millis(extra)
    }

    /// Executes a request. Returns the reply, if there is one.
    fn serve(&mut self, request: Request, server: &Server, now: Moment) -> Option<Parcel> {
        if let Some(answer) = &self.refusal {
            return request.failed(NodeError::Refused(answer.clone().into()));
        }
        let (command, recipient, sent) = match request {
            Request::Publish(wakeup) => {
                let channel = channel(wakeup.subject.token.manager());
                let way = self.way();
                let mut wires = self.wires.values_mut().filter(|wire| wire.hears(&channel));
                wires.next()?.add_parcel(now + way, Parcel::Wakeup(wakeup));
                return None;
            }
            Request::Command { command, recipient, sent } => (command, recipient, sent),
        };
        let (way, time) = (self.way(), server.time());
        let Self { state, wires, .. } = self;
        let (reply, seen) = state.execute(server.clock.now(), &command, &mut |channel, wakeup| {
            let Some(wire) = wires.values_mut().find(|wire| wire.hears(channel)) else { return 0 };
            let notice = match wakeup.notice {
                Notice::Claimed(claim) => Notice::Claimed(Claim { begun: time, ..claim }),
                other => other,
            };
            wire.add_parcel(now + way, Parcel::Wakeup(Wakeup { notice, ..wakeup }));
            1
        });
        let proposal = command.proposal();
        Some(Parcel::Answer { recipient, sent, outcome: Ok(Executed { reply, seen, time, proposal }) })
    }
}
