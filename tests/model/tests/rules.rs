//! Each rule of the lock protocol is needed: without it, the same search finds a violation.

use redlock_model::runs;

#[test]
fn every_rule_is_needed() {
    for (rule, scenario, symptom) in runs::without_a_rule() {
        let outcome = runs::search_in_test(&scenario.clone().without(rule));
        let Some(violation) = outcome.violation else { panic!("nobody notices that {rule:?} is off: {outcome}") };
        println!("{rule:?} off: {} after {} states", violation.what, outcome.states);
        assert!(violation.what.contains(symptom), "{rule:?} off: {}\n{}", violation.what, violation.trace);
    }
}

/// Otherwise, the test above could blame a rule for a violation that its scenario always has.
#[test]
fn with_every_rule_the_same_scenarios_are_safe() {
    for (rule, scenario, _) in runs::without_a_rule() {
        let outcome = runs::search_in_test(&scenario);
        assert!(outcome.is_safe(), "{rule:?} on: {outcome}");
    }
}

#[test]
fn trace_lists_every_step() {
    let rules = runs::without_a_rule();
    let (rule, scenario, _) = rules.first().expect("there are rules");
    let outcome = runs::search_in_test(&scenario.clone().without(*rule));
    let violation = outcome.violation.expect("the rule is needed");
    let steps = violation.trace.lines().filter(|line| line.contains(". ")).count();
    assert_eq!(steps, outcome.depth, "{}", violation.trace);
}
