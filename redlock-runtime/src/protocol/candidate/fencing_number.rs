//! Fencing rounds: what the numbers that nodes give in one round mean, and the tokens that follow from one number.
//!
//! 1. Commands about the token that are sent together are of one *round*, and a node's number is that of the round in which
//!    it was asked.
//! 2. A number counts when a quorum has given exactly this one in one round. It is unique then, because a counter changes
//!    hands only upwards, and larger than all that were agreed on before the round began. The largest of several numbers
//!    would not do: two tokens can have the same one.
//! 3. When a quorum has given different numbers, the lower counters are raised to the highest in another round, and once
//!    more if a node that was not heard of before is further ahead.
//! 4. From one number follow 65 536 tokens, one for each call that the lock is passed on to within the process.

use crate::protocol::command::Fence;
use crate::protocol::fencing_token::FencingToken;
use crate::protocol::rules::{Rule, Rules};

/// The number that a node has given, and the round in which it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Drawn {
    pub(crate) round: u64,
    pub(crate) number: u64,
}

/// What the numbers of the nodes mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FencingDecision {
    /// In no round have enough nodes given one.
    Missing,
    /// A quorum has given this one.
    Agreed(u64),
    /// A quorum has given different ones.
    Differ { highest: u64 },
}

/// Looks at the latest round in which at least `quorum` nodes have `given` a number: those of an earlier round may have
/// been overtaken by another owner, whatever this token is told later.
fn decide(given: &[Drawn], quorum: usize) -> FencingDecision {
    let in_round = |round| given.iter().filter(move |drawn| drawn.round == round).map(|drawn| drawn.number);
    let rounds = given.iter().map(|drawn| drawn.round).filter(|round| in_round(*round).count() >= quorum);
    let Some(round) = rounds.max() else { return FencingDecision::Missing };
    let is_agreed = |number: &u64| in_round(round).filter(|other| other == number).count() >= quorum;
    match in_round(round).find(is_agreed) {
        Some(number) => FencingDecision::Agreed(number),
        None => FencingDecision::Differ { highest: in_round(round).max().unwrap_or_default() },
    }
}

/// How far one token is with its number.
#[derive(Clone, Debug)]
pub(crate) struct FencingNumber {
    stage: Stage,
    /// Commands that were sent together are of one round.
    round: u64,
    /// What was given in rounds before this one do not count.
    counts_from: u64,
    rules: Rules,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The call that acts for the token is not fenced.
    Unwanted,
    /// The nodes are asked for the next one, above this.
    Drawing { above: u64 },
    /// The nodes are asked to raise theirs.
    Raising { to: u64 },
    /// The nodes have agreed, and the call that comes next is number `next` of those that have the lock with it.
    Drawn { number: u64, next: u32 },
}

impl FencingNumber {
    pub(crate) const fn new(rules: Rules) -> Self {
        Self { stage: Stage::Unwanted, round: 0, counts_from: 0, rules }
    }

    /// Another call acts for the token. A fenced one draws a number above `known`, an unfenced one draws none; one that
    /// the nodes have agreed on stays.
    pub(crate) fn want(&mut self, is_fenced: bool, known: u64) {
        self.start_anew();
        self.stage = match self.stage {
            Stage::Drawn { .. } => return,
            _ if !is_fenced => Stage::Unwanted,
            Stage::Unwanted => Stage::Drawing { above: known },
            // What was to be agreed on then is not what counts now; what follows is above it.
            Stage::Drawing { above: so_far } | Stage::Raising { to: so_far } => {
                Stage::Drawing { above: so_far.max(known) }
            }
        };
    }

    pub(crate) const fn raise(&mut self, to: u64) {
        self.start_anew();
        self.stage = Stage::Raising { to };
    }

    /// The nodes have agreed.
    pub(crate) const fn agreed(&mut self, number: u64) {
        self.stage = Stage::Drawn { number, next: 0 };
    }

    /// Whether the nodes are being asked for a number.
    pub(crate) const fn is_drawing(&self) -> bool {
        matches!(self.stage, Stage::Drawing { .. } | Stage::Raising { .. })
    }

    /// What to ask of a node together with the lock.
    pub(crate) const fn fence(&self) -> Option<Fence> {
        match self.stage {
            Stage::Unwanted => None,
            Stage::Drawing { above } => Some(Fence::Draw { above }),
            Stage::Raising { to } => Some(Fence::Raise { to }),
            // A node that comes late gives the same number, so that the next owner finds all of them alike.
            Stage::Drawn { number, .. } => Some(Fence::Draw { above: number.saturating_sub(1) }),
        }
    }

    /// The token of the call that has the lock now; `None` before the nodes have agreed, and when one number has served
    /// as many calls as it can.
    pub(crate) fn next_token(&mut self) -> Option<FencingToken> {
        let Stage::Drawn { number, next } = &mut self.stage else { return None };
        let sequence = u16::try_from(*next).ok()?;
        *next += 1;
        Some(FencingToken::new(*number, sequence))
    }

    /// Whether the next call in this process may go on with the token, as far as numbers go.
    pub(crate) fn may_pass(&self, is_fenced: bool) -> bool {
        match self.stage {
            Stage::Drawn { next, .. } => !is_fenced || u16::try_from(next).is_ok(),
            _ => true,
        }
    }

    /// From here on, only numbers count that are asked for later.
    pub(crate) const fn start_anew(&mut self) {
        self.counts_from = self.round + 1;
    }

    /// What the numbers that nodes have `given` mean.
    pub(crate) fn decide(&self, given: impl Iterator<Item = Drawn>, quorum: usize) -> FencingDecision {
        let given: Vec<_> = given.filter(|drawn| self.counts(*drawn)).collect();
        match decide(&given, quorum) {
            FencingDecision::Differ { highest } if !self.rules.apply(Rule::NumbersAreAgreedOn) => {
                FencingDecision::Agreed(highest)
            }
            decision => decision,
        }
    }

    pub(crate) const fn counts(&self, drawn: Drawn) -> bool {
        drawn.round >= self.counts_from
    }

    /// From here on, what is sent is of another round.
    pub(crate) const fn begin_round(&mut self) {
        self.round += 1;
    }

    pub(crate) const fn round(&self) -> u64 {
        self.round
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FencingDecision::{Agreed, Differ, Missing};

    #[test]
    fn a_quorum_must_give_the_same_number_in_one_round() {
        type Given<'a> = &'a [(u64, u64)];
        // (round, number) of each node that has given one; the quorum.
        let table: [(Given<'_>, usize, FencingDecision); 16] = [
            (&[], 1, Missing),
            (&[(1, 5)], 1, Agreed(5)),
            (&[(1, 5)], 2, Missing),
            (&[(1, 5), (1, 5)], 2, Agreed(5)),
            (&[(1, 5), (1, 6)], 2, Differ { highest: 6 }),
            (&[(1, 5), (1, 9), (1, 5)], 2, Agreed(5)),
            (&[(1, 9), (1, 5), (1, 9)], 2, Agreed(9)),
            (&[(1, 4), (1, 5), (1, 6)], 2, Differ { highest: 6 }),
            (&[(1, 5), (2, 5)], 2, Missing),
            (&[(1, 5), (2, 5), (2, 6)], 2, Differ { highest: 6 }),
            (&[(1, 5), (1, 5), (2, 5)], 2, Agreed(5)),
            (&[(1, 5), (1, 5), (2, 6), (2, 7)], 2, Differ { highest: 7 }),
            (&[(1, 5), (1, 5), (1, 6), (1, 6)], 3, Differ { highest: 6 }),
            (&[(1, 5), (1, 5), (1, 6), (1, 6), (1, 6)], 3, Agreed(6)),
            (&[(1, 5), (1, 5), (1, 6), (1, 6), (1, 7)], 3, Differ { highest: 7 }),
            (&[(1, 5), (1, 5), (1, 5), (2, 5), (2, 5)], 4, Missing),
        ];
        for (given, quorum, expected) in table {
            let drawn: Vec<_> = given.iter().map(|&(round, number)| Drawn { round, number }).collect();
            assert_eq!(decide(&drawn, quorum), expected, "{given:?}, {quorum} needed");
        }
    }

    #[test]
    fn what_was_asked_for_before_does_not_count() {
        let mut rounds = FencingNumber::new(Rules::default());
        let given = |round, number| [Drawn { round, number }].into_iter();
        rounds.want(true, 0);
        assert_eq!(rounds.decide(given(0, 5), 1), Missing);
        rounds.begin_round();
        assert_eq!(rounds.decide(given(rounds.round(), 5), 1), Agreed(5));
        rounds.raise(5);
        assert_eq!(rounds.decide(given(rounds.round(), 5), 1), Missing);
    }

    #[test]
    fn one_number_serves_many_calls_and_not_more_than_it_can() {
        let mut rounds = FencingNumber::new(Rules::default());
        assert_eq!((rounds.next_token(), rounds.may_pass(true)), (None, true));
        rounds.agreed(7);
        let tokens: Vec<_> = std::iter::from_fn(|| rounds.next_token()).collect();
        assert!(tokens.is_sorted_by(|a, b| a < b));
        let ends = (tokens.first().copied(), tokens.last().copied());
        assert_eq!(ends, (Some(FencingToken::new(7, 0)), Some(FencingToken::new(7, u16::MAX))));
        assert_eq!((rounds.may_pass(true), rounds.may_pass(false)), (false, true));
    }

    #[test]
    fn what_is_asked_of_the_nodes_at_each_stage() {
        let mut rounds = FencingNumber::new(Rules::default());
        assert_eq!(rounds.fence(), None);
        rounds.want(true, 3);
        assert_eq!(rounds.fence(), Some(Fence::Draw { above: 3 }));
        rounds.raise(7);
        assert_eq!(rounds.fence(), Some(Fence::Raise { to: 7 }));
        rounds.want(true, 3);
        assert_eq!(rounds.fence(), Some(Fence::Draw { above: 7 }), "another call starts anew");
        rounds.want(false, 3);
        assert_eq!((rounds.fence(), rounds.is_drawing()), (None, false));
        rounds.agreed(9);
        rounds.want(false, 20);
        rounds.want(true, 20);
        assert_eq!(rounds.fence(), Some(Fence::Draw { above: 8 }), "what was agreed on stays");
        assert_eq!(rounds.next_token(), Some(FencingToken::new(9, 0)));
    }
}
