//! Clocks, and waiting for a condition.
//!
//! What belongs here reads the time or waits, and knows nothing of locks. What the time means for a lease is arithmetic
//! and stands in `protocol`.

pub(crate) mod ballot_clock;
mod ballot_margins;
pub(crate) mod clock;
pub(crate) mod due_time;
pub(crate) mod token_clock;
pub(crate) mod wait_until;
