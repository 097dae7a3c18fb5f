//! Spans, events and numbers about a process, and the accuracy of the page that documents them.
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
