//! Waiting for a lock that others hold: in the queues of the nodes, until a majority is ours.

use super::Acquisition;
use super::state::Sleeper;
use crate::client::timers::{sleep, timeout};
use crate::protocol::candidate::{Candidate, Phase, Waited};
use crate::time::clock::Instant;
use crate::time::wait_until::wait_until;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

impl Acquisition {
    pub(crate) fn is_waiting(&self) -> bool {
        self.state().candidate.phase() == Phase::Waiting
    }

    /// Stands in the queues until the lock is ours, or until `limit`; without one, also through a silence of the nodes.
    ///
    /// # Cancel safety
    /// The place in the queues is kept; another call can go on with it.
    pub(crate) async fn wait(&self, limit: Option<Instant>) -> Waited {
        self.shared.listen();
        let begun = self.now();
        self.begin_to_wait(limit);
        let changed = &self.shared.changed;
        let (mut change, mut timer) = (pin!(changed.notified()), pin!(sleep(Duration::ZERO)));
        let waited = poll_fn(|cx| {
            // Before the look at the connections, so that no change after it is missed.
            while change.as_mut().poll(cx).is_ready() {
                change.set(changed.notified());
            }
            loop {
                self.shared.nodes.iter().for_each(|node| node.node().deliver());
                let next = match self.advance(limit, cx) {
                    Ok(next) => next,
                    Err(waited) => return Poll::Ready(waited),
                };
                // What was sent may have made nodes say something, also to this token, which has a sleeper then.
                self.shared.nodes.iter().for_each(|node| node.node().deliver());
                timer.as_mut().reset(tokio::time::Instant::now() + next.since(self.now()));
                if timer.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
            }
        })
        .await;
        self.heat(begun);
        waited
    }

    /// Hears what the nodes say to what they were asked last, if so many refuse that nothing comes of it: whoever has refused that need
    /// not be told that it is given back, which he would refuse as well, however often.
    pub(crate) async fn hear_refusals(&self, patience: Duration) {
        if self.is_refused() {
            self.until_answered(patience).await;
        }
    }

    /// Waits until the nodes have answered everything that they were asked about the token, no longer than `patience`, and not in a
    /// manager that closes. What is not answered by then is given back like anything else that is on its way.
    pub(crate) async fn until_answered(&self, patience: Duration) {
        self.until_heard(patience, Candidate::is_answered).await;
    }

    /// The same, until what they have answered `is_enough`.
    pub(super) async fn until_heard(&self, patience: Duration, is_enough: impl Fn(&Candidate) -> bool) {
        let mut closed = pin!(wait_until(&self.shared.changed, || self.shared.is_closed()));
        let answered = poll_fn(|cx| {
            let mut state = self.state();
            state.poll(cx, self.shared.clock);
            let is_heard = is_enough(&state.candidate);
            drop(state);
            if is_heard || closed.as_mut().poll(cx).is_ready() { Poll::Ready(()) } else { Poll::Pending }
        });
        let _ = timeout(patience, answered).await;
    }

    /// Begins to wait, unless it does already: at once, or after a rest where the call has time for that.
    fn begin_to_wait(&self, limit: Option<Instant>) {
        let now = self.now();
        let rest = self.shared.hot_keys.rest(self.key(), now);
        let has_time = limit.is_none_or(|limit| now.after(self.node_timeout()) < limit);
        self.state().candidate.wait(now.after(if has_time { rest } else { Duration::ZERO }));
    }

    /// Notes that others want the lock, so that the next call does not try to take it at once. Where locks linger, the others
    /// may only have left it idle.
    fn heat(&self, begun: Instant) {
        let (now, hot_keys) = (self.now(), &self.shared.hot_keys);
        let (is_contended, lingers) = {
            let state = self.state();
            (state.candidate.is_contended(), state.candidate.lingers())
        };
        match (is_contended, lingers) {
            (false, _) => {}
            (true, false) => hot_keys.heat(self.key(), now),
            (true, true) if self.token().asks() => {}
            (true, true) => hot_keys.heat_unless_idle(self.key(), begun, now),
        }
    }

    /// Takes in what has come and sends what it calls for, as far as it goes without waiting. Returns when to come back at
    /// the latest.
    ///
    /// # Errors
    /// How the wait has ended.
    fn advance(&self, limit: Option<Instant>, cx: &mut Context<'_>) -> Result<Instant, Waited> {
        let mut state = self.state();
        loop {
            state.poll(cx, self.shared.clock);
            let now = self.now();
            state.candidate.connections(self.shared.nodes.iter().map(|node| node.epoch(self.subject.route())), now);
            if let Some(waited) = state.candidate.wait_outcome(now) {
                return Err(waited);
            }
            if self.shared.is_closed() {
                return Err(Waited::Closed);
            }
            state.candidate.tick(now);
            // A node in memory has answered by now, and the others have our waker.
            if !self.send_next(&mut state, now) {
                let until = state.candidate.wait_until(limit, now)?;
                state.sleeper = Some(Sleeper { waker: cx.waker().clone(), until });
                return Ok(until);
            }
        }
    }
}
