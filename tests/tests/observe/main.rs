//! What whoever observes a process is told: spans, events and numbers, and that the page about them is true.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests are tests too")]

mod events;
mod hostile_texts;
mod node_events;
mod odd_subscribers;
mod page;
mod redaction;
mod spans;
mod stats;
mod subscriber;
