//! Settings that few programs need.
//!
//! [`LockManagerBuilder::tuning`](crate::LockManagerBuilder::tuning) changes them.

pub use crate::manager::Tuning;
pub use crate::request::AfterRestart;
