//! Permits: the holders never exceed the number of permits, and each rule is needed for that.

use redlock_model::runs;

#[test]
fn permit_holders_never_exceed_the_number_of_permits() {
    for (name, model) in runs::permits() {
        let outcome = runs::search_in_test(&model);
        println!("{name}: {outcome}");
        assert!(outcome.is_safe(), "{name}: {outcome}");
    }
}

#[test]
fn every_rule_of_permits_is_needed() {
    for (name, model) in runs::permits_without_a_rule() {
        let outcome = runs::search_in_test(&model);
        println!("{name}: {:?}: {outcome}", model.variant);
        assert!(outcome.violation.is_some(), "{:?} is not needed: {outcome}", model.variant);
    }
}
