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
            "the_promises_hold_among_processes_and_servers_in_trouble",
            "a_majority_that_forgets_one_after_the_other_lets_no_second_owner_in",
        ],
    ),
    row(
        "Pool",
        Some("no more tokens hold permits than exist"),
        &[
            "so_many_have_permits_and_the_next_one_waits_until_one_is_given_back",
            "no_more_than_so_many_go_on_while_their_slot_moves",
        ],
    ),
    row("Given", None, &["one_of_many_tries_at_once_succeeds_at_most"]),
    row(
        "Owned",
        Some("a lease that counts belongs to the owner of the node"),
        &["less_than_a_majority_of_free_nodes_is_no_lock"],
    ),
    row(
        "Kept",
        Some("a lock on a bare majority re-acquires its missing votes"),
        &["nodes_that_forget_one_after_the_other_cost_no_lock", "a_key_that_is_gone_from_a_minority_is_no_loss"],
    ),
    row("Continuous", None, &["a_lock_lost_at_a_majority_is_neither_created_again_nor_taken_from_another"]),
    row("LossKnown", None, &["the_owner_knows_at_once_that_a_server_has_forgotten_it"]),
    row(
        "BodyStops",
        None,
        &[
            "the_body_is_stopped_although_every_node_is_frozen",
            "a_suspended_body_does_not_go_on_after_the_resume_and_its_late_write_is_refused",
        ],
    ),
    row(
        "Progress",
        Some("when no message is in flight, no token waits for a free lock"),
        &[
            "a_waiting_call_gets_the_lock_of_a_holder_that_crashed",
            "the_promises_hold_among_processes_and_servers_in_trouble",
        ],
    ),
    row("Deadline", None, &["a_frozen_majority_is_a_clear_error_within_the_wait"]),
    row("Order", None, &["managers_are_served_in_the_order_of_their_coming"]),
    row(
        "Fencing",
        Some("of two holders, the later one has the larger number"),
        &[
            "tokens_increase_over_the_loss_of_a_minority_and_of_its_data",
            "numbers_rise_for_calls_that_want_them_in_any_order_at_once",
            "the_promises_hold_among_processes_and_servers_in_trouble",
        ],
    ),
    row("MinHold", None, &["a_window_stays_taken_until_min_hold_is_over"]),
    row("Closed", None, &["shutdown_waits_for_the_releases_and_closes_the_manager"]),
    row("Unbroken", None, &["who_says_that_a_lock_is_broken_makes_its_holder_ask_and_no_more"]),
    row(
        "Clean",
        Some("in a final state, every node is empty"),
        &[
            "every_way_out_leaves_nothing_on_1_3_and_5_nodes",
            "the_promises_hold_among_processes_and_servers_in_trouble",
        ],
    ),
    row("Fairness", None, &["who_releases_and_asks_again_at_once_is_served_last"]),
    row("Quiet", None, &[]),
    row("NoPanic", None, &[]),
];

const fn row(promise: &'static str, model: Option<&'static str>, servers: &'static [&'static str]) -> Checked {
    Checked { promise, model, servers }
}
