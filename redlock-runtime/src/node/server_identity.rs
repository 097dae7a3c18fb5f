//! What a server says of itself, and what is remembered of it.

use crate::time::clock::Instant;
use std::time::Duration;

/// What a server says of itself when a connection to it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Another one after every start.
    pub(crate) run_id: Box<str>,
    pub(crate) uptime: Duration,
    /// Whether it remembers, after a crash, all that it has answered before.
    pub(crate) is_durable: bool,
}

/// The last server at one address.
#[derive(Debug)]
pub(super) struct KnownServer {
    pub(super) run_id: Box<str>,
    pub(super) is_durable: bool,
    /// Whether its votes count. They do not when another address leads to the same server and counts.
    pub(super) counts: bool,
    /// When the last connection broke.
    pub(super) lost_at: Option<Instant>,
    pub(super) abstains_until: Option<Instant>,
}
