//! All events, each with its level and fields.

use super::spans::Path;
use super::{Named, RedactedKey, TARGET, millis, shielded};
use crate::lock::OwnerToken;
use crate::text::SingleLine as line;
use std::fmt::Display;
use std::time::Duration;

/// Writes one event. The name is a field as well, because most log formats omit the name of a `tracing` event.
macro_rules! tell {
    ($level:ident, $name:literal, { $($fields:tt)* }, $text:literal) => {
        shielded(|| tracing::event!(name: $name, target: TARGET, tracing::Level::$level, event = $name, $($fields)*, $text))
    };
}

/// A call has acquired its lock.
pub(crate) fn acquired(lock: Named<'_>, token: &OwnerToken, path: Path, waited: Duration) {
    tell!(DEBUG, "acquired", {
        key = %lock.key(), template = lock.template, site = %lock.site(), mode = lock.mode(), token = %token,
        path = path.name(), waited_ms = millis(waited)
    }, "the lock was acquired");
}

/// A call has been waiting for a while.
pub(crate) fn waiting(lock: Named<'_>, waited: Duration) {
    tell!(DEBUG, "waiting", {
        key = %lock.key(), template = lock.template, site = %lock.site(), mode = lock.mode(), waited_ms = millis(waited)
    }, "a call waits for the lock");
}

/// A call that does not wait has found the lock taken.
pub(crate) fn skipped(lock: Named<'_>) {
    tell!(DEBUG, "skipped", { key = %lock.key(), template = lock.template, site = %lock.site(), mode = lock.mode() },
        "another owner holds the lock, and the call does not wait");
}

/// Another call has taken the window of a `once_per`.
pub(crate) fn window_skipped(lock: Named<'_>, window: i64, ends_in: Duration) {
    tell!(DEBUG, "skipped", {
        key = %lock.key(), template = lock.template, site = %lock.site(), window, ends_in_ms = millis(ends_in)
    }, "another call has taken this window");
}

/// A call has waited for its whole `wait`.
pub(crate) fn timed_out(lock: Named<'_>, waited: Duration) {
    tell!(INFO, "timed_out", {
        key = %lock.key(), template = lock.template, site = %lock.site(), mode = lock.mode(), waited_ms = millis(waited)
    }, "the lock was held by another owner during the whole wait");
}

/// Calls have failed because too few nodes agreed. `times`: since the last event.
pub(crate) fn no_quorum(lock: Named<'_>, causes: impl Display, times: u64) {
    tell!(WARN, "no_quorum", {
        key = %lock.key(), template = lock.template, site = %lock.site(), causes = %line(causes), times
    }, "too few nodes agreed");
}

/// Less than a fifth of a renewed lease is left. `times`: number of such locks since the last event.
pub(crate) fn near_expiry(lock: Named<'_>, (remaining, ttl): (Duration, Duration), times: u64) {
    tell!(WARN, "near_expiry", {
        key = %lock.key(), template = lock.template, site = %lock.site(), remaining_ms = millis(remaining),
        ttl_ms = millis(ttl), times
    }, "the lease could not be renewed so far, and less than a fifth of it is left");
}

/// A lock was lost before it was released.
pub(crate) fn lost(lock: Named<'_>, cause: impl Display, held: Duration) {
    tell!(ERROR, "lost", {
        key = %lock.key(), template = lock.template, site = %lock.site(), cause = %line(cause), held_ms = millis(held)
    }, "the lock was lost");
}

/// A body continues without its lock.
pub(crate) fn outlived(key: RedactedKey<'_>) {
    tell!(WARN, "outlived", { key = %key }, "the lock was lost, and its body continues without it");
}

/// A lock was held for longer than its `ttl`.
pub(crate) fn slow_hold(lock: Named<'_>, held: Duration, ttl: Duration) {
    tell!(INFO, "slow_hold", {
        key = %lock.key(), template = lock.template, site = %lock.site(), held_ms = millis(held), ttl_ms = millis(ttl)
    }, "the lock was held for longer than its ttl");
}

/// Outcome of an attempt to break a lock. A forced release stores the token `by` at no node: it only names the breaker.
pub(crate) fn broken(
    key: RedactedKey<'_>,
    (holder, by): (&str, &OwnerToken),
    outcome: &'static str,
    reason: Option<&str>,
) {
    let reason = reason.map(line).map(tracing::field::display);
    tell!(WARN, "broken", { key = %key, holder = %line(holder), by = %by, outcome, reason },
        "a lock was broken, or the attempt failed");
}

/// A node did not have the lock any more when it was released.
pub(crate) fn released_late(node: &str, key: RedactedKey<'_>) {
    tell!(WARN, "released_late", { node = %line(node), key = %key }, "this process did not hold the lock any more \
                                                                      when it was released");
}

/// The outcome of a release is unknown.
pub(crate) fn release_abandoned(node: &str, key: RedactedKey<'_>, cause: impl Display, was_held: bool) {
    if was_held {
        tell!(WARN, "release_abandoned", { node = %line(node), key = %key, cause = %line(cause) },
            "a release was not confirmed; the key expires by itself");
    } else {
        // No call here held the lock, so an operator need not look for a remaining key.
        tell!(DEBUG, "release_abandoned", { node = %line(node), key = %key, cause = %line(cause) },
            "a token may remain on the node; it expires by itself");
    }
}

/// A release that the caller waits for was not confirmed.
pub(crate) fn release_unconfirmed(key: RedactedKey<'_>, error: impl Display) {
    tell!(WARN, "release_unconfirmed", { key = %key, error = %line(error) }, "the release was not confirmed");
}

/// A call may wait for its own caller.
pub(crate) fn deadlock(key: RedactedKey<'_>, held: impl Display) {
    tell!(WARN, "deadlock", { key = %key }, "the lock {held}, unless the lock is released first");
}

/// A nested call waits for another nested call, and perhaps for itself. Both are named by their lines.
pub(crate) fn nested_wait(key: RedactedKey<'_>, asked_at: impl Display, taken_at: impl Display) {
    tell!(WARN, "deadlock", { key = %key },
        "the nested call at {asked_at} waits for the lock of the call at {taken_at}; if its own caller holds that \
         guard, it waits for itself: run it in the `scope` of the guard, or drop the guard first");
}

/// Locks were acquired in different orders.
pub(crate) fn lock_order(key: RedactedKey<'_>, held: impl Display) {
    tell!(WARN, "lock_order", { key = %key }, "the lock {held}");
}

/// A nested call has tried to detach the lock of its caller.
pub(crate) fn not_detached(key: RedactedKey<'_>) {
    tell!(WARN, "not_detached", { key = %key },
        "a nested call cannot detach the lock of its caller");
}

/// A caller has tried to detach a permit, which is released instead.
pub(crate) fn permit_not_detached(key: RedactedKey<'_>) {
    tell!(WARN, "not_detached", { key = %key }, "a permit cannot be detached; it is released instead");
}

/// A node was connected, `times` since the last event.
pub(crate) fn node_up(node: &str, has_pushes: bool, times: u64) {
    tell!(INFO, "node_up", { node = %line(node), has_pushes, times }, "the node is connected");
}

/// A connection to a node has failed or broken, `times` since the last event.
pub(crate) fn node_down(node: &str, error: impl Display, times: u64) {
    tell!(WARN, "node_down", { node = %line(node), error = %line(error), times }, "the node is not connected");
}

/// No member of a cluster returns the slot map.
pub(crate) fn no_map(node: &str, error: impl Display, times: u64) {
    tell!(WARN, "no_map", { node = %line(node), error = %line(error), times },
        "cannot read the slot map of the cluster");
}

/// A node sends no wake-ups.
pub(crate) fn not_listening(node: &str, error: impl Display, times: u64) {
    tell!(WARN, "not_listening", { node = %line(node), error = %line(error), times },
        "cannot subscribe: waiting callers poll instead");
}

/// A lock was extended or released without its queue, because the user may not use that key.
pub(crate) fn queue_forbidden(node: &str, times: u64) {
    tell!(WARN, "queue_forbidden", { node = %line(node), times },
        "the user may use a lock, and not the queue beside it: further calls for such keys are refused");
}

/// A Sentinel sends no notifications about a new master.
pub(crate) fn sentinel_unheard(node: &str, sentinel: &str, error: impl Display, times: u64) {
    tell!(WARN, "sentinel_unheard", {
        node = %line(node), sentinel = %line(sentinel), error = %line(error), times
    }, "cannot subscribe to a Sentinel");
}

/// The Sentinels have promoted another server.
pub(crate) fn master_changed(node: &str, master: impl Display) {
    tell!(INFO, "master_changed", { node = %line(node), master = %line(master) }, "the Sentinels have made another server the master");
}

/// The name of a node leads to another server, at `address`.
pub(crate) fn name_moved(node: &str, address: impl Display) {
    tell!(WARN, "name_moved", { node = %line(node), address = %line(address) },
        "the name leads to another server: the old connection is closed, and its votes do not count");
}

/// A node answers with a new process, or with a process that was started recently.
pub(crate) fn node_restarted(node: &str, abstains_for: Duration) {
    tell!(WARN, "node_restarted", { node = %line(node), abstains_ms = millis(abstains_for) },
        "the server was restarted and may have forgotten locks");
}

/// The clock of a server was set forward.
pub(crate) fn clock_step(node: &str, step: Duration) {
    tell!(WARN, "clock_step", { node = %line(node), step_ms = millis(step) },
        "the clock of the server was set forward: its leases end earlier");
}

/// Processes with other settings use the same locks, `times` since the last event. The server has settings of `others`.
pub(crate) fn settings_differ(node: &str, [names, theirs, ours]: [&str; 3], others: usize, times: u64) {
    tell!(WARN, "settings_differ", {
        node = %line(node), settings = %line(names), theirs = %line(theirs), ours = %line(ours), others = %line(others), times
    }, "other processes with the same locks have other settings: two callers can hold one lock");
}

/// Two nodes are one server.
pub(crate) fn same_server(node: &str, error: impl Display, times: u64) {
    tell!(ERROR, "same_server", { node = %line(node), error = %line(error), times }, "each node must be an independent server");
}

/// The commands of a batch were not answered.
pub(crate) fn unanswered(error: impl Display) {
    tell!(DEBUG, "unanswered", { error = %line(error) }, "a batch was not answered");
}

/// A request of a service fails because servers cannot be reached.
#[cfg(any(feature = "actix-web", feature = "axum", feature = "tonic"))]
pub(crate) fn request_unavailable(error: impl Display) {
    tell!(WARN, "request_failed", { error = %line(error) }, "a request failed because of its lock");
}

/// A request of a service fails because it contains an invalid value.
#[cfg(any(feature = "actix-web", feature = "axum", feature = "tonic"))]
pub(crate) fn request_invalid(error: impl Display) {
    tell!(INFO, "request_failed", { error = %line(error) }, "a request failed because of its lock");
}

/// A request of a service fails because of a fault that an operator must fix.
#[cfg(any(feature = "actix-web", feature = "axum", feature = "tonic"))]
pub(crate) fn request_broken(error: impl Display) {
    tell!(ERROR, "request_failed", { error = %line(error) }, "a request failed because of its lock");
}
