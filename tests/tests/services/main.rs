//! Realistic services, with every handler and every job under a lock.
//!
//! `ui/pass/services*.rs` compile the same files in a library, in edition 2021, and under names of the user's own.
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod carried;
mod carried_run;
mod jobs;
mod jobs_run;
mod prelude;
mod rest;
mod rest_run;
mod rpc;
mod rpc_run;
mod store;
