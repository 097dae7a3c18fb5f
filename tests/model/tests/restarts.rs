//! Servers that may have forgotten a lock: no second client holds it, a cold start does not wait, and each rule is needed for that.

use redlock_model::recorded::{Row, Table};
use redlock_model::restarts::Restarts;
use redlock_model::runs;

#[test]
fn restarted_servers_allow_no_second_holder_and_cold_starts_do_not_wait() {
    let mut rows = Vec::new();
    for (name, model) in runs::restarts().into_iter().filter(|(name, _)| !Table::Restarts.is_left_out(name)) {
        let outcome = runs::search_in_test(&model);
        println!("{name}: {outcome}");
        assert!(outcome.is_safe(), "{name}: {outcome}");
        rows.push(Row::new(name, &outcome));
    }
    let is_up_to_date = Table::Restarts.check_up_to_date(&rows).expect("the table is written");
    assert!(is_up_to_date, "states/restarts.tsv says something else than {rows:#?}: run this with UPDATE_EXPECT=1");
}

/// Otherwise, the test below could blame a rule for a violation that its scenario always has.
#[test]
fn with_every_rule_the_same_restarts_are_safe() {
    for (rule, model, _) in runs::restarts_without_a_rule() {
        let outcome = runs::search_in_test(&model);
        assert!(outcome.is_safe(), "{rule:?} on: {outcome}");
    }
}

#[test]
fn every_rule_of_restarts_is_needed() {
    for (rule, model, symptom) in runs::restarts_without_a_rule() {
        let outcome = runs::search_in_test(&Restarts { without: Some(rule), ..model });
        let violation = outcome.violation.unwrap_or_else(|| panic!("{rule:?} is not needed"));
        assert!(violation.what.contains(symptom), "{rule:?}: {}\n{}", violation.what, violation.trace);
        println!("without {rule:?}: {}\n{}", violation.what, violation.trace);
    }
}
