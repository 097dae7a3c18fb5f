//! The pages say what is so: their links lead somewhere, their messages, numbers and tests are those of the project, and the
//! examples of the guide are run.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod api;
mod cited;
mod evidence;
mod front;
mod guide;
mod limits;
mod links;
mod measured;
mod messages;
mod page;
mod prose;
