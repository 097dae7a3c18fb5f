//! Fencing numbers rise in the order of the holders with the rules of the protocol, and do not with simpler rules.

use redlock_model::fencing::{Fencing, Variant};
use redlock_model::recorded::{Row, Table};
use redlock_model::runs;

#[test]
fn numbers_rise_in_the_order_of_the_holders() {
    let mut rows = Vec::new();
    for (name, model) in runs::fencing().into_iter().filter(|(name, _)| !Table::Fencing.is_left_out(name)) {
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
    let is_concerned =
        |(name, model): &(&str, Fencing)| !model.learns && model.poisons == 0 && !Table::Fencing.is_left_out(name);
    for (name, model) in runs::fencing().into_iter().filter(is_concerned) {
        let outcome = runs::search_in_test(&Fencing { variant: Variant::ProposesAgain, ..model });
        assert!(outcome.is_safe(), "{name}: {outcome}");
    }
}

#[test]
fn every_rule_of_numbers_is_needed() {
    for (rule, model, symptom) in runs::fencing_without_a_rule() {
        assert_is_refuted(&Fencing { variant: Variant::Without(rule), ..model }, symptom);
    }
}

#[test]
fn simpler_fencing_protocols_are_refuted() {
    for (model, symptom) in runs::simpler_fencing() {
        assert_is_refuted(&model, symptom);
    }
}

/// The first test searches the same scenarios with the rules of the protocol.
fn assert_is_refuted(model: &Fencing, symptom: &str) {
    let outcome = runs::search_in_test(model);
    println!("{:?}: {outcome}", model.variant);
    let is_refuted = outcome.violation.as_ref().is_some_and(|violation| violation.what.contains(symptom));
    assert!(is_refuted, "{:?}: {outcome}", model.variant);
}

/// Otherwise, the tests above could blame a rule for a violation that its scenario always has.
#[test]
fn scenarios_without_a_rule_are_searched_with_every_rule() {
    let searched = runs::fencing();
    let refuted = runs::fencing_without_a_rule().into_iter().map(|(_, model, _)| model);
    let simpler = runs::simpler_fencing().into_iter().map(|(model, _)| model);
    for model in refuted.chain(simpler) {
        let protocol = Fencing { variant: Variant::Protocol, ..model };
        assert!(searched.iter().any(|(_, model)| *model == protocol), "{model:?}");
    }
}
