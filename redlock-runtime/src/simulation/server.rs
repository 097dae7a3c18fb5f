//! A simulated Redis server: the state machine of the memory node, with a clock, channels and troubles of its own.

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

pub(super) struct Server {
    state: NodeState,
    rules: Rules,
    /// How many waiters one command lets in, or tells that a name is free.
    limits: Limits,
    number: usize,
    /// How much faster its clock runs, in parts in a million.
    ppm: i32,
    /// Whether that shows the time, and not only how long it has been running.
    pub(super) has_wall_clock: bool,
    /// By how much its wall clock was set forward.
    ahead: Duration,
    /// How many processes there have been, and since when there is the present one.
    starts: u64,
    started_at: Instant,
    /// By how much longer it has been running than it has been watched.
    ran_before: Duration,
    /// Which data it has.
    data: DataSet,
    data_sets: u64,
    /// Whether it says of itself that it forgets nothing.
    is_durable: bool,
    marker: Option<StoredMarker>,
    /// Number of markers that were written to it.
    markers: u64,
    kind_of_markers: Markers,
    /// It executes nothing until then.
    pub(super) frozen_until: Instant,
    /// It cannot be reached until then.
    pub(super) down_until: Instant,
    subscribers: Vec<Subscriber>,
    /// When each token that ever waited was first put into a queue.
    queued_since: HashMap<OwnerToken, Instant>,
    /// Tokens that a connection brought here after its end, maybe later than the next connection their release.
    ghosts: HashSet<OwnerToken>,
    /// Tokens whose last command lets them stand for a while.
    kept: HashSet<OwnerToken>,
}

/// The marker in the data of a server.
struct StoredMarker {
    id: u64,
    /// Time of writing by the wall clock; `None` if that was long ago.
    born: Option<Instant>,
    /// Number of the last receipt, and of that of each client.
    last_receipt: u64,
    receipts: HashMap<usize, u64>,
}

impl StoredMarker {
    fn new(id: u64, born: Option<Instant>) -> Self {
        Self { id, born, last_receipt: 0, receipts: HashMap::new() }
    }
}

/// A connection that a channel is open on, as far as the server knows.
struct Subscriber {
    channel: String,
    wire: usize,
}

/// What the execution of one command led to.
pub(super) struct Executed {
    pub(super) reply: Reply,
    pub(super) seen: Option<TokenTime>,
    /// By the wall clock of the server, where the answer tells it.
    pub(super) time: Option<Duration>,
    /// Wake-ups and the wires that they go out on.
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
        }
    }

    /// Its wall clock: keys expire by it.
    pub(super) fn wall(&self, now: Instant) -> Instant {
        now.drifted(self.ppm).after(self.ahead)
    }

    /// What it says that the time is, since 1970.
    pub(super) fn time(&self, now: Instant) -> Duration {
        let since = self.wall(now).since_origin();
        if self.has_wall_clock { virtual_origin() + since } else { since }
    }

    /// Its wall clock is set forward.
    pub(super) fn step(&mut self, step: Duration) {
        self.ahead += step;
    }

    pub(super) fn has_stepped(&self) -> bool {
        !self.ahead.is_zero()
    }

    /// What it says of itself to whoever connects. It counts its uptime in whole seconds, by its wall clock.
    /// The last receipt of `client` was `last`.
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

    /// Another process from then on.
    pub(super) fn restart(&mut self, until: Instant) {
        self.down_until = self.down_until.max(until);
        self.started_at = self.wall(self.down_until);
        self.ran_before = Duration::ZERO;
        self.starts += 1;
    }

    /// It has been running for a day already.
    pub(super) fn age(&mut self) {
        self.ran_before = Duration::from_secs(86_400);
    }

    /// It has been used for as long as it has been running.
    pub(super) fn has_old_data(&mut self) {
        self.marker = Some(StoredMarker::new(0, None));
    }

    /// It was the replica of another server, whose data it has now, and is a master again.
    pub(super) fn replace(&mut self) {
        self.data_sets += 1;
        self.data = DataSet {
            id: Some(format!("{}.{}", self.number, self.data_sets).into()),
            previous: Some(format!("another {}.{}", self.number, self.data_sets).into()),
        };
    }

    pub(super) fn execute(&mut self, now: Instant, command: &Command) -> Executed {
        let (wall, time) = (self.wall(now), self.time(now));
        // Managers bring scripts of their own version.
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
            // Of several connections of one client at most the newest still exists.
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

    /// What comes by a connection that `has_ended` may come behind the last command of its token, and leave something that nobody knows of.
    pub(super) fn note_late(&mut self, command: &Command, has_ended: bool) {
        let token = command.subject.token;
        let leaves = match command.verb {
            Verb::Release { .. } | Verb::Raise { .. } => false,
            Verb::Keep { .. } => {
                self.kept.insert(token);
                false
            }
            // It never creates anything, and makes longer what was to stand for a while.
            Verb::Extend { .. } | Verb::Renew { .. } => self.kept.contains(&token),
            _ => true,
        };
        if leaves && has_ended {
            self.ghosts.insert(token);
        }
    }

    pub(super) fn is_haunted_by(&self, token: OwnerToken) -> bool {
        self.ghosts.contains(&token)
    }

    pub(super) fn subscribe(&mut self, channel: &str, wire: usize) {
        self.subscribers.push(Subscriber { channel: channel.to_owned(), wire });
    }

    /// The newest connection that `channel` is open on.
    pub(super) fn subscriber(&self, channel: &str) -> Option<usize> {
        self.subscribers.iter().filter(|known| known.channel == channel).map(|known| known.wire).max()
    }

    /// The connections that are subscribed to other channels than this one.
    pub(super) fn subscribers_but(&self, channel: &str) -> Vec<usize> {
        self.subscribers.iter().filter(|known| known.channel != channel).map(|known| known.wire).collect()
    }

    /// Somebody raises the register of `key` to a number that no clock explains.
    pub(super) fn poison(&mut self, key: &LockKey) {
        self.state.raise_register(slot_of(key.name()), Ballot::NUMBERS.end - 2);
    }

    pub(super) fn forget(&mut self, wire: usize) {
        self.subscribers.retain(|known| known.wire != wire);
    }

    /// Loses its memory.
    pub(super) fn wipe(&mut self) {
        self.state = NodeState::with_limits(self.limits, self.rules);
        self.marker = self
            .marker
            .take()
            .filter(|_| self.kind_of_markers == Markers::AreRestored)
            .map(|marker| StoredMarker::new(marker.id, marker.born));
    }

    /// Whether it would answer now.
    pub(super) fn is_well(&self, now: Instant) -> bool {
        self.frozen_until.max(self.down_until) <= now
    }

    pub(super) fn owner(&self, key: &str, now: Instant) -> Option<OwnerToken> {
        self.state.owner(key, self.wall(now))
    }

    /// Those who share `key`.
    pub(super) fn readers(&self, key: &str, now: Instant) -> Vec<OwnerToken> {
        self.state.readers(key, self.wall(now))
    }

    /// Those who have `key`, alone or with others.
    pub(super) fn holders(&self, key: &str, now: Instant) -> Vec<OwnerToken> {
        self.state.holders(key, self.wall(now))
    }

    /// Whether `token` has `key`, alone or with others.
    pub(super) fn has(&self, key: &str, token: OwnerToken, now: Instant) -> bool {
        self.lease_left(key, token, now).is_some()
    }

    /// Whether some who wait for `key` are still to be told that it is free.
    pub(super) fn has_untold(&self, key: &str) -> bool {
        self.state.has_untold(key)
    }

    /// The tokens in the queue of `key`, and since when they have been there.
    pub(super) fn queued_since(&self, key: &str, now: Instant) -> Vec<(OwnerToken, Instant)> {
        let queue = self.state.queue(key, self.wall(now)).into_iter();
        queue.filter_map(|token| Some((token, *self.queued_since.get(&token)?))).collect()
    }

    /// How much longer `key` is there for `token`, which has it.
    pub(super) fn lease_left(&self, key: &str, token: OwnerToken, now: Instant) -> Option<Duration> {
        self.state.lease_left(key, token, self.wall(now))
    }

    pub(super) fn tokens(&self, key: &str, now: Instant) -> Vec<OwnerToken> {
        self.state.tokens(key, self.wall(now))
    }

    /// What another program does that knows nothing of queues.
    pub(super) fn delete(&mut self, key: &str, token: OwnerToken, now: Instant) {
        self.state.delete(key, token, self.wall(now));
    }

    /// Another program deletes whatever is there.
    pub(super) fn clear(&mut self, key: &str) {
        self.state.clear(key);
    }

    /// Another program writes `token` over whatever is there.
    pub(super) fn overwrite(&mut self, key: &str, token: OwnerToken, ttl: Duration, now: Instant) {
        self.state.overwrite(key, token, self.wall(now).after(ttl));
    }
}
