//! Drives the protocol for one process: tasks, timers, wakers, and the line of calls for each key.
//!
//! What a client knows and decides about one acquisition is in `protocol`, which does no I/O; what a server is and how it is
//! reached, in `node`. Here they are put together, from the bottom:
//!
//! | | |
//! |---|---|
//! | [`timers`] | timers for callers on any executor |
//! | [`release`], [`number_delivery`], [`node_handle`] | a node, the releases that it owes answers to, and the fencing numbers that it has yet to learn |
//! | [`gather`], [`recent_keys`], [`hot_keys`], [`kept_tokens`], [`shared`] | what every acquisition of a manager needs |
//! | [`acquisition`] | one token, driven |
//! | [`watchdog`] | renews what is held |
//! | [`local_queue`] | owns the acquisitions: one line for each key |
//! | [`enclosing`], [`lock_order`] | which locks the callers of a call hold, and in which order they were taken |
//! | [`window`] | calls that take a window of time; the others are [`acquire`]'s |
//! | [`acquire`], [`wakeup_router`], [`clock_steps`] | what comes from above and from below: calls, wake-ups, steps of clocks |

pub(crate) mod acquire;
pub(crate) mod acquisition;
pub(crate) mod clock_steps;
pub(crate) mod enclosing;
pub(crate) mod gather;
#[cfg(test)]
pub(crate) mod hooked_node;
mod hot_keys;
mod kept_tokens;
pub(crate) mod local_queue;
mod lock_order;
pub(crate) mod node_handle;
mod number_delivery;
mod recent_keys;
pub(crate) mod release;
mod revocations;
pub(crate) mod revoked;
pub(crate) mod shared;
pub(crate) mod timers;
pub(crate) mod waiting_calls;
pub(crate) mod wakeup_router;
mod watchdog;
pub(crate) mod window;
