//! The command as its users run it: against one server and a quorum, for people and for scripts.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod commands;
mod failures;
mod operations;
mod program;
