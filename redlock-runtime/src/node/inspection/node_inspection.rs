//! Answer of one node about a key.

use super::MOST_WAITERS;
use super::clients::Clients;
use super::holder::Holder;
use super::owner::{Owner, spoken};
use crate::error::NodeError;
use crate::lock::class::Class;
use crate::lock::{Mode, OwnerToken};
use crate::protocol::fencing_token::FencingToken;
use crate::protocol::node_state::Seen;
use crate::text::SingleLine;
use std::fmt;
use std::time::Duration;

/// Answer of one node about a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeInspection {
    /// Address of the node: host and port, or the path of a socket.
    pub node: Box<str>,
    /// Error that makes the answer void: the node is unreachable or restarted recently, or the user may not read the key. In the last case,
    /// the text names the permission to grant. The other fields may still be known.
    pub error: Option<NodeError>,
    /// Holder of the key at this node.
    pub holder: Holder,
    /// Time until the key expires at this node, measured at the moment of the answer. `None` if the key is free or has no expiry.
    pub remaining: Option<Duration>,
    /// The first 100 waiters at this node, the next one first. A waiter whose process has just ended may still be listed.
    pub waiters: Vec<Owner>,
    /// Number of waiters at this node. It excludes calls that wait in the process of the holder, or behind another call of their process.
    pub waiter_count: u64,
    /// Largest fencing number that the node has accepted in the slot of the key, as the first token with this number.
    ///
    /// A [fencing token](FencingToken) of this key exceeds the largest number of a majority by at most 16 383, if no node has lost its
    /// data. `None` if the number is missing, or if the user may not read it.
    pub fence: Option<FencingToken>,
    /// Reason why the processes of the tokens are unknown: the user may not run `CLIENT LIST`, or the list is too long.
    pub client_list_error: Option<NodeError>,
}

impl NodeInspection {
    /// Returns the inspection of a node that failed with `error`.
    pub(crate) fn silent(node: &str, error: NodeError) -> Self {
        Self { error: Some(error), ..Self::of(node) }
    }

    /// Returns an inspection without any facts.
    pub(crate) fn of(node: &str) -> Self {
        Self {
            node: node.into(),
            error: None,
            holder: Holder::Unknown,
            remaining: None,
            waiters: Vec::new(),
            waiter_count: 0,
            fence: None,
            client_list_error: None,
        }
    }

    /// Returns the inspection of the in-memory node, whose owners are all in this process.
    pub(crate) fn in_memory(node: &str, seen: &Seen) -> Self {
        let owner = |token: OwnerToken, class| Owner { is_connected: Some(true), ..Owner::in_class(token, class) };
        let alone = seen.holder.map(|holder| Holder::Owner(owner(holder.token, Class::Exclusive)));
        let mut owners: Vec<_> = seen.readers.iter().map(|(reader, class)| owner(reader.token, *class)).collect();
        owners.sort_by_key(|owner| owner.token);
        owners.truncate(MOST_WAITERS);
        let shared = if owners.is_empty() { Holder::Nobody } else { Holder::Shared { owners } };
        Self {
            holder: alone.unwrap_or(shared),
            remaining: seen
                .holder
                .iter()
                .chain(seen.readers.iter().map(|(reader, _)| reader))
                .map(|holder| holder.left)
                .max(),
            waiters: seen.waiters.iter().take(MOST_WAITERS).map(|(token, class)| owner(*token, *class)).collect(),
            waiter_count: u64::try_from(seen.waiters.len()).unwrap_or(u64::MAX),
            fence: seen.ballot.map(FencingToken::first),
            ..Self::of(node)
        }
    }

    /// Adds the calls that wait for a permit: the holder of the admission lock of the key, and the waiters for it.
    pub(super) fn add_admission(&mut self, admission: Self) {
        let first = admission.holder.owner().cloned();
        self.waiter_count =
            self.waiter_count.saturating_add(admission.waiter_count).saturating_add(u64::from(first.is_some()));
        let all = first.into_iter().chain(admission.waiters);
        self.waiters.extend(all.map(|owner| Owner { mode: Mode::Permit, ..owner }));
        self.waiters.sort_by_key(|owner| owner.token);
        self.waiters.truncate(MOST_WAITERS);
        self.client_list_error = self.client_list_error.take().or(admission.client_list_error);
    }

    /// Returns `true` if there are tokens whose processes can be looked up.
    pub(crate) fn has_owners(&self) -> bool {
        !self.holder.owners().is_empty() || !self.waiters.is_empty()
    }

    /// Returns the manager ids of all tokens.
    pub(crate) fn managers(&self) -> impl Iterator<Item = &str> {
        self.holder.owners().iter().chain(&self.waiters).map(|owner| owner.token.manager())
    }

    /// Sets the processes of the tokens from the list of clients.
    pub(crate) fn name(&mut self, clients: &Result<Clients, NodeError>) {
        match clients {
            Ok(clients) => {
                let owners = self.holder.owners_mut().iter_mut().chain(&mut self.waiters);
                owners.for_each(|owner| owner.found(clients));
            }
            Err(error) => self.client_list_error = Some(error.clone()),
        }
    }
}

impl NodeInspection {
    /// Writes one line about the node. `agreed` is the holder on which a majority agrees.
    pub(super) fn write(&self, agreed: Option<&Holder>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", SingleLine(&self.node))?;
        let is_cut_off = self.holder.owner().is_some_and(|owner| owner.is_connected == Some(false));
        match (&self.error, &self.holder) {
            (Some(error), Holder::Unknown) => return write!(f, "{error}"),
            (Some(error), holder) => write!(f, "{holder} ({error})")?,
            (None, holder @ Holder::Owner(_)) if agreed == Some(holder) => {
                f.write_str(if is_cut_off {
                    "the same holder, not connected to this node"
                } else {
                    "the same holder"
                })?;
            }
            (None, holder) => write!(f, "{holder}")?,
        }
        if let Some(remaining) = self.remaining {
            write!(f, ", {} left", spoken(remaining))?;
        }
        if self.waiter_count > 0 {
            write!(f, ", {} waiting", self.waiter_count)?;
        }
        Ok(())
    }
}

/// `10.0.0.1:6379: held by order-service;host7;1234 at 10.0.0.9:51234 (token ..), 27.1s left, 2 waiting`
impl fmt::Display for NodeInspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(None, f)
    }
}
