//! Circumstances for the part of a provisional grant that counts before its extension is answered.

use super::circumstances::slow_crowd;
use super::faults::Faults;
use super::profile::Profile;
use crate::protocol::command::Verb;

/// Processes pause for longer than a provisional grant lasts, so that they read its message too late.
pub(super) fn late_announcements() -> Profile {
    let faults = Faults { pauses: 8, until: 1500, longest: 2500, ..Faults::NONE };
    Profile { nodes: vec![1, 3], clients: 3..=5, faults, bodies: 20..=300, bound: 30_000, ..slow_crowd() }
}

/// The clocks of servers are set forward while calls wait. Extensions are cut off, so that no answer shows the step.
pub(super) fn steps_before_claims() -> Profile {
    let targets: fn(Verb) -> bool = Verb::is_extension;
    let faults = Faults { steps: 6, targets: Some(targets), away: 4000, until: 2500, ..Faults::NONE };
    let (calls, bodies) = (3..=5, 300..=1800);
    Profile { nodes: vec![1], clients: 3..=4, faults, calls, bodies, ttls: vec![3000], bound: 30_000, ..slow_crowd() }
}
