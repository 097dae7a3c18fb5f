//! Runs each example as a user does, and checks its output for given arguments and environment variables.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests are tests too"
)]

mod alerts;
mod bank_transfer;
mod config_reload;
mod errors;
mod export_pool;
mod folder_service;
mod http;
mod order_service;
mod pages;
mod program;
mod promtool;
mod quickstart;

mod seed_counter;
mod service;
mod shared_access;
