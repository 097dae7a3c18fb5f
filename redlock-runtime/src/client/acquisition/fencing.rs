//! Fencing number of a held lock; `protocol/candidate/fencing` describes the steps.

use super::Acquisition;
use super::state::State;
use crate::client::timers::{sleep, timeout};
use crate::error::LockError;
use crate::protocol::candidate::{FencingDecision, NotIssued};
use crate::protocol::fencing_token::FencingToken;
use crate::time::wait_until::wait_until;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// Longest pause before a round, for each earlier refused round. Smaller: calls that share a register refuse each other
/// more often. Larger: a number takes longer.
const LONGEST_REST: Duration = Duration::from_millis(1);

/// Most rounds after one in which nodes accepted ballots of different rounds. A node whose answers always come after the round that they
/// belong to would otherwise keep the call going forever.
const MOST_SPLIT_ROUNDS: u32 = 3;

/// Reason that a held lock has no number.
#[derive(Debug)]
pub(crate) enum Unnumbered {
    /// The lease has ended first. Another token may get a number.
    Again,
    /// Too few nodes have accepted a number.
    Failed(LockError),
}

impl Acquisition {
    /// Returns the fencing token of the present call: the next token of an existing number, or the first token of a new
    /// number.
    ///
    /// # Errors
    /// [`Unnumbered`]; the lock must then be released.
    ///
    /// # Cancel safety
    /// Numbers that are proposed and not used leave gaps.
    pub(crate) async fn numbered(&self) -> Result<FencingToken, Unnumbered> {
        if let Some(token) = self.state().candidate.next_token() {
            return Ok(token);
        }
        let _alone = self.alone().await;
        let mut decision = self.state().candidate.fencing_decision(self.now());
        if decision == FencingDecision::Missing {
            decision = self.fencing_round().await;
        }
        let (mut refused, mut split) = (0, 0);
        while self.count_round_and_may_repeat(decision, &mut refused, &mut split) {
            // Each refusal contains the number that the next ballot must exceed. A repeated refusal means that other calls share the
            // register. Without a random pause, they would refuse each other forever.
            if refused > 1 {
                sleep(self.node_timeout().min((refused - 1) * LONGEST_REST).mul_f64(fastrand::f64())).await;
            }
            decision = self.fencing_round().await;
        }
        self.issue(decision)
    }

    /// Returns `true` if a further round may end in another `decision`. Counts the rounds that were refused and split so far.
    fn count_round_and_may_repeat(&self, decision: FencingDecision, refused: &mut u32, split: &mut u32) -> bool {
        match decision {
            FencingDecision::Refused => *refused += 1,
            FencingDecision::Split if *split < MOST_SPLIT_ROUNDS => *split += 1,
            _ => return false,
        }
        self.is_in_reach() && self.is_useful() && !self.shared.is_closed()
    }

    /// Proposes another ballot to every node, and waits until a quorum has accepted it or no longer can.
    ///
    /// A shutdown of the manager ends the wait: a node that does not answer would delay it by up to a second.
    async fn fencing_round(&self) -> FencingDecision {
        let now = self.now();
        {
            let mut state = self.state();
            state.take_in(self.shared.clock);
            let (candidate, mut sender) = state.parts(&self.shared, &self.subject, now);
            candidate.begin_fencing_round(now, |out| sender.send(out));
        }
        let mut closed = pin!(wait_until(&self.shared.changed, || self.shared.is_closed()));
        let answers = poll_fn(|cx| {
            let is_closed = closed.as_mut().poll(cx).is_ready();
            let mut state = self.state();
            state.poll(cx, self.shared.clock);
            match state.candidate.fencing_decision(self.now()) {
                decision @ FencingDecision::Agreed(_) => Poll::Ready(decision),
                _ if state.candidate.may_agree() && !is_closed => Poll::Pending,
                decision => Poll::Ready(decision),
            }
        });
        let decided = timeout(self.patience(), answers).await;
        decided.unwrap_or_else(|_| self.state().candidate.fencing_decision(self.now()))
    }

    /// Returns `true` if there may be a ballot that a quorum has not refused yet.
    fn is_in_reach(&self) -> bool {
        let (slots, ballots) = (self.subject.numbered_slots(), &self.shared.servers.ballots);
        self.state().candidate.can_accept_larger_ballot(|largest| ballots.is_in_reach(&slots, largest))
    }

    /// Returns the first token of the decision.
    fn issue(&self, decision: FencingDecision) -> Result<FencingToken, Unnumbered> {
        let mut state = self.state();
        // If a reply has already arrived, its node need not be sent the number again.
        state.take_in(self.shared.clock);
        match state.candidate.issue(decision, self.now()) {
            Ok(token) => {
                if let FencingDecision::Agreed(number) = decision {
                    let lacking = state.candidate.lacking(number);
                    self.shared.number_agreed(&self.subject.numbered_slots(), number, lacking);
                }
                Ok(token)
            }
            Err(NotIssued::TooLate) => Err(Unnumbered::Again),
            Err(NotIssued::Missing) => Err(Unnumbered::Failed(self.no_number(&state))),
        }
    }

    /// Returns the error for the case that too few nodes have accepted a number.
    fn no_number(&self, state: &State) -> LockError {
        let reasons = state.candidate.unnumbered_reasons(self.now());
        self.shared.no_quorum(Some(self.key()), self.failures(reasons))
    }
}
