//! Facts that a client remembers about the servers, and its decision whether a server abstains. They equal the runtime's
//! `node/abstention.rs`, `node/server_identity.rs` and `node/server_register.rs`.
//!
//! Times are ticks of about ten seconds. The search runs these functions, and a test of the runtime compares them with these files.

use crate::rule::Rule;

/// Longest lease that a server may have granted, in ticks.
pub const LONGEST: u8 = 3;

/// Servers that start within this number of ticks have started together.
pub const SAME_START: u8 = 1;

/// Number of measures for the age of a server: the age of its process, and the age of its marker.
pub const MEASURES: usize = 2;

/// Identity of a server at the time of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Changes with every start.
    pub run: u8,
    /// Age of the process.
    pub uptime: u8,
    /// `true` if the settings promise that every command is written to disk.
    pub is_durable: bool,
    /// Data set, by its replication ids.
    pub data: DataSet,
    /// Marker in the data, if the client may read it.
    pub marker: Option<Marker>,
}

/// Replication ids of the data of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DataSet {
    /// Present id.
    pub id: u8,
    /// Id of the data from which this data was copied.
    pub previous: Option<u8>,
}

/// Marker, with the receipt of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker {
    /// Changes if the marker is written anew.
    pub id: u8,
    /// Time since the marker was written.
    pub age: u8,
    /// Number of the receipt that this connection leaves.
    pub receipt: u8,
    /// Number of the last receipt of the client, if it was found.
    pub follows: Option<u8>,
}

/// The last server at one address, as a client knows it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Known {
    pub(super) run: u8,
    pub(super) is_durable: bool,
    pub(super) data: DataSet,
    /// Id of the marker and number of the last receipt.
    pub(super) marker: Option<(u8, u8)>,
    /// Time at which the last connection broke.
    pub(super) lost_at: Option<u8>,
    pub(super) abstains_until: u8,
    /// Times until which the server is young, by each measure.
    pub(super) young_until: [u8; MEASURES],
    /// Times at which the ages began.
    pub(super) began: [u8; MEASURES],
}

impl Identity {
    fn ages(&self) -> [u8; MEASURES] {
        [self.uptime, self.marker.map_or(self.uptime, |marker| marker.age)]
    }

    fn young_until(&self, now: u8, without: Option<Rule>) -> [u8; MEASURES] {
        let trusts_settings = self.is_durable && without == Some(Rule::NewcomersTrustNoSettings);
        if trusts_settings || without == Some(Rule::YoungServersAbstain) {
            return [0; MEASURES];
        }
        self.ages().map(|age| end(LONGEST.saturating_sub(age), now))
    }
}

impl DataSet {
    fn continues(self, earlier: Self) -> bool {
        self.id == earlier.id || self.previous.is_none() || self.previous == Some(earlier.id)
    }
}

impl Known {
    /// Returns the record after a connection to a server with this `identity`. `before` is the record of the last connection to the same
    /// address.
    #[must_use]
    pub fn connected(before: Option<Self>, identity: &Identity, now: u8, without: Option<Rule>) -> Self {
        let (abstains_until, young_until) = match before {
            Some(before) => (before.abstains_until(identity, now, without), before.young_until),
            None => (0, identity.young_until(now, without)),
        };
        Self {
            run: identity.run,
            is_durable: identity.is_durable,
            data: identity.data,
            marker: identity.marker.map(|marker| (marker.id, marker.receipt)),
            lost_at: None,
            abstains_until,
            young_until,
            began: identity.ages().map(|age| now - age),
        }
    }

    /// Records that the connection broke.
    pub fn disconnected(&mut self, now: u8) {
        self.lost_at = Some(now);
    }

    fn abstains_until(&self, identity: &Identity, now: u8, without: Option<Rule>) -> u8 {
        let is_same = self.run == identity.run && self.has_kept_data(identity, without);
        if is_same || self.has_surely_kept_data(identity, without) {
            return self.abstains_until;
        }
        let left = LONGEST.saturating_sub(self.running_for(identity, now, without));
        self.abstains_until.max(end(left, now))
    }

    fn has_kept_data(&self, identity: &Identity, without: Option<Rule>) -> bool {
        let is_continued = identity.data.continues(self.data) || without == Some(Rule::ReplacedDataIsForgotten);
        is_continued && self.marker.zip(identity.marker).is_none_or(|((id, _), later)| id == later.id)
    }

    fn has_surely_kept_data(&self, identity: &Identity, without: Option<Rule>) -> bool {
        let has_receipt =
            |receipt, later: Marker| later.follows == Some(receipt) || without == Some(Rule::OlderDataIsForgotten);
        let is_proven = self
            .marker
            .zip(identity.marker)
            .is_some_and(|((id, receipt), later)| id == later.id && has_receipt(receipt, later));
        self.is_durable && identity.is_durable && (is_proven || without == Some(Rule::DurabilityIsProven))
    }

    /// Returns the minimum time for which the process with this `identity` has been the only one at its address.
    fn running_for(&self, identity: &Identity, now: u8, without: Option<Rule>) -> u8 {
        let since_lost = self.lost_at.map_or(0, |lost_at| now - lost_at);
        let took_its_place = identity.uptime > since_lost || identity.data.previous.is_some();
        let was_restarted = !took_its_place || without == Some(Rule::PromotionsAreNoRestarts);
        if was_restarted && self.run != identity.run { identity.uptime.min(since_lost) } else { 0 }
    }
}

/// Returns the remaining abstention of `server`, 0 if it votes. `all` has the record of each server of the client.
#[must_use]
pub fn abstains_for(all: &[Option<Known>], server: usize, now: u8, without: Option<Rule>) -> u8 {
    let Some(known) = &all[server] else { return 0 };
    let outvoted = (0..MEASURES).filter(|measure| has_older_quorum(all, known, *measure, now, without));
    let until = outvoted.map(|measure| known.young_until[measure]).chain([known.abstains_until]).max();
    until.unwrap_or(0).saturating_sub(now)
}

/// Returns `true` if a quorum of other servers is older than this one by the `measure`, or has not been reached yet.
fn has_older_quorum(all: &[Option<Known>], young: &Known, measure: usize, now: u8, without: Option<Rule>) -> bool {
    let compares_ages = without != Some(Rule::OlderServersOutvoteYoung);
    let is_older = |other: &Known| {
        let is_old = other.young_until[measure] <= now;
        is_old || compares_ages && other.began[measure] + SAME_START < young.began[measure]
    };
    let may_be_as_young = all.iter().flatten().filter(|other| !is_older(other)).count();
    all.len() - may_be_as_young >= quorum(all.len()) || without == Some(Rule::ColdStartsAreTrusted)
}

/// Returns the size of a majority.
pub(super) const fn quorum(servers: usize) -> usize {
    servers / 2 + 1
}

/// Returns the time in `left` ticks, or 0 if none are left.
const fn end(left: u8, now: u8) -> u8 {
    if left == 0 { 0 } else { now + left }
}
