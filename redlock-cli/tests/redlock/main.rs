//! Runs `redlock` as a user does, against a single server and a quorum, with text and JSON output.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod commands;
mod failures;
mod operations;
mod program;
