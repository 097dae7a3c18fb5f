//! Driver of the protocol in one process: tasks, timers, wakers, and the local queue of each key.
//!
//! `protocol` contains the knowledge and the decisions of a client about one acquisition, without I/O. `node` contains
//! the servers and their connections. This module combines both, from the bottom:
//!
//! | modules | content |
//! |---|---|
//! | [`timers`] | timers for callers on any executor |
//! | [`release`], [`number_delivery`], [`node_handle`] | a node, its unanswered releases, and the fencing numbers that it lacks |
//! | [`gather`], [`recent_keys`], [`hot_keys`], [`kept_tokens`], [`shared`] | shared state of all acquisitions of a manager |
//! | [`acquisition`] | driver of one token |
//! | [`watchdog`] | renewal of held locks |
//! | [`local_queue`] | owner of the acquisitions: one local queue for each key |
//! | [`enclosing`], [`lock_order`] | locks of the callers of a call, and the order of their acquisition |
//! | [`window`] | calls for a window of time; [`acquire`] handles the others |
//! | [`acquire`], [`wakeup_router`], [`clock_steps`] | input from above and from below: calls, wake-ups, steps of clocks |

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
