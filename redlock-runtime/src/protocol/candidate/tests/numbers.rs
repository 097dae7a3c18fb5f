//! Tests that an acceptance of a node counts only with its vote.

use super::*;
use crate::protocol::candidate::FencingDecision::{self, Agreed, Missing, Refused, Split};
use crate::protocol::command::Number;
use crate::protocol::rules::Rule;
use std::sync::Arc;

const FIVE: Option<Number> = Some(Number::Accepted(5));
const SIX: Option<Number> = Some(Number::Accepted(6));
const NINE: Option<Number> = Some(Number::Refused { largest: 9 });

const fn granted(number: Option<Number>) -> Reply {
    Reply::Granted { smaller: false, number }
}

const fn extended(number: Option<Number>) -> Reply {
    Reply::Extended { waiters: 0, number }
}

impl Scene {
    fn decision(&self) -> FencingDecision {
        self.candidate.fencing_decision(self.now)
    }
}

/// Creates a token whose ballot two of three nodes have accepted.
fn numbered() -> Scene {
    numbered_by(Rules { without: None })
}

fn numbered_by(rules: Rules) -> Scene {
    let mut scene = Scene::waiting(3);
    Arc::make_mut(&mut scene.candidate.terms).rules = rules;
    scene.candidate.voters.iter_mut().for_each(|voter| voter.rules = rules);
    (0..2).for_each(|node| scene.hear(node, ACQUIRE, granted(FIVE)));
    assert_eq!(scene.decision(), Agreed(5));
    scene
}

#[test]
fn accepted_ballot_counts_while_its_lease_is_renewed() {
    let mut scene = numbered();
    scene.advance(TTL / 2);
    scene.hear(0, EXTEND, extended(None));
    scene.hear(1, EXTEND, extended(NINE));
    scene.advance(TTL / 2);
    assert_eq!(scene.decision(), Agreed(5));
    scene.hear(0, EXTEND, extended(SIX));
    assert_eq!(scene.decision(), Split, "the first has accepted a larger one");
}

/// A node that was told an agreed number has it in its register. Only the node's own grant is an acceptance.
#[test]
fn told_number_is_not_an_acceptance() {
    let mut scene = Scene::waiting(3);
    scene.hear(0, ACQUIRE, granted(FIVE));
    scene.hear(1, ACQUIRE, granted(None));
    for node in 0..3 {
        scene.hear(node, Verb::Raise { number: 5 }, Reply::Raised);
    }
    assert_eq!(scene.decision(), Missing);
    assert!(scene.candidate.lacking(5).eq([1, 2]), "they still owe the number");
    assert_eq!(scene.vote(2), Vote::Open, "a register is no lock");
    assert_eq!(Reply::Raised.number(), None, "nothing is settled as a reply to a proposal");
    scene.hear(1, EXTEND, extended(FIVE));
    assert_eq!(scene.decision(), Agreed(5));
}

/// How a vote ends and returns without a reply about the number.
type Gap = (&'static str, fn(&mut Scene));

#[test]
fn accepted_ballot_ends_with_its_vote() {
    let gaps: [Gap; 5] = [
        ("it expires", |scene| {
            scene.advance(TTL);
            (0..3).for_each(|node| scene.hear(node, EXTEND, extended(None)));
        }),
        ("another has it", |scene| {
            scene.hear(0, EXTEND, Reply::NotOwner);
            scene.hear(0, ACQUIRE, granted(None));
        }),
        ("it is yielded", |scene| {
            scene.hear(0, YIELD, YIELDED);
            scene.hear(0, ACQUIRE, granted(None));
        }),
        ("it is handed over again", |scene| {
            scene.claim(0);
            scene.hear(0, EXTEND, extended(None));
        }),
        ("its connection is cut", |scene| {
            scene.candidate.connections([2, 1, 1].into_iter(), scene.now);
            scene.hear(0, ACQUIRE, granted(None));
        }),
    ];
    for (name, gap) in gaps {
        let mut scene = numbered();
        gap(&mut scene);
        assert_eq!((scene.is_won(), scene.decision()), (true, Missing), "{name}");
        let mut scene = numbered_by(Rules { without: Some(Rule::AcceptsEndWithTheVote) });
        gap(&mut scene);
        assert_eq!(scene.decision(), Agreed(5), "{name}: the rule is needed");
    }
}

#[test]
fn expired_lease_has_no_fencing_number() {
    let mut scene = numbered();
    scene.advance(TTL);
    assert_eq!(scene.decision(), Missing);
}

#[test]
fn fencing_round_waits_while_nodes_can_still_agree() {
    let mut scene = Scene::holding(3);
    let now = scene.now();
    scene.candidate.set_fencing_wanted(true);
    scene.candidate.begin_fencing_round(now, |_| {});
    scene.answer(0, Ok(extended(NINE)));
    assert!(scene.candidate.may_agree());
    scene.answer(1, Ok(extended(FIVE)));
    assert_eq!((scene.decision(), scene.candidate.may_agree()), (Refused, true), "by the last one");
    scene.answer(2, Ok(extended(NINE)));
    assert_eq!((scene.decision(), scene.candidate.may_agree()), (Refused, false));
}

#[test]
fn fencing_round_without_ballot_answers_is_not_refused() {
    let mut scene = Scene::holding(3);
    (0..3).for_each(|node| scene.hear(node, EXTEND, extended(NINE)));
    assert_eq!(scene.decision(), Refused);
    let now = scene.now();
    scene.candidate.begin_fencing_round(now, |_| {});
    (0..3).for_each(|node| scene.answer(node, Ok(extended(None))));
    assert_eq!(scene.decision(), Missing, "there are no larger ballots");
}

#[test]
fn larger_ballot_is_useless_if_a_quorum_is_out_of_reach() {
    let mut scene = Scene::holding(3);
    let mut has_a_chance = |node, largest| {
        scene.hear(node, EXTEND, extended(Some(Number::Refused { largest })));
        scene.candidate.can_accept_larger_ballot(|largest| largest < 100)
    };
    assert_eq!([(0, 100), (1, 99), (1, 100)].map(|(node, largest)| has_a_chance(node, largest)), [true, true, false]);
}

#[test]
fn fencing_round_with_too_few_answers_is_not_refused() {
    let mut scene = Scene::holding(3);
    (0..3).for_each(|node| scene.hear(node, EXTEND, extended(Some(Number::Accepted(4 + node as u64)))));
    let now = scene.now();
    scene.candidate.begin_fencing_round(now, |_| {});
    scene.answer(0, Ok(extended(NINE)));
    assert_eq!(scene.decision(), Missing);
}
