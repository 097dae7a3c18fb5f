//! Locks on real Redis servers: every exit, every fault, every kind of hostile input.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests are tests too"
)]

mod absent_waiters;
mod access;
mod again;
mod announced;
mod ballots;
mod blocked_threads;
mod breaking;
mod cancel;
mod changing_servers;
mod check;
#[cfg(target_os = "linux")]
mod clock_steps;
mod clusters;
mod connecting;
mod detached;
mod detached_twice;
mod distance;
mod ended;
mod exclusion;
mod exit_paths;
mod faults;
mod fenced_resource;
mod fencing;
mod floods;
mod health;
mod hiccups;
mod holders;
mod holding;
mod hostile;
mod inspecting;
mod interop;
mod keeping;
mod kinds;
mod lease;
mod leavers;
mod leaving;
mod lingering;
mod local_leases;
mod local_line;
#[cfg(target_os = "linux")]
mod message_floods;
mod nested;
mod network;
mod outside;
mod owed_numbers;
mod paused;
mod permission_rows;
mod permission_table;
mod permissions;
mod permits;
mod proven_claims;
mod queue;
mod recorded;
mod refusals;
mod replaced;
mod restarted;
mod revoked_permissions;
mod secrets;
mod sentinels;
mod servers;
mod sets;
mod settings;
mod shared;
mod silent;
mod soak;
mod storm;
mod strangers;
mod support;
mod tenants;
mod tls;
mod unstored_scripts;
mod waiters;
mod waiting;
mod wake_ups;
mod windows;
