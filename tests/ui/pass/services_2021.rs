// edition: 2021
#![deny(warnings)]
#![warn(clippy::all, clippy::pedantic, clippy::nursery)]
//! The services whose behaviour the `services` tests check, in an older edition.

#[path = "../../tests/services/jobs.rs"]
pub mod jobs;
#[path = "../../tests/services/prelude.rs"]
pub mod prelude;
#[path = "../../tests/services/rest.rs"]
pub mod rest;
#[path = "../../tests/services/rpc.rs"]
pub mod rpc;
#[path = "../../tests/services/store.rs"]
pub mod store;
