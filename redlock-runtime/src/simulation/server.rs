//! Simulated Redis server: the state machine of the memory node, with its clock, channels and faults.

use super::profile::{Markers, Profile};
use crate::lock::slot::slot_of;
use crate::lock::{LockKey, OwnerToken};
use crate::node::server_identity::{DataSet, Identity, Marker};
use crate::protocol::command::{Claim, Command, Notice, Reply, Verb, Wakeup};
use crate::protocol::node_state::{Limits, NodeState};
use crate::protocol::rules::Rules;
use crate::time::ballot_clock::Ballot;
use crate::time::clock::{Instant, virtual_origin};
use crate::time::token_clock::TokenTime;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// Longest time for which managers ignore the grants of a server that has lost its data: the longest `ttl` of all profiles,
/// with the drift of the clocks.
const LONGEST_ABSTENTION: Duration = Duration::from_secs(25);

/// Simulated server.
pub(super) struct Server {
    state: NodeState,
    rules: Rules,
    /// Number of waiters that one command admits, or notifies of a free name.
    limits: Limits,
    number: usize,
    /// Error of the clock rate, in parts per million.
    ppm: i32,
    /// `true` if the wall clock shows the time, and not only the uptime.
    pub(super) has_wall_clock: bool,
    /// Sum of the forward steps of the wall clock.
    ahead: Duration,
    /// Number of restarts, and start of the present process.
    starts: u64,
    started_at: Instant,
    /// Uptime before the beginning of the run.
    ran_before: Duration,
    /// Present data set.
    data: DataSet,
    data_sets: u64,
    /// `true` if the server reports that it loses no data.
    is_durable: bool,
    marker: Option<StoredMarker>,
    /// Number of markers that were written to it.
    markers: u64,
    kind_of_markers: Markers,
    /// Time until which the server executes nothing.
    pub(super) frozen_until: Instant,
    /// Time until which the server cannot be reached.
    pub(super) down_until: Instant,
    subscribers: Vec<Subscriber>,
    /// Time at which each waiting token was first queued.
    queued_since: HashMap<OwnerToken, Instant>,
    /// Tokens of commands that arrived after the end of their connection, possibly after their release by the next
    /// connection.
    ghosts: HashSet<OwnerToken>,
    /// Tokens whose last command keeps them for a while.
    kept: HashSet<OwnerToken>,
    /// Time at which it last lost its data.
    wiped_at: Option<Instant>,
}

/// Marker in the data of a server.
struct StoredMarker {
    id: u64,
    /// Time of writing by the wall clock; `None` if that was long ago.
    born: Option<Instant>,
    /// Last receipt, and the last receipt of each client.
    last_receipt: u64,
    receipts: HashMap<usize, u64>,
}

impl StoredMarker {
    fn new(id: u64, born: Option<Instant>) -> Self {
        Self { id, born, last_receipt: 0, receipts: HashMap::new() }
    }
}

/// Connection that is subscribed to a channel, as far as the server knows.
struct Subscriber {
    channel: String,
    wire: usize,
}

/// Result of one command.
pub(super) struct Executed {
    pub(super) reply: Reply,
    pub(super) seen: Option<TokenTime>,
    /// Wall clock of the server, if the answer reports it.
    pub(super) time: Option<Duration>,
    /// Wake-ups, with the wires to which they are sent.
    pub(super) published: Vec<(usize, Wakeup)>,
}

impl Server {
    pub(super) fn new(number: usize, ppm: i32, is_durable: bool, profile: &Profile, origin: Instant) -> Self {
        let (limits, rules) = (profile.limits, profile.rules);
        let state = NodeState::with_limits(limits, rules);
        Self {
            state,
            rules,
            limits,
            number,
            ppm,
            has_wall_clock: true,
            ahead: Duration::ZERO,
            starts: 0,
            started_at: origin,
            ran_before: Duration::ZERO,
            data: DataSet::default(),
            data_sets: 0,
            is_durable,
            marker: None,
            markers: 0,
            kind_of_markers: profile.markers,
            frozen_until: origin,
            down_until: origin,
            subscribers: Vec::new(),
            ghosts: HashSet::new(),
            kept: HashSet::new(),
            queued_since: HashMap::new(),
            wiped_at: None,
        }
    }

    /// Returns its wall clock, by which keys expire.
    pub(super) fn wall(&self, now: Instant) -> Instant {
        now.drifted(self.ppm).after(self.ahead)
    }

    /// Returns the reported time since 1970.
    pub(super) fn time(&self, now: Instant) -> Duration {
        let since = self.wall(now).since_origin();
        if self.has_wall_clock { virtual_origin() + since } else { since }
    }

    /// Sets the wall clock forward.
    pub(super) fn step(&mut self, step: Duration) {
        self.ahead += step;
    }

    pub(super) fn has_stepped(&self) -> bool {
        !self.ahead.is_zero()
    }

    /// Returns the identity that the server reports on a new connection. The last receipt of `client` was `last`.
    ///
    /// The uptime is counted in whole seconds of the wall clock.
    pub(super) fn identity(&mut self, client: usize, last: Option<u64>, now: Instant) -> Identity {
        let seconds = |at: Instant| at.since_origin().as_secs();
        let uptime = seconds(self.wall(now)).saturating_sub(seconds(self.started_at)) + self.ran_before.as_secs();
        let run_id = format!("{}.{}", self.number, self.starts).into();
        let (is_durable, data) = (self.is_durable, self.data.clone());
        let marker = (self.kind_of_markers != Markers::AreForbidden).then(|| self.read_marker(client, last, now));
        Identity { run_id, uptime: Duration::from_secs(uptime), is_durable, data, marker }
    }

    fn read_marker(&mut self, client: usize, last: Option<u64>, now: Instant) -> Marker {
        let wall = self.wall(now);
        self.markers += u64::from(self.marker.is_none());
        let stored = self.marker.get_or_insert_with(|| StoredMarker::new(self.markers, Some(wall)));
        stored.last_receipt += 1;
        let found = stored.receipts.insert(client, stored.last_receipt);
        let age = stored.born.map(|born| wall.since(born));
        let follows = last.filter(|_| found == last);
        Marker { id: stored.id.to_string().into(), age, receipt: stored.last_receipt, follows }
    }

    /// Starts a new process.
    pub(super) fn restart(&mut self, until: Instant) {
        self.down_until = self.down_until.max(until);
        self.started_at = self.wall(self.down_until);
        self.ran_before = Duration::ZERO;
        self.starts += 1;
    }

    /// Adds a day to the uptime.
    pub(super) fn age(&mut self) {
        self.ran_before = Duration::from_secs(86_400);
    }

    /// Adds a marker that is as old as the server.
    pub(super) fn add_old_marker(&mut self) {
        self.marker = Some(StoredMarker::new(0, None));
    }

    /// Changes the data set, as if the server had been a replica of another server and were a master again.
    pub(super) fn replace(&mut self) {
        self.data_sets += 1;
        self.data = DataSet {
            id: Some(format!("{}.{}", self.number, self.data_sets).into()),
            previous: Some(format!("another {}.{}", self.number, self.data_sets).into()),
        };
    }

    /// Executes a command, and returns the answer and the wake-ups.
    pub(super) fn execute(&mut self, now: Instant, command: &Command) -> Executed {
        let (wall, time) = (self.wall(now), self.time(now));
        // Managers send the scripts of their version.
        let is_of_old = !command.subject.token.reads_claims();
        let Self { state, subscribers, .. } = self;
        let mut published = Vec::new();
        let (reply, seen) = state.execute(wall, command, &mut |channel, wakeup| {
            let wires = || subscribers.iter().filter(|known| known.channel == channel).map(|known| known.wire);
            let wakeup = match wakeup.notice {
                Notice::Claimed(_) if is_of_old => Wakeup { notice: Notice::Granted, ..wakeup },
                Notice::Claimed(claim) => Wakeup { notice: Notice::Claimed(Claim { begun: time, ..claim }), ..wakeup },
                _ => wakeup,
            };
            // If a client has several connections, at most the newest still exists.
            if let Some(newest) = wires().max() {
                published.push((newest, wakeup));
            }
            wires().count()
        });
        if let Reply::Queued { .. } = reply {
            self.queued_since.entry(command.subject.token).or_insert(now);
        }
        let is_told = command.verb.is_extension() || matches!(reply, Reply::Queued { .. });
        let time = is_told.then_some(time);
        Executed { reply, seen, time, published }
    }

    /// Records a command that may leave an unknown token. A connection that `has_ended` may deliver it after the last
    /// command of the token.
    pub(super) fn note_late(&mut self, command: &Command, has_ended: bool) {
        let token = command.subject.token;
        let leaves = match command.verb {
            Verb::Release { .. } | Verb::Raise { .. } => false,
            Verb::Keep { .. } => {
                self.kept.insert(token);
                false
            }
            // An extension creates nothing, but it prolongs a token that remains for a while.
            Verb::Extend { .. } | Verb::Renew { .. } => self.kept.contains(&token),
            _ => true,
        };
        if leaves && has_ended {
            self.ghosts.insert(token);
        }
    }

    /// Returns `true` if the token may have arrived after its release.
    pub(super) fn has_late_token(&self, token: OwnerToken) -> bool {
        self.ghosts.contains(&token)
    }

    /// Subscribes a connection to a channel.
    pub(super) fn subscribe(&mut self, channel: &str, wire: usize) {
        self.subscribers.push(Subscriber { channel: channel.to_owned(), wire });
    }

    /// Returns the newest connection that is subscribed to `channel`.
    pub(super) fn subscriber(&self, channel: &str) -> Option<usize> {
        self.subscribers.iter().filter(|known| known.channel == channel).map(|known| known.wire).max()
    }

    /// Returns the connections that are subscribed to other channels.
    pub(super) fn subscribers_but(&self, channel: &str) -> Vec<usize> {
        self.subscribers.iter().filter(|known| known.channel != channel).map(|known| known.wire).collect()
    }

    /// Raises the register of `key` to a number that no clock explains.
    pub(super) fn poison(&mut self, key: &LockKey) {
        self.state.raise_register(slot_of(key.name()), Ballot::NUMBERS.end - 2);
    }

    /// Removes the subscriptions of a connection.
    pub(super) fn forget(&mut self, wire: usize) {
        self.subscribers.retain(|known| known.wire != wire);
    }

    /// Loses all data.
    pub(super) fn wipe(&mut self, now: Instant) {
        self.wiped_at = Some(now);
        self.state = NodeState::with_limits(self.limits, self.rules);
        self.marker = self
            .marker
            .take()
            .filter(|_| self.kind_of_markers == Markers::AreRestored)
            .map(|marker| StoredMarker::new(marker.id, marker.born));
    }

    /// Returns `true` if managers that knew the server ignore its grants, because it has lost its data.
    pub(super) fn is_forgetful(&self, now: Instant) -> bool {
        self.wiped_at.is_some_and(|at| now < at.after(LONGEST_ABSTENTION))
    }

    /// Returns `true` if the server can answer now.
    pub(super) fn is_well(&self, now: Instant) -> bool {
        self.frozen_until.max(self.down_until) <= now
    }

    /// Returns the exclusive owner of `key`.
    pub(super) fn owner(&self, key: &str, now: Instant) -> Option<OwnerToken> {
        self.state.owner(key, self.wall(now))
    }

    /// Returns the readers of `key`.
    pub(super) fn readers(&self, key: &str, now: Instant) -> Vec<OwnerToken> {
        self.state.readers(key, self.wall(now))
    }

    /// Returns all holders of `key`, exclusive or shared.
    pub(super) fn holders(&self, key: &str, now: Instant) -> Vec<OwnerToken> {
        self.state.holders(key, self.wall(now))
    }

    /// Returns `true` if `token` holds `key`, exclusive or shared.
    pub(super) fn has(&self, key: &str, token: OwnerToken, now: Instant) -> bool {
        self.lease_left(key, token, now).is_some()
    }

    /// Returns `true` if some waiters for `key` must still be notified that it is free.
    pub(super) fn has_untold(&self, key: &str) -> bool {
        self.state.has_untold(key)
    }

    /// Returns the tokens in the queue of `key`, with the times of their arrival.
    pub(super) fn queued_since(&self, key: &str, now: Instant) -> Vec<(OwnerToken, Instant)> {
        let queue = self.state.queue(key, self.wall(now)).into_iter();
        queue.filter_map(|token| Some((token, *self.queued_since.get(&token)?))).collect()
    }

    /// Returns the remaining lease of `token` for `key`.
    pub(super) fn lease_left(&self, key: &str, token: OwnerToken, now: Instant) -> Option<Duration> {
        self.state.lease_left(key, token, self.wall(now))
    }

    /// Returns all tokens with entries under `key`.
    pub(super) fn tokens(&self, key: &str, now: Instant) -> Vec<OwnerToken> {
        self.state.tokens(key, self.wall(now))
    }

    /// Deletes the key of `token`, as a program without queues does.
    pub(super) fn delete(&mut self, key: &str, token: OwnerToken, now: Instant) {
        self.state.delete(key, token, self.wall(now));
    }

    /// Deletes the key for another program.
    pub(super) fn clear(&mut self, key: &str) {
        self.state.clear(key);
    }

    /// Overwrites the key with `token` for another program.
    pub(super) fn overwrite(&mut self, key: &str, token: OwnerToken, ttl: Duration, now: Instant) {
        self.state.overwrite(key, token, self.wall(now).after(ttl));
    }
}
