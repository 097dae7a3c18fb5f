//! Who a token belongs to.

use super::clients::Clients;
use crate::lock::class::Class;
use crate::lock::{Mode, OwnerToken};
use crate::text::SingleLine;
use std::fmt;
use std::time::{Duration, SystemTime};

/// One call of one process that has a lock or waits for it, and where that process is.
///
/// Two owners are equal when their tokens are.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Owner {
    /// The token under which the call stands at the nodes.
    pub token: OwnerToken,
    /// Whether it has the lock, or wants it, for itself alone or together with others. Who waits for a
    /// [permit](crate::LockRequest::permits) is told of with [`Mode::Permit`], and who has one as of one that shares the lock: the nodes
    /// keep nothing that tells those two apart.
    pub mode: Mode,
    /// Whether that is about something [below](crate::LockRequest::path) the key, which is a place in a tree then, and not about
    /// the key itself: others may have something else there.
    pub is_below: bool,
    /// When the call asked for the lock, by the clock of its process. A lock that went from call to call within a process
    /// has the time of the first of them.
    pub asked_at: SystemTime,
    /// The process: what it is [called](crate::LockManagerBuilder::label), its host and its process id, as in
    /// `order-service;host7;1234`. `None` when it is not connected to the node, the node may not be asked who is, or the
    /// process has a version of this library that does not say.
    pub label: Option<Box<str>>,
    /// From where the process is connected to the node.
    pub address: Option<Box<str>>,
    /// Whether a connection to the node has the name of the process, or listens on its channel; `None` when that could not be found
    /// out. A process of which neither is true has ended or is cut off, and its lock is free when the lease ends; or its user may
    /// not name its connections (`+client|setname`), and none of its calls has waited yet.
    pub is_connected: Option<bool>,
}

impl Owner {
    /// What the token alone tells.
    pub(crate) fn of(token: OwnerToken, mode: Mode) -> Self {
        Self {
            token,
            mode,
            is_below: false,
            asked_at: token.created_at(),
            label: None,
            address: None,
            is_connected: None,
        }
    }

    /// The same for one that stands at the node in this class.
    pub(crate) fn in_class(token: OwnerToken, class: Class) -> Self {
        let mode = if class.is_alone() { Mode::Exclusive } else { Mode::Shared };
        Self { is_below: class.is_intent(), ..Self::of(token, mode) }
    }

    /// In which way it has a lock that it has with others.
    pub(super) const fn has(&self) -> &'static str {
        match (self.is_below, self.mode) {
            (false, _) => "shared by",
            (true, Mode::Exclusive) => "held below by",
            (true, Mode::Shared | Mode::Permit) => "shared below by",
        }
    }

    pub(super) const fn waits(&self) -> &'static str {
        match (self.is_below, self.mode) {
            (false, Mode::Exclusive) => "waits",
            (false, Mode::Shared) => "waits to share it",
            (false, Mode::Permit) => "waits for a permit",
            (true, Mode::Exclusive) => "waits for something below",
            (true, Mode::Shared | Mode::Permit) => "waits to share something below",
        }
    }

    /// The same with what the server says of its `clients`.
    pub(super) fn found(&mut self, clients: &Clients) {
        let client = clients.find(self.token.manager());
        self.is_connected = Some(clients.is_connected(self.token.manager()));
        self.label = client.and_then(|client| client.label.clone());
        self.address = client.map(|client| client.address.clone());
    }

    /// How long ago it asked, by our clock; zero where its clock is ahead.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.asked_at.elapsed().unwrap_or_default()
    }
}

impl PartialEq for Owner {
    fn eq(&self, other: &Self) -> bool {
        self.token == other.token
    }
}

impl Eq for Owner {}

/// `order-service;host7;1234 at 10.0.0.9:51234 (token 0198..)`
impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.label {
            Some(label) => write!(f, "{}", SingleLine(label))?,
            None => write!(f, "manager {}", self.token.manager())?,
        }
        match &self.address {
            Some(address) => write!(f, " at {}", SingleLine(address))?,
            None if self.is_connected == Some(false) => f.write_str(", of which no connection is known")?,
            None => {}
        }
        write!(f, " (token {})", self.token)
    }
}

/// A time as somebody says it: `12.3s`, `4m 12s`, `3h 20m`.
pub(super) fn spoken(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{:.1}s", time.as_secs_f64()),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        let table = [
            (0, "0.0s"),
            (12_345, "12.3s"),
            (60_000, "1m 00s"),
            (252_000, "4m 12s"),
            (3_600_000, "1h 00m"),
            (12_000_000, "3h 20m"),
        ];
        for (millis, expected) in table {
            assert_eq!(spoken(Duration::from_millis(millis)), expected);
        }
    }
}
