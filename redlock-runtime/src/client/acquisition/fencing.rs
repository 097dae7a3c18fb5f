//! The fencing number of a lock that is held; the steps are in `protocol/candidate/fencing`.

use super::Acquisition;
use super::state::State;
use crate::error::LockError;
use crate::protocol::candidate::{FencingDecision, NotIssued};
use crate::protocol::fencing_token::FencingToken;
use std::future::poll_fn;
use std::sync::atomic::Ordering;
use std::task::Poll;

/// Why a lock that is held has no number.
#[derive(Debug)]
pub(crate) enum Unnumbered {
    /// Others have drawn in between, or the lease has run out. Another token, which draws above this, may have more luck.
    Overtaken { above: u64 },
    /// Too few nodes gave a number.
    Failed(LockError),
}

impl Acquisition {
    /// The fencing token of the call that has the lock now: the next one of the number that the token has already, or the
    /// first one of a new number.
    ///
    /// # Errors
    /// [`Unnumbered`]; the lock is to be given back then.
    ///
    /// # Cancel safety
    /// Numbers that are drawn and not used leave gaps.
    pub(crate) async fn numbered(&self) -> Result<FencingToken, Unnumbered> {
        if let Some(token) = self.state().candidate.next_token() {
            return Ok(token);
        }
        let _alone = self.alone().await;
        let mut decision = self.state().candidate.fencing_decision();
        if decision == FencingDecision::Missing {
            decision = self.fencing_round().await;
        }
        let mut raised_to = 0;
        // Each time to more: a node that was not heard of before may be further ahead.
        while let FencingDecision::Differ { highest } = decision
            && highest > raised_to
        {
            raised_to = highest;
            decision = self.raised(highest).await;
        }
        self.issue(decision)
    }

    /// A round that raises the counters to `to`.
    async fn raised(&self, to: u64) -> FencingDecision {
        self.state().candidate.raise(to);
        match self.fencing_round().await {
            // Nodes that answer and refuse have given this number, or a larger one, to somebody else.
            FencingDecision::Missing if self.is_heard() => FencingDecision::Differ { highest: to },
            decision => decision,
        }
    }

    /// Asks every node at once, and waits until a quorum has given a number or cannot any more.
    async fn fencing_round(&self) -> FencingDecision {
        let now = self.now();
        {
            let mut state = self.state();
            state.take_in(self.shared.clock);
            let (candidate, mut sender) = state.parts(&self.shared, &self.subject, now);
            candidate.begin_fencing_round(now, |out| sender.send(out));
        }
        let answers = poll_fn(|cx| {
            let mut state = self.state();
            state.poll(cx, self.shared.clock);
            match state.candidate.fencing_decision() {
                FencingDecision::Missing if state.candidate.is_awaited() => Poll::Pending,
                decision => Poll::Ready(decision),
            }
        });
        let decided = tokio::time::timeout(self.node_timeout(), answers).await;
        decided.unwrap_or_else(|_| self.state().candidate.fencing_decision())
    }

    /// The first token of what was decided.
    fn issue(&self, decision: FencingDecision) -> Result<FencingToken, Unnumbered> {
        let mut state = self.state();
        match state.candidate.issue(decision, self.now()) {
            Ok(token) => {
                self.learn_numbers(&state);
                Ok(token)
            }
            Err(NotIssued::Overtaken { above }) => Err(Unnumbered::Overtaken { above }),
            Err(NotIssued::Missing) => Err(Unnumbered::Failed(self.no_number(&state))),
        }
    }

    /// Takes note of what the nodes have given, for the next number of this process.
    pub(super) fn learn_numbers(&self, state: &State) {
        if let Some(number) = state.candidate.largest_number() {
            self.shared.largest_number.fetch_max(number, Ordering::Relaxed);
        }
    }

    /// The error when too few nodes gave a number.
    fn no_number(&self, state: &State) -> LockError {
        let reasons = state.candidate.unnumbered_reasons(self.now());
        self.shared.no_quorum(Some(self.key()), self.failures(reasons))
    }
}
