//! The client.

pub(crate) mod acquire;
pub(crate) mod acquisition;
mod clock_steps;
pub(crate) mod hot_keys;
pub(crate) mod kept_tokens;
pub(crate) mod local_queue;
pub(crate) mod release;
pub(crate) mod shared;
pub(crate) mod wakeup_router;
pub(crate) mod watchdog;
