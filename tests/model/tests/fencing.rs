//! Fencing numbers: unique and increasing as the protocol draws them, and not in simpler ways.

use redlock_model::fencing::Variant;
use redlock_model::{Rule, runs};

#[test]
fn numbers_are_unique_and_increase_in_real_time() {
    for model in [runs::fencing(Variant::Protocol), runs::fencing_raised_twice()] {
        let outcome = runs::search_in_test(&model);
        println!("{outcome}");
        assert!(outcome.is_safe(), "{outcome}");
    }
}

fn assert_refuted(variant: Variant) {
    let outcome = runs::search_in_test(&runs::fencing(variant));
    println!("{variant:?}: {outcome}");
    assert!(outcome.violation.is_some(), "{variant:?} was not refuted: {outcome}");
}

#[test]
fn the_largest_number_of_a_quorum_is_refuted() {
    assert_refuted(Variant::Without(Rule::NumbersAreAgreedOn));
}

#[test]
fn the_maximum_of_incr_is_refuted() {
    assert_refuted(Variant::MaximumOfIncr);
}

#[test]
fn a_number_from_the_push_is_refuted() {
    assert_refuted(Variant::NumberFromPush);
}

#[test]
fn a_node_wide_maximum_that_ignores_raises_is_refuted() {
    assert_refuted(Variant::RaisesLeaveMaximum);
}

#[test]
fn answers_of_an_earlier_round_are_refuted() {
    assert_refuted(Variant::EarlierRoundCounts);
}
