//! Representative of all states whose differences have no effect.

use super::scenario::Scenario;
use super::state::{Column, Link, Phase, State};

pub(crate) fn canonical(scenario: &Scenario, mut state: State) -> State {
    // Without a rule, such a release may have an effect. The releases that forged messages cause are not left out.
    if scenario.without.is_none() && scenario.forgeries == 0 {
        let phases = state.phases;
        state.columns[..scenario.working_nodes()].iter_mut().for_each(|column| drop_needless_releases(&phases, column));
    }
    // A frozen node is not interchangeable with the others.
    state.columns[..scenario.working_nodes()].sort_unstable();
    state
}

/// Removes each `RELEASE` of a token that has no entry at its node, and cannot get one: it has no effect at any time.
fn drop_needless_releases(phases: &[Phase], column: &mut Column) {
    let node = column.node;
    for ((token, link), phase) in column.links.iter_mut().enumerate().zip(phases) {
        let is_there = node.has(token as u8) || node.is_queued(token as u8);
        let is_last = link.commands.len() <= 1 && link.stale.is_empty();
        if *phase == Phase::Left && is_last && !is_there {
            *link = Link::default();
        }
    }
}
