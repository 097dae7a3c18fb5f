//! Tests of the test kit, used as a program uses it.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests are tests too")]

mod errors;
mod exploring;
mod faults;
mod installing;
mod kinds;
mod logging;
mod places;
mod real_time;
mod several;
