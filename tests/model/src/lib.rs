//! Exhaustive models.
#![allow(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "numbers of nodes and tokens are below 4, and a model that leaves its arrays is a failed test"
)]
mod bytes;
pub mod fencing;
mod fifo;
mod fingerprints;
pub mod lock;
pub mod runs;
pub mod search;
