//! Checks of the documentation pages: links resolve, messages, numbers and names of tests match the sources, and the examples of the
//! guide run.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod api;
mod changelog;
mod cited;
mod constants;
mod evidence;
mod front;
mod fuzz_manifests;
mod guide;
mod limits;
mod links;
mod measured;
mod messages;
mod page;
mod predicates;
mod prose;
