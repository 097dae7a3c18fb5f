//! The register of the servers behind the nodes of one manager: the last server at each address, and addresses that lead to the same
//! server.
//!
//! `abstention` decides if a server abstains that was restarted, promoted or is new.

use crate::error::NodeError;
use crate::node::abstention::{Abstention, Caution, SAME_START, UPTIME_PRECISION, abstains_until, young_until};
use crate::node::clock_offsets::ClockOffsets;
use crate::node::far_numbers::FarNumbers;
use crate::node::owed_numbers::OwedNumbers;
use crate::node::round_trips::RoundTrips;
use crate::node::server_identity::{DataSet, Identity, KnownServer, MEASURES, Marker};
use crate::node::shared_settings::SharedSettings;
use crate::observe::events;
use crate::protocol::command::{Number, Proposal, Reply};
use crate::protocol::lease;
use crate::protocol::quorum::Quorum;
use crate::protocol::rules::{Rule, Rules};
use crate::request::AfterRestart;
use crate::time::ballot_clock::{Ahead, BallotClock};
use crate::time::clock::{Clock, Instant};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Facts about the servers behind the nodes of one manager.
pub(crate) struct ServerRegister {
    pub(crate) clock: Clock,
    pub(crate) drift_factor: f64,
    /// Draws fencing numbers by the clocks of the servers.
    pub(crate) ballots: BallotClock,
    pub(crate) round_trips: RoundTrips,
    caution: Caution,
    quorum: Quorum,
    on_cut: OnceLock<OnCut>,
    /// The settings that other processes must have as well, if they are compared.
    shared_settings: OnceLock<SharedSettings>,
    /// Longest lease that a server may have granted before it was restarted, in milliseconds: the `max_ttl` that all managers share. The
    /// time of a `min_hold` or of a window is not a lease: no body runs in it, and every restart would stop locks for that time.
    longest_lease: AtomicU64,
    far_numbers: FarNumbers,
    /// The agreed numbers that nodes have yet to learn.
    pub(crate) owed_numbers: OwedNumbers,
    /// Offset of each clock from ours.
    ahead: Mutex<ClockOffsets>,
    /// By address.
    known: Mutex<Known>,
    /// Number of accesses to the servers that may have changed them.
    changes: AtomicU64,
    /// The clusters that are nodes, by the ids of their members.
    clusters: Mutex<HashMap<Box<str>, Box<str>>>,
}

/// Known servers, by their addresses.
type Known = HashMap<Box<str>, KnownServer>;

/// The measures by which a quorum of nodes is older than one young server. Most replies of a young server need it, so it is cached.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OlderQuorums {
    pub(crate) are_there: [bool; MEASURES],
    /// Number of the last change of the servers when this was computed.
    changes: Option<u64>,
    /// Time at which the next server is no longer young.
    until: Option<Instant>,
}

/// Reason why the leases of a node end earlier than they were granted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseCut {
    /// The clock of the node, or of a part of it, was set forward by at most this.
    ClockStep(Duration),
    /// The name of the node leads to another server: all votes of the previous server are void.
    ServerLeft,
}

/// Shortens the leases of the named node.
pub(crate) type OnCut = Box<dyn Fn(&str, LeaseCut) + Send + Sync>;

/// Minimum age of a marker that is included in the compared settings. Too small: a server that comes back empty has a new marker, and looks
/// like another server to processes that still know the old one, until their lines have expired. Too large: differing lists are reported
/// late.
const SETTLED: Duration = Duration::from_secs(90);

impl ServerRegister {
    pub(crate) fn new(clock: Clock, caution: Caution, quorum: Quorum, drift_factor: f64) -> Self {
        let (ballots, longest_lease) = (BallotClock::new(clock), AtomicU64::new(0));
        let (ahead, known, clusters) = (Mutex::default(), Mutex::default(), Mutex::default());
        let (round_trips, on_cut) = (RoundTrips::new(quorum.needed), OnceLock::new());
        Self {
            clock,
            drift_factor,
            ballots,
            round_trips,
            caution,
            quorum,
            on_cut,
            shared_settings: OnceLock::new(),
            longest_lease,
            far_numbers: FarNumbers::default(),
            owed_numbers: OwedNumbers::default(),
            ahead,
            known,
            changes: AtomicU64::new(0),
            clusters,
        }
    }

    /// Sets the function that shortens leases. Only the first call has an effect.
    pub(crate) fn on_cut(&self, on_cut: OnCut) {
        let _ = self.on_cut.set(on_cut);
    }

    fn cut(&self, node: &str, cut: LeaseCut) {
        if let Some(on_cut) = self.on_cut.get() {
            on_cut(node, cut);
        }
    }

    /// Records that the clock of `node`, or of a part of it, was set forward by at most `step`.
    pub(crate) fn stepped(&self, node: &str, step: Duration) {
        self.cut(node, LeaseCut::ClockStep(step));
    }

    /// Records a server's reply to a command that proposed a ballot. If the server refused it, the next ballot is larger in all registers
    /// of the command: the reply does not tell which register has refused.
    pub(crate) fn on_proposal_reply(&self, Proposal { subject, ballot }: &Proposal, node: &str, reply: &Reply) {
        let Some(number) = reply.number() else { return };
        if self.owed_numbers.are_any() {
            self.owed_numbers.on_reply(node, &subject.numbered_slots(), number);
        }
        let Number::Refused { largest } = number else { return };
        let slots = subject.numbered_slots();
        if let [slot] = *slots
            && !self.ballots.is_in_reach(&slots, largest)
        {
            let needed = if self.rules().apply(Rule::FarNumbersNeedAQuorum) { self.quorum.needed } else { 1 };
            if let Some(number) = self.far_numbers.record(slot, node, largest, needed) {
                self.ballots.reached(slot, number);
            }
        }
        self.ballots.refused_for(&slots, *ballot, largest);
    }

    /// Records the offset of the clock of the server at `address`, which is `node` or a part of it. It is `None` for a server that may not
    /// be queried. Ballots use the time of most nodes.
    pub(crate) fn record_clock_offset(&self, address: &str, node: &str, offset: Option<Ahead>) {
        let mut ahead = self.ahead();
        ahead.told(node, address, offset);
        self.believe(&ahead);
    }

    /// Sets the time for ballots to that of most nodes, while the mutex prevents other changes.
    fn believe(&self, ahead: &MutexGuard<'_, ClockOffsets>) {
        if let Some(believed) = ahead.middle(self.quorum.needed) {
            self.ballots.believe(believed);
        }
    }

    pub(crate) const fn rules(&self) -> Rules {
        self.caution.rules
    }

    /// Returns `true` if a loss of data by a server would matter.
    pub(crate) fn distrusts(&self) -> bool {
        self.caution.after_restart == AfterRestart::Abstain
    }

    /// Returns `true` if connections keep a marker in the data of servers. The marker reveals lost data, and identifies the servers of the
    /// nodes.
    pub(crate) fn has_markers(&self) -> bool {
        self.distrusts() || self.quorum.nodes > 1
    }

    /// Sets the settings to compare with those of other processes. Only the first call has an effect.
    pub(crate) fn compare_settings(&self, tolerated_data_loss: usize, max_ttl: Duration) {
        let (quorum, after_restart) = (self.quorum, self.caution.after_restart);
        let _ = self.shared_settings.set(SharedSettings { quorum, tolerated_data_loss, after_restart, max_ttl });
    }

    /// Returns the line of the settings on which all processes must agree, if it is compared.
    pub(crate) fn settings(&self) -> Option<String> {
        let settings = self.shared_settings.get()?;
        let (now, known) = (self.clock.now(), self.known());
        let has_settled = |known: &&KnownServer| {
            let [_, of_data] = known.ages_at(now);
            of_data >= SETTLED
        };
        let settled = known.values().filter(has_settled);
        let markers: Vec<_> = settled.filter_map(|known| Some(known.marker.as_ref()?.id.clone())).collect();
        drop(known);
        let are_all_known = markers.len() == self.quorum.nodes;
        Some(settings.line(are_all_known.then_some(markers)))
    }

    /// Returns `true` if the server at `address` wrote every command to disk when it was last asked.
    pub(crate) fn is_durable(&self, address: &str) -> bool {
        self.known().get(address).is_some_and(|known| known.is_durable)
    }

    /// Records that `marker` has the new receipt of this process in the data of the server at `address`. Nothing changes if another
    /// connection has left a receipt in the meantime or the last one was not found: the old receipt stays, and the data is not trusted
    /// after a restart.
    pub(crate) fn on_receipt_stored(&self, address: &str, marker: Marker) {
        let mut known = self.known_mut();
        let stored = known.get_mut(address).and_then(|known| known.marker.as_mut());
        if let Some(stored) = stored.filter(|stored| stored.id == marker.id && marker.follows == Some(stored.receipt)) {
            *stored = marker;
        }
    }

    /// Records that the server at `address` no longer writes every command to disk. It may lose commands in its next restart, even if its
    /// settings are changed again.
    pub(crate) fn record_not_durable(&self, address: &str) {
        if let Some(known) = self.known_mut().get_mut(address) {
            known.is_durable = false;
        }
    }

    /// Records that leases of length `ttl` may be granted.
    pub(crate) fn record_lease_length(&self, ttl: Duration) {
        let millis = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        // Nearly always it is not longer than before, and a load is cheap.
        if self.longest_lease.load(Ordering::Relaxed) < millis {
            self.longest_lease.fetch_max(millis, Ordering::Relaxed);
        }
    }

    /// Records a connection to `address`, which is `node` or a part of it. Returns the abstention of the node.
    ///
    /// The register stays unchanged without an `identity`, which the user may lack the permission to query.
    ///
    /// # Errors
    /// [`NodeError::SameServer`] if the server has a vote already, under another address.
    pub(crate) fn connected(
        &self,
        address: &str,
        node: &str,
        identity: Option<Identity>,
    ) -> Result<Abstention, NodeError> {
        self.teach_unless_unchanged(address, node, identity.as_ref());
        let (now, longest) = (self.clock.now(), self.longest_lease());
        let mut known = self.known_mut();
        let Some(identity) = identity else { return Ok(known.get(address).map(abstention).unwrap_or_default()) };
        let before = known.remove(address).or_else(|| renamed(&mut known, node, &identity));
        let is_another = before.as_ref().is_some_and(|before| before.run_id != identity.run_id);
        let twin = known.values().find(|other| other.counts && other.run_id == identity.run_id);
        let twin = twin.map(|other| other.node.clone());
        let (abstains_until, young_until) = match &before {
            Some(before) => (abstains_until(before, &identity, self.caution, longest, now), before.young_until),
            None if twin.is_some() => (None, [None; MEASURES]),
            None => (None, young_until(&identity, self.caution, longest, now)),
        };
        let current = KnownServer::new(node, identity, twin.is_none(), now);
        let is_new = twin.is_none() && before.as_ref().is_none_or(|before| before.is_new && !is_another);
        let current = KnownServer { abstains_until, young_until, is_new, ..current };
        let abstention = abstention(&current);
        // An abstention is logged when it begins, and not for each further connection. A server with a vote under another address is logged
        // under that address.
        let begins = before.as_ref().is_some_and(|before| abstains_until > before.abstains_until);
        known.insert(address.into(), current);
        let decided = self.decided(&mut known);
        drop(known);
        if twin.is_none() && (is_another || begins) {
            let left = abstention.left(now, || self.older_quorums(address, OlderQuorums::default(), now).are_there);
            events::node_restarted(address, left.unwrap_or_default());
        }
        for (address, abstention) in decided {
            let are_there = || self.older_quorums(&address, OlderQuorums::default(), now).are_there;
            if let Some(left) = abstention.left(now, are_there) {
                events::node_restarted(&address, left);
            }
        }
        twin.map_or(Ok(abstention), |twin| Err(NodeError::SameServer(twin)))
    }

    /// Removes and returns the new servers whose first abstention can be decided. As long as a node has not been reached, it may be old,
    /// and a young server abstains. If all servers are young, none of them does.
    fn decided(&self, known: &mut Known) -> Vec<(Box<str>, Abstention)> {
        let mut nodes: Vec<&str> = known.values().map(|server| &*server.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        if nodes.len() < self.quorum.nodes {
            return Vec::new();
        }
        let new = known.iter_mut().filter_map(|(address, server)| {
            std::mem::take(&mut server.is_new).then(|| (address.clone(), abstention(server)))
        });
        new.collect()
    }

    /// Returns the number of the receipt that the last connection to `address` has left.
    pub(crate) fn receipt(&self, address: &str) -> Option<u64> {
        self.known().get(address)?.marker.as_ref().map(|marker| marker.receipt)
    }

    /// Teaches `node` all known fencing numbers, unless the server at `address` is the same process as before with the same data.
    fn teach_unless_unchanged(&self, address: &str, node: &str, identity: Option<&Identity>) {
        let rules = self.rules();
        let is_unchanged = |before: &KnownServer, identity: &Identity| {
            before.counts && before.run_id == identity.run_id && before.has_kept_data(identity, rules)
        };
        let known = self.known();
        let is_unchanged = known.get(address).zip(identity).is_some_and(|(before, now)| is_unchanged(before, now));
        drop(known);
        if !is_unchanged {
            self.on_possible_data_change(node);
        }
    }

    /// Records that `node`, or a part of it, may have other data than before. It is taught all known fencing numbers.
    pub(crate) fn on_possible_data_change(&self, node: &str) {
        if self.rules().apply(Rule::ReturningNodesLearnNumbers) {
            self.owed_numbers.record_data_change(node);
        }
    }

    /// Records that the server at `address` is a replica with this `identity`. Once it is promoted, it may lack some data of its master.
    pub(crate) fn record_replica(&self, address: &str, node: &str, identity: Identity) {
        // The identity of a known former master is kept: it is compared with the next one.
        let now = self.clock.now();
        self.known_mut().entry(address.into()).or_insert_with(|| KnownServer::new(node, identity, false, now));
    }

    /// Records the ids of the members of the cluster that is `node`.
    ///
    /// # Errors
    /// [`NodeError::SameServer`] if another node is that cluster. The register is then unchanged.
    pub(crate) fn register_cluster<'a>(
        &self,
        node: &str,
        ids: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<(), NodeError> {
        // No code that can panic runs under this mutex.
        let mut clusters = self.clusters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = ids.clone().filter_map(|id| clusters.get(id)).find(|other| ***other != *node) {
            return Err(NodeError::SameServer(other.clone()));
        }
        clusters.retain(|_, known| **known != *node);
        clusters.extend(ids.map(|id| (id.into(), node.into())));
        Ok(())
    }

    /// Returns `true` if the server at `address`, on its present connection, still has its previous data: it reports the data set `data`.
    pub(crate) fn has_kept(&self, address: &str, data: DataSet) -> bool {
        let mut known = self.known_mut();
        let Some(known) = known.get_mut(address) else { return true };
        let has_kept = data.continues(&known.data);
        if has_kept {
            known.data = data;
        }
        has_kept
    }

    /// Returns the measures by which a quorum of nodes is older than the young server at `address`, or has not been reached yet. `before`
    /// is an earlier result; it is returned if it still holds, without reading the servers.
    pub(crate) fn older_quorums(&self, address: &str, before: OlderQuorums, at: Instant) -> OlderQuorums {
        if before.changes == Some(self.changes.load(Ordering::Acquire)) && before.until.is_none_or(|until| at < until) {
            return before;
        }
        let known = self.known();
        let changes = Some(self.changes.load(Ordering::Relaxed));
        let Some(young) = known.get(address) else {
            return OlderQuorums { are_there: [true; MEASURES], changes, until: None };
        };
        let are_there = std::array::from_fn(|measure| self.has_older_quorum(&known, young, measure, at));
        let young_until = known.values().flat_map(|server| server.young_until).flatten();
        let until = young_until.filter(|until| at < *until).min();
        OlderQuorums { are_there, changes, until }
    }

    fn has_older_quorum(&self, known: &Known, young: &KnownServer, measure: usize, at: Instant) -> bool {
        let age = |server: &KnownServer| server.ages_at(at).get(measure).copied().unwrap_or_default();
        let young_until = |server: &KnownServer| server.young_until.get(measure).copied().flatten();
        let is_old = |other: &KnownServer| young_until(other).is_none_or(|until| until <= at);
        let started_before = |other: &KnownServer| age(other) > age(young) + SAME_START;
        let compares_ages = self.rules().apply(Rule::OlderServersOutvoteYoung);
        let is_older = |other: &KnownServer| is_old(other) || compares_ages && started_before(other);
        let may_be_as_young = |other: &&KnownServer| other.counts && !is_older(other);
        let mut nodes: Vec<&str> = known.values().filter(may_be_as_young).map(|known| &*known.node).collect();
        // A node with several parts is one node.
        nodes.sort_unstable();
        nodes.dedup();
        self.quorum.nodes.saturating_sub(nodes.len()) >= self.quorum.needed
            || !self.rules().apply(Rule::ColdStartsAreTrusted)
    }

    /// Records that the connection to `address`, which is `node` or a part of it, broke.
    pub(crate) fn disconnected(&self, address: &str, node: &str) {
        self.round_trips.disconnected(node, address);
        let now = self.clock.now();
        if let Some(known) = self.known_mut().get_mut(address) {
            known.lost_at = Some(now);
        }
    }

    /// Records that the name `address` of `node` leads to another server, and that the connection to the previous server has ended. The
    /// votes of that server are void. The next server at this address is a replacement, like a promoted replica.
    pub(crate) fn leave(&self, address: &str, node: &str) {
        if let Some(known) = self.known_mut().get_mut(address) {
            known.counts = false;
        }
        self.cut(node, LeaseCut::ServerLeft);
    }

    /// Returns the run id of the server that was last connected at `address`, if it is known.
    pub(crate) fn run_id(&self, address: &str) -> Option<Box<str>> {
        self.known().get(address).map(|known| known.run_id.clone())
    }

    /// Records that the parts of `node` are at the addresses for which `are_there` returns `true`. Other parts are forgotten when every
    /// lease that they may have granted has ended.
    pub(crate) fn retain_parts(&self, node: &str, are_there: impl Fn(&str) -> bool) {
        let (now, longest) = (self.clock.now(), self.longest_lease());
        self.known_mut().retain(|address, known| {
            let is_there = *known.node != *node || are_there(address);
            // If a part comes back later, the time starts when it was last missed.
            is_there || now.since(*known.lost_at.get_or_insert(now)) <= longest
        });
        let mut ahead = self.ahead();
        ahead.retain(node, are_there);
        self.believe(&ahead);
    }

    /// Returns the time until which grants of an unreachable server may still be leases, if this matters.
    pub(crate) fn lost_leases_end(&self) -> Option<Instant> {
        self.distrusts().then(|| self.clock.now().after(self.longest_lease()))
    }

    /// Returns the longest lease that a server may have granted, with the drift of the clocks.
    fn longest_lease(&self) -> Duration {
        let longest = Duration::from_millis(self.longest_lease.load(Ordering::Relaxed));
        longest + lease::drift(longest, self.drift_factor)
    }

    /// Returns the time for which a server that has just restarted abstains.
    pub(crate) fn longest_abstention(&self) -> Duration {
        self.longest_lease() + UPTIME_PRECISION
    }

    fn ahead(&self) -> MutexGuard<'_, ClockOffsets> {
        // No code that can panic runs under this mutex.
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // No code that can panic runs under this mutex.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the servers for a change. The change is counted under the mutex, so that a result of [`older_quorums`](Self::older_quorums)
    /// with the new number includes it.
    fn known_mut(&self) -> MutexGuard<'_, Known> {
        let known = self.known();
        self.changes.fetch_add(1, Ordering::Release);
        known
    }
}

/// Removes the record of the server with this `identity`, if it was a part of the same `node` under another address: a cluster may rename
/// its members.
fn renamed(known: &mut HashMap<Box<str>, KnownServer>, node: &str, identity: &Identity) -> Option<KnownServer> {
    let is_same = |other: &KnownServer| *other.node == *node && other.run_id == identity.run_id;
    let address = known.iter().find(|(_, other)| is_same(other)).map(|(address, _)| address.clone())?;
    known.remove(&address)
}

/// Returns the abstention of the node of a `known` server.
const fn abstention(known: &KnownServer) -> Abstention {
    Abstention { until: known.abstains_until, young_until: known.young_until }
}

impl fmt::Debug for ServerRegister {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerRegister").field("known", &self.known()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(30);
    /// The longest lease with the drift.
    const WINDOW: Duration = Duration::from_millis(30_302);
    /// The uptime of a server that is not young.
    const OLD: u64 = 1000;

    fn servers(after_restart: AfterRestart) -> ServerRegister {
        let caution = Caution { after_restart, rules: Rules::default() };
        let servers = ServerRegister::new(Clock::tokio(), caution, Quorum::of(3, 0), 0.01);
        servers.record_lease_length(TTL);
        servers.record_lease_length(TTL / 2);
        servers
    }

    fn data(id: &str, previous: Option<&str>) -> DataSet {
        DataSet { id: Some(id.into()), previous: previous.map(Into::into) }
    }

    /// Returns the identity of a server with written data.
    #[expect(clippy::unnecessary_wraps, reason = "as it is when the server may be asked")]
    fn identity(run_id: &str, uptime: u64, is_durable: bool) -> Option<Identity> {
        let data = data(run_id, None);
        Some(Identity { run_id: run_id.into(), uptime: Duration::from_secs(uptime), is_durable, data, marker: None })
    }

    /// Returns the identity of a durable server in whose data this connection has left the receipt with this number.
    fn marked(run_id: &str, uptime: u64, receipt: u64) -> Option<Identity> {
        let marker = Some(Marker { id: "m".into(), age: None, receipt, follows: receipt.checked_sub(1) });
        identity(run_id, uptime, true).map(|identity| Identity { marker, ..identity })
    }

    impl ServerRegister {
        /// Connects, and returns the remaining abstention of the node.
        fn left(&self, address: &str, identity: Option<Identity>) -> Result<Option<Duration>, NodeError> {
            let now = self.clock.now();
            Ok(self
                .connected(address, address, identity)?
                .left(now, || self.older_quorums(address, OlderQuorums::default(), now).are_there))
        }
    }

    /// Returns the remaining longest lease after `seconds`.
    #[expect(clippy::unnecessary_wraps, reason = "as the register says it")]
    fn rest_after(seconds: u64) -> Result<Option<Duration>, NodeError> {
        Ok(WINDOW.checked_sub(Duration::from_secs(seconds)))
    }

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn durable_server_whose_settings_have_changed_abstains_after_a_restart() {
        for is_changed in [false, true] {
            let servers = servers(AfterRestart::Abstain);
            servers.connected("a", "a", marked("1", OLD, 1)).unwrap();
            assert!(servers.is_durable("a"));
            if is_changed {
                servers.record_not_durable("a");
            }
            assert_eq!(servers.is_durable("a"), !is_changed);
            let left = servers.left("a", marked("2", 0, 2));
            assert_eq!(left, Ok(is_changed.then_some(WINDOW)), "{is_changed}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn settings_line_lists_nodes_once_all_markers_are_known() {
        let servers = servers(AfterRestart::Abstain);
        assert_eq!(servers.settings(), None);
        servers.compare_settings(0, TTL);
        for address in ["a", "b", "c"] {
            let line = servers.settings().unwrap();
            assert_eq!(line, "n=3 q=2 d=0 restart=abstain ttl=30000", "before {address} is connected");
            servers.connected(address, address, marked(address, OLD, 1)).unwrap();
        }
        assert!(servers.settings().unwrap().contains(" nodes="));
    }

    #[tokio::test(start_paused = true)]
    async fn abstention_lasts_across_reconnects() {
        let servers = servers(AfterRestart::Abstain);
        servers.connected("a", "a", identity("1", OLD, false)).unwrap();
        assert_eq!(servers.left("a", marked("2", 0, 1)), Ok(Some(WINDOW)));
        pass(5).await;
        for identity in [marked("2", 5, 2), None, marked("3", 0, 3)] {
            let left = servers.left("a", identity.clone());
            assert_eq!(left, rest_after(5), "{identity:?}");
        }
        assert_eq!(servers.left("a", identity("4", 0, false)), Ok(Some(WINDOW)));
    }

    #[tokio::test(start_paused = true)]
    async fn unchanged_or_long_running_server_votes_at_once() {
        let abstaining = servers(AfterRestart::Abstain);
        for identity in [None, identity("1", OLD, false), None, identity("1", OLD + 9, false)] {
            assert_eq!(abstaining.left("a", identity.clone()), Ok(None), "{identity:?}");
        }
        let trusting = servers(AfterRestart::Trust);
        for run_id in ["1", "2"] {
            assert_eq!(trusting.left("a", identity(run_id, 0, false)), Ok(None));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn young_server_abstains_if_a_quorum_is_older_or_unknown() {
        let servers = servers(AfterRestart::Abstain);
        assert_eq!(servers.left("a", identity("1", 5, false)), rest_after(4), "the others may be older");
        assert_eq!(servers.left("b", identity("2", OLD, false)), Ok(None));
        pass(2).await;
        assert_eq!(servers.left("a", identity("1", 7, false)), rest_after(6), "on another connection");
        assert_eq!(servers.left("c", identity("3", 18, false)), Ok(None), "only one is older");
        assert_eq!(servers.left("a", None), rest_after(6), "two are older");
        assert_eq!(servers.left("c", identity("4", 0, false)), Ok(Some(WINDOW)), "it was restarted");
        assert_eq!(servers.left("a", None), Ok(None), "only one is older now");
    }

    /// All start times of servers in a cold start, all times of one restart without data, and all sets of reached nodes.
    #[tokio::test(start_paused = true)]
    async fn restart_after_cold_start_abstains_and_cold_start_does_not() {
        const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
        let starts = || (0..=SAME_START.as_secs()).flat_map(|start| [11, 12, 30].map(move |running| (start, running)));
        for (nodes, (last_start, running)) in
            [3, 4, 5].into_iter().flat_map(|nodes| starts().map(move |at| (nodes, at)))
        {
            let quorum = Quorum::of(nodes, 0);
            for reached in (0..1_u32 << nodes).filter(|set| set.count_ones() as usize >= quorum.needed) {
                let caution = Caution { after_restart: AfterRestart::Abstain, rules: Rules::default() };
                let [cold, restarted] = [(); 2].map(|()| ServerRegister::new(Clock::tokio(), caution, quorum, 0.01));
                // In seconds since the first half of the nodes started. The first node restarts three seconds before.
                let now = last_start + running + 3;
                for (node, name) in NAMES.iter().enumerate().take(nodes).filter(|(node, _)| reached & 1 << node != 0) {
                    let uptime = if node < nodes / 2 { now } else { now - last_start };
                    cold.record_lease_length(4 * TTL);
                    restarted.record_lease_length(4 * TTL);
                    cold.connected(name, name, identity(name, uptime, true)).unwrap();
                    let uptime = if node == 0 { 3 } else { uptime };
                    restarted.connected(name, name, identity(name, uptime, true)).unwrap();
                }
                let at = cold.clock.now();
                let is_reached = |name: &&&str| cold.known().contains_key(**name);
                for name in NAMES.iter().filter(is_reached) {
                    assert!(
                        !cold.older_quorums(name, OlderQuorums::default(), at).are_there[0],
                        "{nodes} {last_start} {reached:b}: {name} waits"
                    );
                }
                if reached & 1 != 0 {
                    let is_trusted = !restarted.older_quorums("a", OlderQuorums::default(), at).are_there[0];
                    assert!(!is_trusted, "{nodes} {last_start} {running} {reached:b}");
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn replaced_data_is_detected() {
        let servers = servers(AfterRestart::Abstain);
        servers.connected("a", "a", identity("1", OLD, false)).unwrap();
        let kept =
            [("it has got a replica", data("7", None)), ("a fail-over that came to nothing", data("8", Some("7")))];
        for (name, data) in kept {
            assert!(servers.has_kept("a", data), "{name}");
        }
        let replaced = data("10", Some("9"));
        assert!(!servers.has_kept("a", replaced.clone()));
        let same = identity("1", OLD + 5, false).unwrap();
        assert_eq!(servers.left("a", Some(Identity { data: replaced, ..same })), Ok(Some(WINDOW)));
        assert!(servers.has_kept("b", data("1", None)), "of an unknown one there is nothing to forget");
    }

    #[tokio::test(start_paused = true)]
    async fn promoted_replica_abstains() {
        let servers = servers(AfterRestart::Abstain);
        let replica = identity("1", OLD, false).unwrap();
        servers.record_replica("a", "a", replica.clone());
        let promoted = Identity { data: data("2", Some("1")), ..replica };
        assert_eq!(servers.left("a", Some(promoted.clone())), Ok(Some(WINDOW)));
        pass(31).await;
        // Without a connection, it has lost nothing.
        servers.record_replica("a", "a", promoted.clone());
        let again = Identity { data: data("3", Some("2")), ..promoted };
        assert_eq!(servers.left("a", Some(again)), Ok(None));
    }

    #[tokio::test(start_paused = true)]
    async fn server_counts_under_one_address_only() {
        let servers = servers(AfterRestart::Abstain);
        servers.connected("a", "a", identity("1", OLD, false)).unwrap();
        let twin = Err(NodeError::SameServer("a".into()));
        assert_eq!(servers.left("b", identity("1", OLD, false)), twin);
        servers.disconnected("a", "a");
        assert_eq!(servers.left("b", identity("1", OLD, false)), twin, "its leases still count");
        // It is restarted, and the other name is connected first: grants under the first name are still in force.
        pass(5).await;
        assert_eq!(servers.left("b", identity("2", 9999, false)), Ok(Some(WINDOW)));
        assert_eq!(servers.left("a", identity("2", 0, false)), Err(NodeError::SameServer("b".into())));
        // The second name leads elsewhere now.
        servers.connected("b", "b", identity("3", 0, false)).unwrap();
        assert!(servers.left("a", identity("2", 0, false)).unwrap().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn removed_shard_is_remembered_for_the_max_lease() {
        let servers = servers(AfterRestart::Abstain);
        for part in ["gone", "there"] {
            servers.connected(part, "cluster", identity(part, OLD, false)).unwrap();
            servers.record_clock_offset(part, "cluster", None);
        }
        servers.connected("server", "server", identity("server", OLD, false)).unwrap();
        let parts = || {
            servers.retain_parts("cluster", |address| address == "there");
            let mut known: Vec<_> = servers.known().keys().map(ToString::to_string).collect();
            known.sort();
            known
        };
        assert_eq!(parts(), ["gone", "server", "there"]);
        pass(30).await;
        assert_eq!(parts(), ["gone", "server", "there"]);
        pass(1).await;
        assert_eq!(parts(), ["server", "there"]);
        assert!(!format!("{:?}", servers.ahead()).contains("gone"));
    }
}
