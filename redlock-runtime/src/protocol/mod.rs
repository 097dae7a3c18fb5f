//! The protocol.

pub(crate) mod candidate;
pub(crate) mod command;
pub(crate) mod fencing_token;
pub(crate) mod lease;
pub(crate) mod node_state;
pub(crate) mod quorum;
pub(crate) mod rules;
pub(crate) mod wakeup;
