//! The lock protocol with two tokens: searched to the end, no property is broken.

use redlock_model::runs;

#[test]
fn no_state_breaks_a_property() {
    for run in runs::of_the_tests() {
        let outcome = runs::search_in_test(&run.scenario);
        println!("{}: {outcome}", run.name);
        assert!(outcome.is_safe(), "{}: {outcome}", run.name);
    }
}
