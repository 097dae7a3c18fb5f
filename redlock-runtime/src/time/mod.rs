//! Clocks, and waiting for a condition.
//!
//! These modules read the time or wait, and do not depend on locks. The module `protocol` calculates leases from the time.

pub(crate) mod ballot_clock;
mod ballot_margins;
pub(crate) mod clock;
pub(crate) mod due_time;
pub(crate) mod token_clock;
pub(crate) mod wait_until;
