//! Waiting for a lock that other tokens hold: in the queues of the nodes, until a majority is ours.

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

    /// Waits in the queues until the lock is ours, or until `limit`. Without a limit, it also waits through a silence
    /// of the nodes.
    ///
    /// # Cancel safety
    /// The place in the queues is kept; another call can continue with it.
    pub(crate) async fn wait(&self, limit: Option<Instant>) -> Waited {
        self.shared.listen();
        let begun = self.now();
        self.begin_to_wait(limit);
        let changed = &self.shared.changed;
        let (mut change, mut timer) = (pin!(changed.notified()), pin!(sleep(Duration::ZERO)));
        let waited = poll_fn(|cx| {
            // Before the connections are examined, so that no later change is missed.
            while change.as_mut().poll(cx).is_ready() {
                change.set(changed.notified());
            }
            loop {
                self.shared.nodes.iter().for_each(|node| node.node().deliver());
                let next = match self.advance(limit, cx) {
                    Ok(next) => next,
                    Err(waited) => return Poll::Ready(waited),
                };
                // The sent commands may have caused messages, even for this token, which has a registered sleeper now.
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

    /// Waits for the outstanding answers if too many nodes refuse. A node that has refused a command does not need a
    /// release, which it would refuse as well.
    pub(crate) async fn wait_for_refusal_replies(&self, patience: Duration) {
        if self.is_refused() {
            self.wait_until_answered(patience).await;
        }
    }

    /// Waits until the nodes have answered all commands about the token, for at most `patience`, and not after the
    /// manager has closed. An unanswered command is followed by a release, like any other.
    pub(crate) async fn wait_until_answered(&self, patience: Duration) {
        self.wait_for_enough_replies(patience, Candidate::is_answered).await;
    }

    /// Waits in the same way until the answers satisfy `is_enough`.
    pub(super) async fn wait_for_enough_replies(&self, patience: Duration, is_enough: impl Fn(&Candidate) -> bool) {
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

    /// Begins to wait, unless it has begun before: at once, or after a pause if the call has time for it.
    fn begin_to_wait(&self, limit: Option<Instant>) {
        let now = self.now();
        let rest = self.shared.hot_keys.rest(self.key(), now);
        let has_time = limit.is_none_or(|limit| now.after(self.node_timeout()) < limit);
        self.state().candidate.wait(now.after(if has_time { rest } else { Duration::ZERO }));
    }

    /// Records that other tokens want the lock, so that the next call does not try to take it at once. If locks linger,
    /// the others may only have left it idle.
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

    /// Processes all events and sends the resulting commands, as far as that is possible without waiting. Returns the
    /// time of the next check at the latest.
    ///
    /// # Errors
    /// End of the wait.
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
            // An in-memory node has answered already, and the others have our waker.
            if !self.send_next(&mut state, now) {
                let until = state.candidate.wait_until(limit, now)?;
                state.sleeper = Some(Sleeper { waker: cx.waker().clone(), until });
                return Ok(until);
            }
        }
    }
}
