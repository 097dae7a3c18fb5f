//! The long run: searches that take too long for a test.

use std::process::ExitCode;
use std::time::Instant;

use redlock_model::runs::{fencing_of_three, of_the_long_run, search_long};
use redlock_model::search::Outcome;

fn main() -> ExitCode {
    if std::env::args().skip(1).ne(["long"]) {
        eprintln!("usage: redlock-model long\n\nSearches the models with three tokens; takes up to 6 GB and an hour.");
        return ExitCode::from(2);
    }
    let locks = of_the_long_run().into_iter().map(|run| report(run.name, || search_long(&run.scenario)));
    let are_safe: Vec<bool> = locks.collect();
    let is_fencing_safe = report("three fencing numbers", || search_long(&fencing_of_three()));
    if is_fencing_safe && !are_safe.contains(&false) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints what `search` has found; whether it went through everything and found nothing.
fn report(name: &str, search: impl FnOnce() -> Outcome) -> bool {
    let started = Instant::now();
    let outcome = search();
    println!("{name}: {outcome} ({:.0?})", started.elapsed());
    outcome.is_safe()
}
