//! The lock protocol with two tokens: a complete search finds no violation.

use redlock_model::recorded::{Row, Table};
use redlock_model::runs::{self, Run};
use std::sync::Mutex;
use std::thread;

/// Number of simultaneous searches. Each uses one core.
const AT_ONCE: usize = 2;

#[test]
fn no_state_breaks_a_property() {
    let is_run = |run: &Run| !Table::Lock.is_left_out(run.name);
    let runs = Mutex::new(runs::of_the_tests().into_iter().filter(is_run).enumerate());
    let next = || runs.lock().expect("no search panics while it takes the next one").next();
    let mut rows = thread::scope(|scope| {
        let search =
            || std::iter::from_fn(next).map(|(number, run)| (number, assert_is_safe(&run))).collect::<Vec<_>>();
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(search)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("every search is safe")).collect::<Vec<_>>()
    });
    rows.sort_by_key(|(number, _)| *number);
    let rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
    let is_up_to_date = Table::Lock.check_up_to_date(&rows).expect("the table is written");
    assert!(is_up_to_date, "states/lock.tsv says something else than {rows:#?}: run this with UPDATE_EXPECT=1");
}

fn assert_is_safe(run: &Run) -> Row {
    let outcome = runs::search_in_test(&run.scenario);
    println!("{}: {outcome}", run.name);
    assert!(outcome.is_safe(), "{}: {outcome}", run.name);
    Row::new(run.name, &outcome)
}
