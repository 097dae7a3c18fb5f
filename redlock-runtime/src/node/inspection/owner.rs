//! Process behind an owner token.

use super::clients::Clients;
use crate::lock::class::Class;
use crate::lock::{Mode, OwnerToken};
use crate::text::SingleLine;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::time::{Duration, SystemTime};

/// Call that holds a lock or waits for it, with its process.
///
/// Two owners are equal if their tokens are equal.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Owner {
    /// Token of the call at the nodes.
    pub token: OwnerToken,
    /// Mode in which the call holds the lock or wants it.
    ///
    /// A waiter for a [permit](crate::LockRequest::permits) has [`Mode::Permit`]. A holder of a permit has [`Mode::Shared`], because
    /// nodes do not store which of the two it is.
    pub mode: Mode,
    /// `true` if the owner holds or wants a [descendant](crate::LockRequest::path) of the key, and not the key itself. Other calls may hold
    /// other descendants.
    pub is_descendant: bool,
    /// Time of the request, by the clock of its process. If a lock was handed from call to call within a process, this is the time of
    /// the first call.
    pub created_at: SystemTime,
    /// Name of the process: its [label](crate::LockManagerBuilder::label), host and process id, such as `order-service;host7;1234`.
    ///
    /// `None` in three cases: the process is not connected to the node, the user may not list clients, or the process runs a version of
    /// this library that does not name its connections.
    pub label: Option<Box<str>>,
    /// Address from which the process is connected to the node.
    pub address: Option<Box<str>>,
    /// `true` if a connection to the node has the name of the process or listens on its channel. `None` if that is unknown.
    ///
    /// A process without a connection has ended or is cut off; its lock is free when the lease ends. There is one exception: its user may
    /// not name connections (`+client|setname`), and none of its calls has waited yet.
    pub is_connected: Option<bool>,
}

impl Owner {
    /// Returns an owner with the facts that its token contains.
    pub(crate) fn of(token: OwnerToken, mode: Mode) -> Self {
        Self {
            token,
            mode,
            is_descendant: false,
            created_at: token.created_at(),
            label: None,
            address: None,
            is_connected: None,
        }
    }

    /// Returns an owner whose token has this class at the node.
    pub(crate) fn in_class(token: OwnerToken, class: Class) -> Self {
        let mode = if class.is_alone() { Mode::Exclusive } else { Mode::Shared };
        Self { is_descendant: class.is_intent(), ..Self::of(token, mode) }
    }

    /// Returns how the owner holds a lock that several owners hold.
    pub(super) const fn has(&self) -> &'static str {
        match (self.is_descendant, self.mode) {
            (false, _) => "shared by",
            (true, Mode::Exclusive) => "descendant held by",
            (true, Mode::Shared | Mode::Permit) => "descendant shared by",
        }
    }

    pub(super) const fn waits(&self) -> &'static str {
        match (self.is_descendant, self.mode) {
            (false, Mode::Exclusive) => "waits",
            (false, Mode::Shared) => "waits for a shared lock",
            (false, Mode::Permit) => "waits for a permit",
            (true, Mode::Exclusive) => "waits for a descendant",
            (true, Mode::Shared | Mode::Permit) => "waits for a shared descendant",
        }
    }

    /// Sets the process from the list of `clients`.
    pub(super) fn found(&mut self, clients: &Clients) {
        let client = clients.find(self.token.manager());
        self.is_connected = Some(clients.is_connected(self.token.manager()));
        self.label = client.and_then(|client| client.label.clone());
        self.address = client.map(|client| client.address.clone());
    }

    /// Returns the time since the request, by the clock of this process. Zero if the other clock is ahead.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.created_at.elapsed().unwrap_or_default()
    }
}

impl PartialEq for Owner {
    fn eq(&self, other: &Self) -> bool {
        self.token == other.token
    }
}

impl Eq for Owner {}

impl Hash for Owner {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.token.hash(state);
    }
}

/// `order-service;host7;1234 at 10.0.0.9:51234 (token 0198..)`
impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.label {
            Some(label) => write!(f, "{}", SingleLine(label))?,
            None => write!(f, "manager {}", self.token.manager())?,
        }
        match &self.address {
            Some(address) => write!(f, " at {}", SingleLine(address))?,
            None if self.is_connected == Some(false) => f.write_str(", not connected")?,
            None => {}
        }
        write!(f, " (token {})", self.token)
    }
}

/// Returns a duration for people: `12.3s`, `4m 12s`, `3h 20m`.
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
    fn durations_are_formatted_briefly() {
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
