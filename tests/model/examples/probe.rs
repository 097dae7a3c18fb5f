use redlock_model::{
    runs,
    search::{Limits, search},
};
fn main() {
    let limits = Limits { states: 4_000_000, progress: false };
    for (name, model) in runs::permits().into_iter().chain(runs::permits_without_a_rule()) {
        let t = std::time::Instant::now();
        let outcome = search(&model, limits);
        println!(
            "{name}: {:?}: {} depth {} exhausted {} {:?} {:.1?}",
            model.variant,
            outcome.states,
            outcome.depth,
            outcome.exhausted,
            outcome.violation.as_ref().map(|v| v.what.clone()),
            t.elapsed()
        );
        if let (Some(v), true) = (outcome.violation, model.variant == redlock_model::permits::Variant::Protocol) {
            println!("{}", v.trace);
        }
    }
}
