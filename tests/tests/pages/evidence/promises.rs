//! Checks of each promise in addition to the simulation.

/// Promise of the simulation, its counterpart in the model, and its tests on real servers.
pub(super) struct Checked {
    pub(super) promise: &'static str,
    pub(super) model: Option<&'static str>,
    pub(super) servers: &'static [&'static str],
}

/// Promises in the order of the simulation.
pub(super) const CHECKED: [Checked; 19] = [
    row(
        "Exclusion",
        Some("no two tokens hold the lock at once, unless both share it"),
        &[
            "bodies_never_overlap_on_1_3_and_5_nodes",
            "lock_guarantees_hold_under_process_and_server_faults",
            "majority_restarted_empty_allows_no_second_holder",
        ],
    ),
    row(
        "Pool",
        Some("no more tokens hold permits than exist"),
        &["permit_limit_is_enforced_and_a_release_admits_the_next_waiter", "permit_limit_holds_while_the_slot_moves"],
    ),
    row("Given", None, &["concurrent_tries_yield_at_most_one_holder"]),
    row(
        "Owned",
        Some("a lease that counts belongs to the owner of the node"),
        &["acquire_fails_without_a_majority_of_free_nodes"],
    ),
    row(
        "Kept",
        Some("a lock on a bare majority re-acquires its missing votes"),
        &["lock_survives_nodes_that_restart_empty_one_by_one", "lock_survives_the_loss_of_its_key_on_a_minority"],
    ),
    row("Continuous", None, &["lock_lost_at_a_majority_is_not_recreated_by_extend_or_release"]),
    row("LossKnown", None, &["holder_is_lost_at_once_when_the_server_restarts_empty"]),
    row(
        "BodyStops",
        None,
        &[
            "body_is_stopped_in_time_with_all_nodes_frozen",
            "suspended_body_stops_after_the_resume_and_its_late_write_is_rejected",
        ],
    ),
    row(
        "Progress",
        Some("when no message is in flight, no token waits for a free lock"),
        &["waiter_gets_the_lock_of_a_crashed_holder", "lock_guarantees_hold_under_process_and_server_faults"],
    ),
    row("Deadline", None, &["frozen_majority_is_a_clear_error_within_the_wait"]),
    row("Order", None, &["managers_are_served_in_order_of_arrival"]),
    row(
        "Fencing",
        Some("of two holders, the later one has the larger number"),
        &[
            "fencing_tokens_increase_after_a_minority_loses_its_data",
            "fencing_tokens_increase_for_concurrent_calls_with_overlapping_keys",
            "lock_guarantees_hold_under_process_and_server_faults",
        ],
    ),
    row("MinHold", None, &["released_lock_stays_taken_until_min_hold_has_passed"]),
    row("Closed", None, &["shutdown_waits_for_releases_and_closes_the_manager"]),
    row("Unbroken", None, &["forged_break_notification_only_makes_the_holder_extend"]),
    row(
        "Clean",
        Some("in a final state, every node is empty"),
        &["every_exit_releases_an_exclusive_lock_on_all_nodes", "lock_guarantees_hold_under_process_and_server_faults"],
    ),
    row("Fairness", None, &["releasing_manager_that_reacquires_is_served_last"]),
    row("Quiet", None, &[]),
    row("NoPanic", None, &[]),
];

const fn row(promise: &'static str, model: Option<&'static str>, servers: &'static [&'static str]) -> Checked {
    Checked { promise, model, servers }
}
