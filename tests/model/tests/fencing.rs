//! Fencing numbers: they rise in the order of the holders as the protocol makes them, and not in simpler ways.

use redlock_model::fencing::{Fencing, Variant};
use redlock_model::{Rule, runs};

#[test]
fn numbers_rise_in_the_order_of_the_holders() {
    for (name, model) in runs::fencing() {
        let outcome = runs::search_in_test(&model);
        println!("{name}: {outcome}");
        assert!(outcome.is_safe(), "{name}: {outcome}");
    }
}

/// So there is no rule that a round needs a ballot of its own.
#[test]
fn the_same_ballot_may_be_proposed_again() {
    let [(_, model), ..] = runs::fencing()[..] else { panic!("nothing to search") };
    let outcome = runs::search_in_test(&Fencing { variant: Variant::ProposesAgain, ..model });
    assert!(outcome.is_safe(), "{outcome}");
}

/// The shortest way to a wrong number, in any of the searches.
fn refute(variant: Variant) {
    for (name, model) in runs::fencing() {
        let outcome = runs::search_in_test(&Fencing { variant, ..model });
        println!("{variant:?}, {name}: {outcome}");
        if outcome.violation.is_some() {
            return;
        }
    }
    panic!("{variant:?} was not refuted");
}

#[test]
fn every_rule_of_numbers_is_needed() {
    let rules = [
        Rule::BallotsOnlyRise,
        Rule::AcceptsAreOfOneRound,
        Rule::RefusedIsNotIssued,
        Rule::AcceptsEndWithTheVote,
        Rule::WonVotesCarryTheNumber,
    ];
    rules.into_iter().for_each(|rule| refute(Variant::Without(rule)));
}

#[test]
fn simpler_ways_are_refuted() {
    [Variant::Overwrites, Variant::OneNodeIsEnough].into_iter().for_each(refute);
}
