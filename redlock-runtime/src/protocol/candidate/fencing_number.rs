//! Fencing numbers: the meaning of the nodes' replies to ballots, and the tokens that belong to one number.
//!
//! 1. A number counts if a quorum has accepted exactly this ballot. It is then larger than all numbers that were issued
//!    before it was proposed. No other token can have it: another quorum shares a node, which accepts only larger
//!    ballots.
//! 2. A node's acceptance counts together with its vote, and ends with it. A node that gave the lock away in between
//!    may have seen another holder with a larger number.
//! 3. If nodes refuse, or have accepted ballots of different rounds, another ballot is proposed that is larger than their
//!    reported numbers.
//! 4. One number provides 16 384 tokens: one for each local call that the lock is passed to.
//!
//! Source: ballots are those of Lamport, "The Part-Time Parliament", 1998; the nodes decide only about their order.

use crate::protocol::command::Number;
use crate::protocol::fencing_token::FencingToken;
use crate::protocol::rules::{Rule, Rules};

/// Ballot to propose together with a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fence {
    /// New ballot, drawn for all commands that are sent together.
    New,
    /// Number of the token, for a node that joins late.
    Known(u64),
}

/// Meaning of the nodes' replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FencingDecision {
    /// Too few nodes have replied about the same number.
    Missing,
    /// A quorum has accepted this number.
    Agreed(u64),
    /// Some nodes have refused. All may accept a larger ballot.
    Refused,
    /// A quorum has accepted ballots of different rounds: answers to an earlier round came late. All may accept the next one.
    Split,
}

/// Decides from the replies of the nodes that hold the lock for the token.
fn decide(said: &[Number], quorum: usize, rules: Rules) -> FencingDecision {
    let accepted =
        || said.iter().filter_map(|number| if let Number::Accepted(ballot) = number { Some(*ballot) } else { None });
    let is_agreed = |ballot: &u64| accepted().filter(|other| other == ballot).count() >= quorum;
    if let Some(ballot) = accepted().find(is_agreed) {
        return FencingDecision::Agreed(ballot);
    }
    let largest = |said: &Number| match said {
        Number::Accepted(ballot) => *ballot,
        Number::Refused { largest } => *largest,
    };
    if !rules.apply(Rule::AcceptsAreOfOneRound) && accepted().count() >= quorum
        || !rules.apply(Rule::RefusedIsNotIssued) && said.len() >= quorum
    {
        return said.iter().map(largest).max().map_or(FencingDecision::Missing, FencingDecision::Agreed);
    }
    if said.len() < quorum {
        return FencingDecision::Missing;
    }
    let is_refused = said.iter().any(|number| matches!(number, Number::Refused { .. }));
    if is_refused { FencingDecision::Refused } else { FencingDecision::Split }
}

/// Progress of one token with its number.
#[derive(Clone, Debug)]
pub(crate) struct FencingNumber {
    stage: Stage,
    rules: Rules,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The acting call is not fenced.
    Unwanted,
    Wanted,
    /// The nodes have agreed on `number`. The next fenced call under it gets the sequence `next`. `is_fenced` is
    /// `false` if the acting call has none of its tokens.
    Issued {
        number: u64,
        next: u32,
        is_fenced: bool,
    },
}

impl FencingNumber {
    pub(crate) const fn new(rules: Rules) -> Self {
        Self { stage: Stage::Unwanted, rules }
    }

    /// Sets if the next acting call is fenced. An agreed number stays.
    pub(crate) const fn want(&mut self, is_fenced: bool) {
        match &mut self.stage {
            Stage::Issued { is_fenced: is_present_fenced, .. } => *is_present_fenced = is_fenced,
            stage => *stage = if is_fenced { Stage::Wanted } else { Stage::Unwanted },
        }
    }

    /// Records that the nodes have agreed.
    pub(crate) const fn agreed(&mut self, number: u64) {
        self.stage = Stage::Issued { number, next: 0, is_fenced: true };
    }

    /// Returns `true` if the nodes still have to agree on a number.
    pub(crate) const fn is_wanted(&self) -> bool {
        matches!(self.stage, Stage::Wanted)
    }

    /// Returns the ballot to propose to a node together with the lock.
    pub(crate) const fn fence(&self) -> Option<Fence> {
        match self.stage {
            Stage::Unwanted => None,
            Stage::Wanted => Some(Fence::New),
            Stage::Issued { number, .. } => Some(Fence::Known(number)),
        }
    }

    /// Returns the fencing token of the present call. Returns `None` before the nodes have agreed, and after one number
    /// has served as many calls as it can.
    pub(crate) fn next_token(&mut self) -> Option<FencingToken> {
        let Stage::Issued { number, next, .. } = &mut self.stage else { return None };
        let token = FencingToken::for_call(*number, *next)?;
        *next += 1;
        Some(token)
    }

    /// Returns the fencing token that the acting call has, if it is fenced.
    pub(crate) fn present_token(&self) -> Option<FencingToken> {
        let Stage::Issued { number, next, is_fenced: true } = self.stage else { return None };
        FencingToken::for_call(number, next.checked_sub(1)?)
    }

    /// Returns `true` if the number allows the next call of this process to continue with the token.
    pub(crate) fn may_pass(&self, is_fenced: bool) -> bool {
        match self.stage {
            Stage::Issued { number, next, .. } => !is_fenced || FencingToken::for_call(number, next).is_some(),
            Stage::Unwanted | Stage::Wanted => true,
        }
    }

    /// Decides from the replies `said` of the nodes that hold the lock for the token.
    pub(crate) fn decide(&self, said: impl Iterator<Item = Number>, quorum: usize) -> FencingDecision {
        decide(&said.collect::<Vec<_>>(), quorum, self.rules)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FencingDecision::{Agreed, Missing, Refused, Split};

    const TOKENS: u32 = 16_384;

    #[test]
    fn quorum_must_accept_the_same_ballot() {
        // Negative: refused because of this accepted number.
        let table: [(&[i64], usize, FencingDecision); 11] = [
            (&[], 1, Missing),
            (&[5], 1, Agreed(5)),
            (&[-5], 1, Refused),
            (&[5], 2, Missing),
            (&[5, 5], 2, Agreed(5)),
            (&[5, 6], 2, Split),
            (&[5, -9], 2, Refused),
            (&[5, 9, 5], 2, Agreed(5)),
            (&[-9, 9, 9], 2, Agreed(9)),
            (&[5, 5, 6, 6], 3, Split),
            (&[5, 5, 6, 6, 6], 3, Agreed(6)),
        ];
        for (said, quorum, expected) in table {
            let number = |said: &i64| match said {
                1.. => Number::Accepted(said.unsigned_abs()),
                _ => Number::Refused { largest: said.unsigned_abs() },
            };
            let numbers: Vec<_> = said.iter().map(number).collect();
            assert_eq!(decide(&numbers, quorum, Rules::default()), expected, "{said:?}, {quorum} needed");
        }
    }

    #[test]
    fn one_fencing_number_serves_a_limited_number_of_calls() {
        let mut number = FencingNumber::new(Rules::default());
        assert_eq!((number.next_token(), number.may_pass(true)), (None, true));
        number.agreed(7);
        let tokens: Vec<_> = std::iter::from_fn(|| number.next_token()).collect();
        assert!(tokens.is_sorted_by(|a, b| a < b));
        let ends = (tokens.first().copied(), tokens.last().copied());
        assert_eq!(ends, (Some(FencingToken::first(7)), FencingToken::for_call(7, TOKENS - 1)));
        assert_eq!(tokens.len(), TOKENS as usize);
        assert_eq!((number.may_pass(true), number.may_pass(false)), (false, true));
    }

    #[test]
    fn present_fencing_token_is_the_last_issued_one() {
        let mut number = FencingNumber::new(Rules::default());
        number.want(true);
        assert_eq!(number.present_token(), None);
        number.agreed(7);
        for _ in 0..TOKENS {
            let given = number.next_token();
            assert!(given.is_some() && number.present_token() == given);
        }
        number.want(false);
        assert_eq!(number.present_token(), None, "that of a call before");
    }

    #[test]
    fn fence_is_new_until_a_number_is_agreed_and_known_afterwards() {
        let mut number = FencingNumber::new(Rules::default());
        assert_eq!(number.fence(), None);
        number.want(true);
        assert_eq!((number.fence(), number.is_wanted()), (Some(Fence::New), true));
        number.want(false);
        assert_eq!((number.fence(), number.is_wanted()), (None, false));
        number.agreed(9);
        number.want(false);
        number.want(true);
        assert_eq!(number.fence(), Some(Fence::Known(9)), "what was agreed on stays");
        assert_eq!(number.next_token(), Some(FencingToken::first(9)));
    }
}
