//! The long run: searches that take too long for a test.

use std::process::ExitCode;
use std::time::Instant;

use redlock_model::recorded::{Row, Table};
use redlock_model::runs::{fencing_of_the_long_run, of_the_long_run, search_long};
use redlock_model::search::Outcome;

fn main() -> ExitCode {
    if std::env::args().skip(1).ne(["long"]) {
        eprintln!("usage: redlock-model long\n\nSearches the models with three tokens; takes up to 9 GB and an hour.");
        return ExitCode::from(2);
    }
    let locks: Vec<_> = of_the_long_run().iter().map(|run| report(run.name, || search_long(&run.scenario))).collect();
    let fencing = fencing_of_the_long_run();
    let fencing: Vec<_> = fencing.iter().map(|(name, model)| report(name, || search_long(model))).collect();
    // The search of three numbers may exceed the memory.
    let is_safe = locks.iter().all(Outcome::is_safe) && fencing.iter().all(|outcome| outcome.violation.is_none());
    if is_safe { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints the result of `search`, and stores it in the table of the long run.
fn report(name: &str, search: impl FnOnce() -> Outcome) -> Outcome {
    let started = Instant::now();
    let outcome = search();
    println!("{name}: {outcome} ({:.0?})", started.elapsed());
    if let Err(error) = Table::Long.put(Row::new(name, &outcome)) {
        eprintln!("{name} is not in the table: {error}");
    }
    outcome
}
