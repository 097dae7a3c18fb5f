//! Exhaustive models.
#![allow(clippy::indexing_slicing, reason = "TODO")]
mod bytes;
pub mod fencing;
mod fifo;
mod fingerprints;
pub mod lock;
pub mod search;
