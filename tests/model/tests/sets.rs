//! Several names: two conflicting tokens never hold them at once, and each waiter is served.

use redlock_model::recorded::{Row, Table};
use redlock_model::runs;
use redlock_model::sets::Sets;

#[test]
fn keys_are_held_exclusively_and_every_waiter_is_served() {
    let mut rows = Vec::new();
    for (name, model) in runs::sets().into_iter().filter(|(name, _)| !Table::Sets.is_left_out(name)) {
        let outcome = runs::search_in_test(&model);
        println!("{name}: {outcome}");
        assert!(outcome.is_safe(), "{name}: {outcome}");
        rows.push(Row::new(name, &outcome));
    }
    let is_up_to_date = Table::Sets.check_up_to_date(&rows).expect("the table is written");
    assert!(is_up_to_date, "states/sets.tsv says something else than {rows:#?}: run this with UPDATE_EXPECT=1");
}

/// Otherwise, the test below could blame a rule for a violation that its requests always cause.
#[test]
fn with_every_rule_the_same_requests_are_safe() {
    for (rule, model, _) in runs::sets_without_a_rule() {
        let outcome = runs::search_in_test(&model);
        assert!(outcome.is_safe(), "{rule:?} on: {outcome}");
    }
}

#[test]
fn every_rule_of_several_keys_is_needed() {
    for (rule, model, symptom) in runs::sets_without_a_rule() {
        let outcome = runs::search_in_test(&Sets { without: Some(rule), ..model });
        let violation = outcome.violation.unwrap_or_else(|| panic!("{rule:?} is not needed"));
        assert!(violation.what.contains(symptom), "{rule:?}: {}\n{}", violation.what, violation.trace);
        println!("without {rule:?}: {}", violation.what);
    }
}
