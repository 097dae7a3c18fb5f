//! Fencing numbers rise in the order of the holders with the rules of the protocol, and do not with simpler rules.

use redlock_model::fencing::{Fencing, Variant};
use redlock_model::recorded::{Row, Table};
use redlock_model::{Rule, runs};

#[test]
fn numbers_rise_in_the_order_of_the_holders() {
    let mut rows = Vec::new();
    for (name, model) in runs::fencing() {
        let outcome = runs::search_in_test(&model);
        println!("{name}: {outcome}");
        assert!(outcome.is_safe(), "{name}: {outcome}");
        rows.push(Row::new(name, &outcome));
    }
    let is_up_to_date = Table::Fencing.check_up_to_date(&rows).expect("the table is written");
    assert!(is_up_to_date, "states/fencing.tsv says something else than {rows:#?}: run this with UPDATE_EXPECT=1");
}

/// So a round does not need a new ballot, as long as nodes keep their data. A node that has lost its data may accept a
/// ballot that is already the number of another token, and other nodes may have accepted the same ballot before. Therefore a client
/// repeats a ballot only within its first try.
#[test]
fn same_ballot_can_be_proposed_again() {
    for (name, model) in runs::fencing().into_iter().filter(|(_, model)| !model.learns) {
        let outcome = runs::search_in_test(&Fencing { variant: Variant::ProposesAgain, ..model });
        assert!(outcome.is_safe(), "{name}: {outcome}");
    }
}

/// Returns `true` if any of the searches finds a wrong number.
fn is_refuted(variant: Variant) -> bool {
    runs::fencing().into_iter().any(|(name, model)| {
        let outcome = runs::search_in_test(&Fencing { variant, ..model });
        println!("{variant:?}, {name}: {outcome}");
        outcome.violation.is_some()
    })
}

#[test]
fn every_rule_of_numbers_is_needed() {
    let rules = [
        Rule::BallotsOnlyRise,
        Rule::EveryRegisterAccepts,
        Rule::AcceptsAreOfOneRound,
        Rule::RefusedIsNotIssued,
        Rule::AcceptsEndWithTheVote,
        Rule::WonVotesCarryTheNumber,
        Rule::NodesLearnAgreedNumbers,
    ];
    for rule in rules {
        assert!(is_refuted(Variant::Without(rule)), "{rule:?} is not needed");
    }
}

#[test]
fn simpler_fencing_protocols_are_refuted() {
    assert!(is_refuted(Variant::Overwrites) && is_refuted(Variant::OneNodeIsEnough));
}
