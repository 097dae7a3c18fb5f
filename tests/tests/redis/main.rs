//! Locks against real Redis servers: every way out, every fault, every kind of hostile input.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests are tests too"
)]

mod again;
mod cancel;
mod check;
#[cfg(target_os = "linux")]
mod clock_steps;
mod ended;
mod exclusion;
mod exit_paths;
mod faults;
mod holding;
mod hostile;
mod interop;
mod lease;
mod leaving;
mod network;
mod restarted;
mod servers;
mod support;
mod tls;
mod waiting;
