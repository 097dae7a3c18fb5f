//! What one node says of a key.

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

/// What one node says of a key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NodeInspection {
    /// Its address: host and port, or the path of a socket.
    pub node: Box<str>,
    /// Why its word does not count, if so: it cannot be asked, it abstains, or its user may not read the key, and then the
    /// text says what to grant. The rest may still be known.
    pub error: Option<NodeError>,
    /// What has the key there.
    pub holder: Holder,
    /// When the key expires there, from the moment of the answer. `None` when the key is free or has no expiry.
    pub remaining: Option<Duration>,
    /// Those who wait for the key there, the next one first; the first hundred of them. One that has just died is still among
    /// them, until the lock passes it by.
    pub waiters: Vec<Owner>,
    /// How many wait in all.
    pub waiting: u64,
    /// The largest number that the node has accepted for fenced locks in the slot of the key, as the first token with it. A
    /// [fencing token](FencingToken) of this key exceeds the largest one of a majority by at most 16 383, as long as no node loses its
    /// data. `None` if there is none, or if the user may not read it.
    pub fence: Option<FencingToken>,
    /// Why it is not known which processes the tokens belong to, if so: the user may not ask who is connected, or there are
    /// too many.
    pub unnamed: Option<NodeError>,
}

impl NodeInspection {
    /// A node that has said nothing, because of `error`.
    pub(crate) fn silent(node: &str, error: NodeError) -> Self {
        Self { error: Some(error), ..Self::of(node) }
    }

    /// A node where nothing is.
    pub(crate) fn of(node: &str) -> Self {
        Self {
            node: node.into(),
            error: None,
            holder: Holder::Unknown,
            remaining: None,
            waiters: Vec::new(),
            waiting: 0,
            fence: None,
            unnamed: None,
        }
    }

    /// What the node in memory has: all who stand there are in this process.
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
            waiting: u64::try_from(seen.waiters.len()).unwrap_or(u64::MAX),
            fence: seen.ballot.map(FencingToken::first),
            ..Self::of(node)
        }
    }

    /// Who has the turnstile of the key there, or waits for it, waits for a permit.
    pub(super) fn add_turnstile(&mut self, turnstile: Self) {
        let first = turnstile.holder.owner().cloned();
        self.waiting = self.waiting.saturating_add(turnstile.waiting).saturating_add(u64::from(first.is_some()));
        let all = first.into_iter().chain(turnstile.waiters);
        self.waiters.extend(all.map(|owner| Owner { mode: Mode::Permit, ..owner }));
        self.waiters.sort_by_key(|owner| owner.token);
        self.waiters.truncate(MOST_WAITERS);
        self.unnamed = self.unnamed.take().or(turnstile.unnamed);
    }

    /// Whether it tells of anybody whose process can be looked for.
    pub(crate) fn has_owners(&self) -> bool {
        !self.holder.owners().is_empty() || !self.waiters.is_empty()
    }

    /// The managers of those whose processes can be looked for.
    pub(crate) fn managers(&self) -> impl Iterator<Item = &str> {
        self.holder.owners().iter().chain(&self.waiters).map(|owner| owner.token.manager())
    }

    /// Puts processes to the tokens.
    pub(crate) fn name(&mut self, clients: &Result<Clients, NodeError>) {
        match clients {
            Ok(clients) => {
                let owners = self.holder.owners_mut().iter_mut().chain(&mut self.waiters);
                owners.for_each(|owner| owner.found(clients));
            }
            Err(error) => self.unnamed = Some(error.clone()),
        }
    }
}

impl NodeInspection {
    /// A line about the node, where a majority has `agreed` on what has the key.
    pub(super) fn write(&self, agreed: Option<&Holder>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", SingleLine(&self.node))?;
        let is_cut_off = self.holder.owner().is_some_and(|owner| owner.is_connected == Some(false));
        match (&self.error, &self.holder) {
            (Some(error), Holder::Unknown) => return write!(f, "{error}"),
            (Some(error), holder) => write!(f, "{holder} ({error})")?,
            (None, holder @ Holder::Owner(_)) if agreed == Some(holder) => {
                f.write_str(if is_cut_off { "the same, of which no connection is known here" } else { "the same" })?;
            }
            (None, holder) => write!(f, "{holder}")?,
        }
        if let Some(remaining) = self.remaining {
            write!(f, ", {} left", spoken(remaining))?;
        }
        if self.waiting > 0 {
            write!(f, ", {} waiting", self.waiting)?;
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
