//! A call takes up the acquisition that it finds, and tries to get the lock at once.

use super::Acquisition;
use crate::client::gather::gather;
use crate::error::NodeError;
use crate::protocol::candidate::Phase;
use crate::protocol::lease::whole_millis;
use crate::protocol::quorum::Verdict;
use crate::time::clock::Instant;
use crate::time::wait_until::wait_until;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

/// What a call finds when its turn has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TakenUp {
    /// No node has been asked yet.
    Fresh,
    /// The token stands in the queues.
    Waiting,
    /// The lock was passed on. `is_passable`: enough of the lease is left for a whole body.
    Held { is_passable: bool },
    /// Another call of this process has gone on without it.
    Superseded,
    /// The manager was shut down, and the token was released.
    Ended,
}

impl Acquisition {
    /// A call acts for the token from now on, fenced or not.
    ///
    /// Its fencing number will be above all that this process knows of, those of other locks included: nodes whose counters
    /// are lower, because they are new, have expired or were lost, give the same one then.
    pub(crate) fn take_up(&self, is_fenced: bool) -> TakenUp {
        let known = self.shared.largest_number.load(Ordering::Relaxed);
        let mut state = self.state();
        state.candidate.want_number(is_fenced, known);
        match state.candidate.phase() {
            Phase::Trying => TakenUp::Fresh,
            Phase::Waiting => TakenUp::Waiting,
            Phase::Holding => TakenUp::Held { is_passable: state.candidate.is_passable(self.now()) },
            Phase::Superseded => TakenUp::Superseded,
            Phase::Ended => TakenUp::Ended,
        }
    }

    /// Another token with the same place in the queues, whose number is above `above`.
    pub(crate) fn again_above(&self, above: u64) -> Self {
        let again = self.again();
        again.state().candidate.want_number(true, above);
        again
    }

    /// Whether what is left of the lease is worth having.
    pub(crate) fn is_useful(&self) -> bool {
        self.state().candidate.is_won(self.now())
    }

    /// Asks the nodes whether what has the key is data, when a try has found it taken: a plain `SET` does not tell. `true`
    /// when so many say so that nobody will ever give the lock back.
    ///
    /// One question for a key that was a lock lately is spared.
    pub(crate) async fn finds_data(&self) -> bool {
        if self.shared.known_locks.contains(self.key(), self.now()) {
            return false;
        }
        let asked = self.shared.nodes.iter().map(|node| node.node().holds_data(self.key())).collect();
        let needed = self.shared.quorum.needed;
        // As many as are needed for a lock are too many for a refusal.
        let answers = gather(asked, self.node_timeout, |answers| locks(answers) >= needed).await;
        for (index, _) in answers.iter().enumerate().filter(|(_, answer)| **answer == Some(Some(true))) {
            self.state().candidate.found_data(index);
        }
        if locks(&answers) >= needed {
            self.shared.known_locks.note(self.key(), self.now());
        }
        self.is_refused()
    }

    /// Asks every node for the lock at once, and waits for the votes, no longer than `patience` and not for a node that
    /// cannot change the outcome.
    pub(crate) async fn try_at_once(&self, now: Instant, patience: Duration) -> Verdict {
        {
            let mut state = self.state();
            state.take_in(self.shared.clock);
            let (candidate, mut sender) = state.parts(&self.shared, &self.subject, now);
            candidate.try_at_once(now, |out| sender.send(out));
        }
        // A manager that closes ends the try, which may wait for silent nodes for longer than a shutdown should.
        let mut closed = pin!(wait_until(&self.shared.changed, || self.shared.is_closed()));
        let votes = poll_fn(|cx| {
            let is_closed = closed.as_mut().poll(cx).is_ready();
            let mut state = self.state();
            state.poll(cx, self.shared.clock);
            match state.candidate.tried() {
                Verdict::Open if !is_closed => Poll::Pending,
                verdict => Poll::Ready(verdict),
            }
        });
        let verdict = tokio::time::timeout(patience, votes).await;
        let (mut state, now) = (self.state(), self.now());
        match verdict {
            Ok(verdict) => state.candidate.conclude_try(verdict, now),
            Err(_) => state.candidate.give_up_try(&NodeError::TimedOut(whole_millis(patience))),
        }
    }
}

/// How many nodes have said that the key holds no data.
fn locks(answers: &[Option<Option<bool>>]) -> usize {
    answers.iter().filter(|answer| **answer == Some(Some(false))).count()
}
