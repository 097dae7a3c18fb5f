//! The lock protocol with two tokens: searched to the end, no property is broken.

use redlock_model::runs::{self, Run};
use std::sync::Mutex;
use std::thread;

/// How many searches are made at once; each takes one core.
const AT_ONCE: usize = 2;

#[test]
fn no_state_breaks_a_property() {
    let runs = Mutex::new(runs::of_the_tests().into_iter());
    let next = || runs.lock().expect("no search panics while it takes the next one").next();
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| std::iter::from_fn(next).for_each(|run| assert_is_safe(&run)));
        }
    });
}

fn assert_is_safe(run: &Run) {
    let outcome = runs::search_in_test(&run.scenario);
    println!("{}: {outcome}", run.name);
    assert!(outcome.is_safe(), "{}: {outcome}", run.name);
}
