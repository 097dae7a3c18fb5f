//! Exhaustive models.
#![allow(clippy::indexing_slicing, reason = "TODO")]
pub mod lock;
mod fingerprints;
pub mod search;
