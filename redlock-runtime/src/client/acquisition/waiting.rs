//! Waiting for a lock that others hold: in the queues of the nodes, until a majority is ours.

use super::Ownership;
use crate::protocol::candidate::Phase;
use crate::time::clock::Instant;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::sleep;

/// A caller with a limit does not wait for servers that are gone for longer than this: waiting is for holders.
const LONGEST_SILENCE: Duration = Duration::from_secs(1);

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    Held,
    /// Another call of this process has gone on without it.
    TakenOver,
    /// The token cannot win any more; another one, with the same place in the queues, can.
    Spoilt,
    /// The wait is over.
    TimedOut,
    /// Too few nodes answer.
    Silent,
    Closed,
}

impl Ownership {
    /// Stands in the queues until the lock is ours, or until `limit`; without one, also through a silence of the nodes.
    ///
    /// # Cancel safety
    /// The place in the queues is kept; another call can go on with it.
    pub(crate) async fn waited(&self, limit: Option<Instant>) -> Waited {
        self.enqueue();
        let changed = &self.core.changed;
        let (mut change, mut timer) = (pin!(changed.notified()), pin!(sleep(Duration::ZERO)));
        let waited = poll_fn(|cx| {
            // Before the look at the connections, so that no change after it is missed.
            while change.as_mut().poll(cx).is_ready() {
                change.set(changed.notified());
            }
            loop {
                let next = match self.advance(limit, cx) {
                    Ok(waited) => return Poll::Ready(waited),
                    Err(next) => next,
                };
                timer.as_mut().reset(tokio::time::Instant::now() + next.since(self.core.clock.now()));
                if timer.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
            }
        })
        .await;
        if self.standing().is_contended() {
            self.core.hot_keys.heat(self.key(), self.core.clock.now());
        }
        waited
    }

    fn enqueue(&self) {
        self.core.listen();
        let mut standing = self.standing();
        if standing.phase == Phase::Claiming {
            standing.wait(self.core.clock.now());
        }
    }

    /// Takes in what has come and sends what it calls for, as far as it goes without waiting.
    ///
    /// # Errors
    /// When to come back at the latest.
    fn advance(&self, limit: Option<Instant>, cx: &mut Context<'_>) -> Result<Waited, Instant> {
        let mut standing = self.standing();
        standing.waker = Some(cx.waker().clone());
        loop {
            match standing.phase {
                // The manager was shut down, and has left the queues for us.
                Phase::Left => return Ok(Waited::Closed),
                Phase::Forfeited => return Ok(Waited::TakenOver),
                Phase::Claiming | Phase::Waiting | Phase::Holding => {}
            }
            standing.poll(cx, self.core.clock);
            let now = self.core.clock.now();
            standing.connections(self.core.nodes.iter().map(|node| node.epoch(self.key())), now);
            if standing.is_won(now) {
                standing.hold(now);
                return Ok(Waited::Held);
            }
            if standing.is_spoilt(now) {
                return Ok(Waited::Spoilt);
            }
            if self.core.is_closed() {
                return Ok(Waited::Closed);
            }
            standing.tick(now);
            // A node in memory has answered by now, and the others have our waker.
            if self.ask_what_is_wanted(&mut standing, now) {
                continue;
            }
            return match limit {
                None => Err(standing.next_event(now)),
                Some(limit) if limit <= now => Ok(Waited::TimedOut),
                Some(_) if standing.silence(now) >= LONGEST_SILENCE => Ok(Waited::Silent),
                Some(limit) => Err(standing.next_event(now).min(limit)),
            };
        }
    }
}
